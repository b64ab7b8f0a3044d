"""Elastic runs of real processes: workers are lost, others come, the weights are the same."""

import itertools
import re
import signal
import sys
import time

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.cluster import WORKER, WORLD_FILE, World, write_world
from model_deploy.launch import ReservedPorts
from model_deploy.runs import read_time_spent
from tests.processes.elastic import RATE, undisturbed
from tests.processes.harness import Processes, Workers

PROGRAM = [sys.executable, "-m", "tests.processes.elastic"]
# Flags of the launcher for each way to train.
WAYS = {"all-reduce": (), "ps": ("--elastic", "--num_ps=1"), "2 ps": ("--elastic", "--num_ps=2")}
# What users are promised is 10 s; this machine may do other things, too.
GO_ON_SECS = 30.0


class ElasticLaunch(Workers):
    """A launch of an elastic run, whose workers can be killed, and added.

    Args:
      folder: of all its files.
      processes: starts it.
      shares: its workers.
      steps: its last step.
      step_secs: seconds between two steps.
      way: flags of the launcher: the way to train.
      more: flags of the program.
      least: with how many workers it goes on.
      **settings: as for `Processes.start`.
    """

    def __init__(
        self,
        folder,
        processes,
        shares,
        steps,
        *,
        step_secs=0.1,
        way=(),
        more=(),
        least=1,
        **settings,
    ):
        self._shares, self._steps = shares, steps
        flags = [f"--min_workers={least}", f"--max_workers={shares}", *way]
        program = [*PROGRAM, *flags_of_run(folder, steps), f"--step_secs={step_secs}", *more]
        super().__init__(folder, processes.launch(flags, program, **settings))

    def log(self, name):
        """What a worker has printed."""
        path = self.folder / f"{name.replace(' ', '-')}.log"
        return path.read_text() if path.exists() else ""

    def wait_for_step(self, name, world):
        """Waits until a worker has made a step in a world."""
        Processes.wait_until(
            lambda: made_in(self.log(name).partition(f"world {world}:")[2]),
            message=lambda: self.process.log,
        )

    def logs(self):
        """What each worker has printed."""
        names = set(re.findall(r"^(worker \d+)\|", self.process.log, re.MULTILINE))
        return [self.log(name) for name in names]

    def end(self, steps=None, **run):
        """Lets steps be fast, and checks the end: exit status and weights, and no step is lost.

        Args:
          steps: the last step, where it is an earlier one.
          **run: arguments of `undisturbed`.
        """
        super().end()
        check_run(self.folder, self._shares, steps or self._steps, self.logs(), **run)


def flags_of_run(folder, steps):
    return [f"--train_dir={folder / 'train'}", f"--max_steps={steps}", f"--fast={folder / 'fast'}"]


def check_run(folder, shares, steps, logs, **run):
    """The weights are those of the undisturbed run, and each step was made."""
    check_weights(folder, shares, steps, **run)
    check_time(folder, logs)
    assert {step for log in logs for step, _ in made_in(log)} == set(range(1, steps + 1))


def check_time(folder, logs):
    """The ledger knows the last step, and has the time of all steps, whoever was the chief."""
    spent = read_time_spent(folder / "train")
    made = [at for log in logs for _, at in made_in(log)]
    print(spent)
    assert spent.highest_step == max(step for log in logs for step, _ in made_in(log))
    assert spent.total >= max(made) - min(made)


def check_last_step(folder, steps):
    """The newest checkpoint is of the last step; returns its values."""
    path = tf.train.latest_checkpoint(str(folder / "train"))
    values = tf.train.load_checkpoint(path)
    assert values.get_tensor("global_step") == steps
    return values


def check_weights(folder, shares, steps, **run):
    """The newest checkpoint is of the last step, and has the weights of the undisturbed run."""
    values = check_last_step(folder, steps)
    names = ("weights", "bias", "state")
    found = np.concatenate([np.ravel(values.get_tensor(name)) for name in names])
    expected = undisturbed(steps, shares, **run)
    print(f"largest difference: {np.abs(found - expected).max():.2g}")
    np.testing.assert_allclose(found, expected, atol=1e-6)


def made_in(log):
    """The steps that lines tell of, in order, and when each was made."""
    return [(int(step), float(at)) for step, at in re.findall(r"made (\d+) at ([\d.]+)\n", log)]


def longest_pause(*logs):
    """The longest time between two steps of any worker, in seconds."""
    times = [[at for _, at in made_in(log)] for log in logs]
    return max(after - before for each in times for before, after in itertools.pairwise(each))


@pytest.mark.slow
@pytest.mark.parametrize(
    "way",
    [
        pytest.param(way, id=name, marks=pytest.mark.one_mode if name == "2 ps" else ())
        for name, way in WAYS.items()
    ],
)
def test_workers_are_lost_and_come(way, tmp_path):
    """One is killed, one comes, the chief is killed: others go on soon, to the right weights."""
    with Processes(tmp_path) as processes:
        launch = ElasticLaunch(tmp_path, processes, 3, 125, step_secs=0.8, way=way)
        launch.wait_for_step("worker 2", 1)
        launch.signal("worker 1")
        launch.wait_for_step("worker 2", 2)
        launch.add()
        launch.wait_for_step("worker 3", 3)
        launch.signal("worker 0")
        launch.wait_for_step("worker 3", 4)
        launch.end()
    processes.assert_no_orphan()
    pause = longest_pause(launch.log("worker 2"))
    print(f"longest pause: {pause:.2f} s")
    assert pause < GO_ON_SECS


@pytest.mark.one_mode
@pytest.mark.slow
def test_worker_begins_anew(tmp_path):
    """One that was in enough worlds ends, the other has its values, and a new one comes for it."""
    more = ["--worlds_per_process=1", "--refuses=8", f"--gate={tmp_path / 'refused'}"]
    with Processes(tmp_path) as processes:
        launch = ElasticLaunch(tmp_path, processes, 2, 250, step_secs=0.4, more=more)
        launch.process.wait_for_line("worker 0 ends for a new process: this one has the TensorFlow")
        launch.process.wait_for_line("worker 0 ended with 75: a new worker is started")
        launch.wait_for_step("worker 2", 4)
        launch.end()
        worlds = re.findall(r"^launch\| world \d: (.*)", launch.process.log, re.MULTILINE)
        pair = "worker 0, worker 1"
        assert worlds == [pair, pair, "worker 1", "worker 1, worker 2"]
    processes.assert_no_orphan()


@pytest.mark.one_mode
@pytest.mark.slow
@pytest.mark.parametrize("way", [WAYS["all-reduce"], WAYS["ps"]], ids=["all-reduce", "ps"])
def test_the_count_of_evaluations_outlives_the_chief(way, tmp_path):
    """The rate falls, and all workers end, at the steps of a run whose chief was not killed."""
    more = ["--eval_every_n_steps=10", "--best_step=20", "--stop_patience=3"]
    with Processes(tmp_path) as processes:
        launch = ElasticLaunch(tmp_path, processes, shares=2, steps=1000, way=way, more=more)
        launch.wait_for_step("worker 1", 1)
        Processes.wait_until(lambda: "made 35 at" in launch.log("worker 1"))
        launch.signal("worker 0")
        launch.wait_for_step("worker 1", 2)
        # Evaluations 30, 40 and 50 are no better than that of step 20.
        rates = [RATE] * 30 + [RATE / 2] * 10 + [RATE / 4] * 10
        launch.end(steps=50, rates=rates)
    processes.assert_no_orphan()


@pytest.mark.one_mode
@pytest.mark.slow
@pytest.mark.parametrize(("first_lost", "num_clones"), [(1, 1), (0, 2)])
def test_world_file_by_hand(first_lost, num_clones, tmp_path):
    """A worker that is lost is taken out of the file by hand, and the other one goes on alone."""
    steps, path = 60, tmp_path / "world.json"
    with Processes(tmp_path) as processes, ReservedPorts(3) as ports:
        write_world(path, World(1, 3, dict(enumerate(ports.addresses[:2]))))
        workers = [
            processes.start(
                f"worker-{i}",
                [*PROGRAM, *flags_of_run(tmp_path, steps), f"--num_clones={num_clones}"],
                **{WORLD_FILE: str(path), WORKER: str(i)},
            )
            for i in range(2)
        ]
        workers[0].wait_for_line("made 10 ")
        workers[first_lost].signal(signal.SIGKILL)
        left = 1 - first_lost
        write_world(path, World(2, 3, {left: ports.addresses[2]}))
        assert workers[left].wait() == 0
    check_weights(tmp_path, 3 * num_clones, steps)


# The others have asked the chief for nothing when it is gone, or wait for it already.
BEFORE, WITHIN = ("start", "start"), ("start", "")


@pytest.mark.one_mode
@pytest.mark.slow
@pytest.mark.parametrize(
    ("victim", "fails", "waits"),
    [
        pytest.param(0, True, BEFORE, id="chief fails before the start"),
        pytest.param(0, False, WITHIN, id="chief killed in the start"),
        pytest.param(0, True, WITHIN, id="chief fails in the start"),
        pytest.param(0, False, ("step", "step"), id="chief killed before the first step"),
        pytest.param(1, False, BEFORE, id="another one killed before the start"),
        pytest.param(1, False, WITHIN, id="another one killed in the start"),
    ],
)
def test_lost_at_the_start(victim, fails, waits, tmp_path):
    """One of three is lost while a world begins: the others are soon in the next one."""
    steps, path, gates = 10, tmp_path / "world.json", [tmp_path / "hit", tmp_path / "others"]
    with Processes(tmp_path, **{WORLD_FILE: str(path)}) as processes, ReservedPorts(5) as ports:
        write_world(path, World(1, 3, dict(enumerate(ports.addresses[:3]))))
        workers = []
        for i in range(3):
            of = int(i != victim)
            flags = [f"--waits={waits[of]}", f"--gate={gates[of]}", "--step_secs=0"]
            flags.append(f"--fails={fails and i == victim}")
            arguments = [*flags_of_run(tmp_path, steps), *flags]
            workers.append(
                processes.start(f"worker-{i}", [*PROGRAM, *arguments], **{WORKER: str(i)})
            )
        for i, worker in enumerate(workers):
            if waits[int(i != victim)]:
                worker.wait_for_line("^waiting for the gate")
        lost = workers.pop(victim)
        if not all(waits):  # the others come to where they wait
            processes.wait_until_idle(*workers)
        if fails:
            gates[0].touch()
        else:
            lost.signal(signal.SIGKILL)
        assert lost.wait() == (1 if fails else 128 + signal.SIGKILL)
        gates[1].touch()
        left = [i for i in range(3) if i != victim]
        processes.wait_until_idle(*workers)  # they come to the session that is over
        write_world(path, World(2, 3, dict(zip(left, ports.addresses[3:], strict=True))))
        began = time.time()
        for worker in workers:
            assert worker.wait() == 0, worker.log
    processes.assert_no_orphan()
    check_weights(tmp_path, 3, steps)
    pause = max(made_in(worker.log)[0][1] for worker in workers) - began
    print(f"first step after {pause:.2f} s")
    assert pause < GO_ON_SECS


@pytest.mark.one_mode
@pytest.mark.slow
def test_stopped_while_a_worker_is_gone(tmp_path):
    """A chief that waits for a lost worker and is asked to stop saves its last step, and ends."""
    path = tmp_path / "world.json"
    with Processes(tmp_path) as processes, ReservedPorts(2) as ports:
        write_world(path, World(1, 3, dict(enumerate(ports.addresses))))
        chief, other = (
            processes.start(
                f"worker-{i}",
                [*PROGRAM, *flags_of_run(tmp_path, 1000)],
                **{WORLD_FILE: str(path), WORKER: str(i)},
            )
            for i in range(2)
        )
        chief.wait_for_line("made 10 ")
        other.signal(signal.SIGKILL)
        chief.wait_for_line("waiting for worker 1 at .*, or for a world without")
        chief.signal(signal.SIGTERM)
        assert chief.wait() == 128 + signal.SIGTERM
    steps = made_in(chief.log)[-1][0]
    check_weights(tmp_path, 3, steps)


@pytest.mark.one_mode
@pytest.mark.slow
@pytest.mark.parametrize("way", [WAYS["all-reduce"], WAYS["ps"]], ids=["all-reduce", "ps"])
def test_folder_of_another_run(way, tmp_path):
    """With `--resume=never` no worker goes on from there, nor does one that is started later."""
    flags = ["--min_workers=1", "--max_workers=2", "--max_restarts=1", *way]
    with Processes(tmp_path) as processes:

        def launch(name, steps, *more):
            program = [*PROGRAM, *flags_of_run(tmp_path, steps), "--step_secs=0", *more]
            return processes.launch(flags, program, name)

        assert launch("first", 20).wait() == 0
        second = launch("second", 40, "--resume=never")
        assert second.wait() == 1
    error = "error: train_dir must hold no checkpoint with resume='never'"
    for worker in range(3):
        assert f"worker {worker}| {error}" in second.log
    check_weights(tmp_path, 2, 20)
