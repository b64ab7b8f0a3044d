"""The launcher stands where `horovodrun` stood: -np and -H, and the command without --."""

import re
import signal
import socket
import subprocess
import time

import pytest

from model_deploy.launch.__main__ import main
from model_deploy.launch.arguments import split
from tests.launch.programs import program
from tests.processes.harness import LAUNCH, Processes

pytestmark = pytest.mark.one_mode

TWO = ["--num_workers=2", "--nodivide_gpus"]
FOUR = ["--num_workers=4", "--nodivide_gpus"]


@pytest.mark.parametrize(
    ("line", "flags", "command"),
    [
        ("-np 4 python x.py --lr 1", FOUR, "python x.py --lr 1"),
        ("-np 4 -- python x.py", FOUR, "python x.py"),
        ("-np 4 python x.py -- -np 2", FOUR, "python x.py -- -np 2"),
        ("-np=4 -H localhost:4 python x.py", FOUR, "python x.py"),
        ("-H localhost:3,127.0.0.1 python x.py", FOUR, "python x.py"),
        (f"--num-proc 4 --hosts {socket.gethostname()}:8 x", FOUR, "x"),
        ("-np 4 --evaluator --log_dir logs x", [*FOUR, "--evaluator", "--log_dir=logs"], "x"),
        ("-np 4 --noelastic x", [*FOUR, "--noelastic"], "x"),
        ("-np 4", FOUR, ""),
        ("--num_workers 3 -- x -np 2", ["--num_workers", "3"], "x -np 2"),
        ("--num_workers=3 x", ["--num_workers=3", "x"], ""),
        ("-H a:2,b -- x", ["--num_workers=3", "--hosts=a:2,b"], "x"),
        (
            "-H a:2,b --num_ps=1 -- x",
            ["--num_workers=3", "--hosts=a:2,b", "--num_ps=1"],
            "x",
        ),
        ("-H a:2,b --elastic -- x", ["--max_workers=3", "--hosts=a:2,b", "--elastic"], "x"),
        ("-np 2 -H a:2,b x", [*TWO, "--hosts=a:2,b"], "x"),
    ],
)
def test_split(line, flags, command):
    """Horovod's flags become the launcher's, and the command begins where they end."""
    assert split(line.split()) == (flags, command.split())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("-np 0 x", "-np must be an integer of at least 1, got '0'"),
        ("-np x.py", "-np must be an integer of at least 1, got 'x.py'"),
        ("-np", "-np must be an integer of at least 1, got ''"),
        ("-np 4 --num_ps=1 x", "-np must be without num_workers and num_ps, got --num_ps=1"),
        ("-np 4 --num_workers 2 x", "-np must be without .* got --num_workers=2"),
        ("-np 4 -H localhost:2 x", "-np must be at most 2, the slots of -H localhost:2, got 4"),
        ("-H localhost:x x", "the slots of -H must be an integer of at least 1, got 'localhost:x'"),
        ("-np 2 -H node7:2 x", "hosts must answer, got no answer of node7 .*not known"),
        ("-np 2 --gloo x", "Unknown command line flag 'gloo'"),
        ("-H node7:2,node7 x", "-H must name each host once, got 'node7' twice"),
        ("-H node7:0 x", "the slots of -H must be an integer of at least 1, got 'node7:0'"),
        ("-H a/b x", "-H must have hosts such as node1:2, got 'a/b'"),
        ("-H -oProxyCommand=x:2 x", "-H must have hosts such as node1:2, got '-oProxyCommand=x:2'"),
        ("-H node7 --num_workers=2 -- x", "num_workers must be at most 1, the slots of the hosts"),
        ("-H node7 --ssh=/no/ssh -- x", "ssh must be a command that is installed, got '/no/ssh'"),
        ("-H node7 --ports=80-90 x", "ports must be a range from 1024 to 65535, .* got '80-90'"),
        ("-H node7 --network=here x", "network must be as 10.1.0.0/16, got 'here'"),
        ("-H node7 --environment=A,B-C x", "environment must be names of .* got 'B-C'"),
        ("-H node7 --hosts_file=x x", "hosts_file must be without hosts, got both"),
        ("--hosts_file=/no/file -- x", "No such file or directory: '/no/file'"),
        ("-np 2", "a command must follow after --, got none"),
    ],
)
def test_rejects(line, message, capsys):
    """What cannot be heeded is one line, and status 2; no process of somebody else's is ended."""
    with subprocess.Popen(["sleep", "60"]) as other:
        assert main(line.split()) == 2
        assert other.poll() is None
        other.kill()
    [printed] = capsys.readouterr().err.splitlines()
    assert re.search(message, printed)


def test_a_lost_worker_ends_all(tmp_path):
    """Without restarts all end within seconds; it is named, not who fails for want of it."""
    source = """
rank = task["index"] + (task["type"] == "worker")
note_pid(f"rank {rank}")
print("GPUs", os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
if rank == 0:
    wait_for_end_of("rank 2")
    sys.exit("lost the connection")
signal.pause()
"""
    source = program(f"os.chdir({str(tmp_path)!r})\n{source}")
    command = [*LAUNCH, "-np", "4", f"--log_dir={tmp_path}", *source]
    with Processes(tmp_path) as processes:
        launched = processes.start("launch", command, guarded=False, CUDA_VISIBLE_DEVICES="6,7")
        for rank in range(4):
            launched.wait_for_line(f"^worker {rank}. GPUs 6,7$")
        launched.signal_task("worker 2")
        began = time.monotonic()
        assert launched.wait() == 128 + signal.SIGKILL
        assert time.monotonic() - began < 5
        processes.assert_no_orphan()
    assert "launch| worker 2 was ended by SIGKILL; its last lines:\n" in launched.log
