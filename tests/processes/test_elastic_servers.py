"""Elastic runs with parameter servers: updates that are cut short, and servers that are lost."""

import re
import signal

import pytest

from model_deploy.cluster import WORKER, WORLD_FILE, World, write_world
from model_deploy.launch import ReservedPorts
from model_deploy.launch.task import task_configs
from model_deploy.runs import read_time_spent
from tests.processes.harness import Processes
from tests.processes.test_elastic import PROGRAM, WAYS, ElasticLaunch, check_weights, flags_of_run

pytestmark = pytest.mark.one_mode

SAVES = "--save_interval_steps=10"


@pytest.mark.slow
@pytest.mark.parametrize("way", ["ps", "2 ps"])
def test_chief_is_lost_within_an_update(way, tmp_path):
    """The next one sees that, and goes back to the newest checkpoint; the weights are right."""
    more = ["--dies_in_update=25", f"--gate={tmp_path / 'died'}", SAVES]
    with Processes(tmp_path) as processes:
        launch = ElasticLaunch(tmp_path, processes, 3, 40, way=WAYS[way], more=more)
        launch.process.wait_for_line("worker 0 was ended by SIGKILL")
        launch.process.wait_for_line(
            r"^worker 1\| an update was cut short: going back to the newest checkpoint"
        )
        launch.end()
        assert re.search(r"world 2: .*\n(?:.*\n)*?made 21 at", launch.log("worker 1"))
    # Steps 21 to 24 were made before.
    assert read_time_spent(tmp_path / "train").secs["repeated"] > 0
    processes.assert_no_orphan()


@pytest.mark.slow
@pytest.mark.parametrize("way", ["ps", "2 ps"])
def test_lost_server(way, tmp_path):
    """A parameter server that is started again gets the values of the newest checkpoint."""
    with Processes(tmp_path) as processes:
        flags = [*WAYS[way], "--max_restarts=1"]
        launch = ElasticLaunch(tmp_path, processes, 2, 100, step_secs=0.2, way=flags, more=[SAVES])
        launch.process.wait_for_line(r"^worker 1\| made 15 ")
        launch.signal("ps 0")
        launch.process.wait_for_line("ps 0 was ended by SIGKILL: starting it again")
        launch.wait_for_step("worker 1", 2)
        launch.end()
    processes.assert_no_orphan()


@pytest.mark.slow
@pytest.mark.parametrize(("way", "worlds"), [("ps", 1), ("2 ps", 2)])
def test_refused_step(way, worlds, tmp_path):
    """One that others wait in, or may have run in part, is made again in another world."""
    more = ["--refuses=25", f"--gate={tmp_path / 'refused'}"]
    with Processes(tmp_path) as processes:
        launch = ElasticLaunch(tmp_path, processes, 3, 40, way=WAYS[way], more=more)
        if worlds > 1:
            launch.process.wait_for_line(r"worker \d asks for another world: TensorFlow has")
            launch.process.wait_for_line("world 2: worker 0, worker 1, worker 2")
        launch.end()
        assert launch.process.log.count("launch| world") == worlds
    processes.assert_no_orphan()


@pytest.mark.slow
@pytest.mark.parametrize("stopped", [0, 1], ids=["chief", "another one"])
def test_who_wakes_up_late(stopped, tmp_path):
    """A worker that was stopped, and taken out of the world, changes nothing when it goes on."""
    steps, path = 60, tmp_path / "world.json"
    with Processes(tmp_path, **{WORLD_FILE: str(path)}) as processes, ReservedPorts(4) as ports:
        configs = dict(task_configs(3, ports.addresses))
        write_world(path, World(1, 3, dict(enumerate(ports.addresses[:3]))))

        def start(name, **env):
            command = [*PROGRAM, *flags_of_run(tmp_path, steps), "--step_secs=0.2"]
            return processes.start(name.replace(" ", "-"), command, TF_CONFIG=configs[name], **env)

        server = start("ps 0")
        workers = [start(f"worker {i}", **{WORKER: str(i)}) for i in range(3)]
        workers[2].wait_for_line("made 10 ")
        workers[stopped].signal(signal.SIGSTOP)
        left = {i: ports.addresses[i] for i in range(3) if i != stopped}
        write_world(path, World(2, 3, left))
        workers[2].wait_for_line(r"world 2: worker 2 is one of 2")
        made = workers[2].log.count("made ")
        Processes.wait_until(lambda: workers[2].log.count("made ") > made + 5)
        workers[stopped].signal(signal.SIGCONT)
        assert workers[stopped].wait() == 0, workers[stopped].log
        assert f"worker {stopped} leaves: world 2 is without it" in workers[stopped].log
        for process in (*workers, server):
            assert process.wait() == 0, process.log
    processes.assert_no_orphan()
    check_weights(tmp_path, 3, steps)
