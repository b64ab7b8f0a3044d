"""All-reduce goes on after a step that TensorFlow has refused, and the weights are the same."""

import pytest

from tests.processes import refusals
from tests.processes.faults import PROGRAM, WORKERS, check_result, training_flags
from tests.processes.forking import end_forking
from tests.processes.harness import Processes
from tests.processes.test_elastic import ElasticLaunch

pytestmark = [pytest.mark.one_mode, pytest.mark.slow]


@pytest.fixture(scope="module")
def preloaded(tmp_path_factory):
    """The variables of processes whose steps may get the number of another one."""
    variables = refusals.environment(tmp_path_factory.mktemp("library"))
    yield variables
    end_forking(*variables.values())


@pytest.mark.parametrize(
    "others_wait",
    [
        pytest.param(True, id="before others begin the step"),
        pytest.param(False, id="while others wait for it"),
    ],
)
def test_a_refused_step(others_wait, preloaded, tmp_path):
    """The worker makes the step again; where others have given it up all are started again."""
    mark = tmp_path / "repeated"
    # A checkpoint that is written meanwhile is a step as well, which might draw the number.
    flags = [f"--repeated_mark={mark}", f"--others_wait={others_wait}", "--save_interval_steps=60"]
    with Processes(tmp_path, **preloaded) as processes:
        program = [*PROGRAM, *training_flags(tmp_path, "all_reduce"), *flags]
        flags = [f"--num_workers={WORKERS}", "--num_ps=0"]
        launch = processes.launch(flags, program)
        assert launch.wait() == 0, launch.log
    assert mark.with_name("repeated.done").exists()
    gave_up = (
        "error: TensorFlow has refused another worker's part of the step after 24" in launch.log
    )
    started_again = (
        "failed with exit status 75: starting all tasks again, not counted" in launch.log
    )
    assert gave_up == started_again == (not others_wait)
    check_result(tmp_path / "train", is_exact=True)


def test_a_refused_step_of_an_elastic_run(preloaded, tmp_path):
    """Where another worker has given the step up both go on in a new world, and no step is lost."""
    mark = tmp_path / "repeated"
    with Processes(tmp_path, **preloaded) as processes:
        launch = ElasticLaunch(
            tmp_path,
            processes,
            2,
            60,
            step_secs=0,
            more=[f"--repeated_mark={mark}"],
        )
        assert launch.process.wait() == 0, launch.process.log
        assert mark.with_name("repeated.done").exists()
        assert "asks for another world: another worker has given up its part" in launch.process.log
        launch.end()
