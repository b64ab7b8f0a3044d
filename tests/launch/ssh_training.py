"""Real training on hosts with sshd: the end of a launcher, hosts that come, go and are lost.

python -m tests.launch.ssh_training

takes two minutes on 2 cores, and needs what `ssh_hosts.py` does.
"""

import re
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.launch import ssh_hosts
from tests.processes.forking import ROOT
from tests.processes.harness import Processes

TRAIN = [sys.executable, str(ROOT / "train_image_classifier.py"), "--num_clones=1"]
TRAIN += ["--clone_on_cpu", "--batch_size=8", "--log_every_n_steps=10"]


def _wait_for(launched, pattern):
    """Waits for a line, and prints it with the seconds that it took."""
    began = time.monotonic()
    print(f"{launched.wait_for_line(pattern)[0]}  ({time.monotonic() - began:.1f} s)", flush=True)


def _told_to_end(hosts, processes, folder):
    """A chief on another machine saves what a parameter server keeps."""
    flags = ["-H", "node1,node2", "--num_ps=1", f"--log_dir={folder / 'logs'}"]
    train = [*TRAIN, f"--train_dir={folder / 'run'}", "--max_number_of_steps=100000"]
    command = [*hosts.launch(*flags), "--", *train]
    launched = processes.start("told", command, guarded=False, cwd=folder)
    _wait_for(launched, r"^worker 0. step \d+/.*?loss \S+")
    launched.signal(signal.SIGTERM)
    _wait_for(launched, r"^worker 0. stopped by SIGTERM at step \d+")
    status = launched.wait()
    print(status, sorted(path.name for path in (folder / "run").glob("*.index")), flush=True)


def _come_and_go(hosts, processes, folder):
    """Hosts of a file, one of which comes, is lost, comes again, and leaves."""
    listed = folder / "hosts"
    listed.write_text("node1:1\n")
    flags = [f"--hosts_file={listed}", "--elastic", "--max_workers=2", "--host_timeout=6"]
    flags += [f"--log_dir={folder / 'elastic_logs'}"]
    train = [*TRAIN, f"--train_dir={folder / 'elastic_run'}", "--max_number_of_steps=1500"]
    command = [*hosts.launch(*flags), "--", *train]
    launched = processes.start("elastic", command, guarded=False, cwd=folder)
    _wait_for(launched, r"^worker 0. step \d+/.*?loss \S+")
    listed.write_text("node1:1\nnode2:1\n")
    _wait_for(launched, "^launch. node2 is a host now")
    _wait_for(launched, r"^launch. world \d+: worker 0, worker 1")
    _wait_for(launched, r"^worker 1. step \d+/.*?loss \S+")
    with hosts.cut(2):
        _wait_for(launched, "^launch. (worker 1 was lost.*|node2 (does not answer|is lost).*)")
        seen = len(re.findall("worker 0. step", launched.log))
        while len(re.findall("worker 0. step", launched.log)) < seen + 2:
            time.sleep(0.1)
        print("worker 0 goes on", flush=True)
    listed.write_text("node1:1\nnode2:1 # again\n")
    _wait_for(launched, r"^launch. world \d+: worker 0, worker 2")
    listed.write_text("node2:1\n")
    _wait_for(launched, "^launch. worker 0 has left")
    _wait_for(launched, "^worker 2. test accuracy at step 1500.*")
    print(launched.wait(), flush=True)
    processes.assert_no_orphan(20)


def main():
    """Runs both."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        (folder / "ssh").mkdir()
        with ssh_hosts.SshHosts(folder / "ssh", 2) as hosts, Processes(folder) as processes:
            _told_to_end(hosts, processes, folder)
            _come_and_go(hosts, processes, folder)


if __name__ == "__main__":
    main()
