"""Metrics over all workers of a cluster, and its end by patience, with real processes."""

import re
import sys

import numpy as np
import pytest

from model_deploy.launch import ReservedPorts
from model_deploy.metrics import AUC, exact_area
from model_deploy.runs import read_metrics
from tests.processes.clicks import BEST_STEP, LABELS, LOG_ODDS, MODES, WORKERS
from tests.processes.harness import Processes, Tasks

pytestmark = [pytest.mark.one_mode, pytest.mark.slow]

# Evaluations after steps 2, 4, 6 (the best), 8 and 10: the second one without improvement.
EVAL_EVERY, PATIENCE, LOG_EVERY = 2, 2, 4
LAST_STEP = BEST_STEP + EVAL_EVERY * PATIENCE
PROGRAM = [
    *(sys.executable, "-m", "tests.processes.clicks", f"--eval_every_n_steps={EVAL_EVERY}"),
    *(f"--stop_patience={PATIENCE}", f"--log_every_n_steps={LOG_EVERY}"),
]


def _run(processes, mode, folder):
    """Runs all tasks to their end; returns the step at which each worker ended."""
    num_ps = 0 if mode == "all_reduce" else 1
    with ReservedPorts(WORKERS + num_ps) as ports:
        program = [*PROGRAM, f"--mode={mode}", f"--train_dir={folder}"]
        tasks = Tasks(processes, ports.addresses, num_ps, program)
        for name in [f"ps {i}" for i in range(num_ps)] + [f"worker {i}" for i in range(WORKERS)]:
            tasks.start(name)
        statuses = tasks.wait()
    logs = {name: task.log for name, task in tasks.items()}
    assert {*statuses} == {0}, logs
    ends = [re.search(r"^ended at step (\d+)$", logs[f"worker {i}"], re.M) for i in range(WORKERS)]
    return [int(end[1]) for end in ends], logs


def _expected(steps):
    """Area and log loss of all workers' examples of some steps."""
    log_odds, labels = LOG_ODDS[steps].reshape(-1), LABELS[steps].reshape(-1)
    losses = np.log1p(np.exp(-log_odds)) + (1 - labels) * log_odds
    return exact_area(AUC(), labels, log_odds), losses.mean()


@pytest.mark.parametrize("mode", MODES)
def test_a_cluster(tmp_path, mode):
    """Lines have the metrics of all workers; all end with 0 where the chief's patience does, and
    a run that is started again makes no step.  The rate of all falls after the first evaluation
    that is no better.
    """
    with Processes(tmp_path) as processes:
        ends, logs = _run(processes, mode, tmp_path / "run")
        said = f"auc has not improved in 2 evaluations (the best is of step {BEST_STEP})"
        again, logs_again = _run(processes, mode, tmp_path / "run")
        processes.assert_no_orphan()
    lines = [each for each in read_metrics(tmp_path / "run") if "train_auc" in each]
    if mode == "asynchronous":
        assert ends[0] >= LAST_STEP
        assert again[0] >= ends[0]  # steps that a worker makes before it hears of the end
        assert all(0 < line["train_log_loss"] < 2 for line in lines)
    else:
        assert said in logs["worker 0"]
        assert again == ends == [LAST_STEP] * WORKERS
        assert [line["step"] for line in lines] == [4, 8]
        for line, steps in zip(lines, (slice(4), slice(4, 8)), strict=True):
            found = line["train_auc"], line["train_log_loss"]
            assert found == pytest.approx(_expected(steps), rel=1e-6)
    rates = [re.search(r"^last rate (.+)$", logs[f"worker {i}"], re.M)[1] for i in range(WORKERS)]
    # Of asynchronous workers one may end before the evaluation.
    assert {rates[0], rates[0 if mode == "asynchronous" else 1]} == {"0.5"}
    assert "no more steps are made" in logs_again["worker 0"]
    is_shown = [" log_loss " in logs[f"worker {i}"] for i in range(WORKERS)]
    assert is_shown == [True, mode == "all_reduce"]
