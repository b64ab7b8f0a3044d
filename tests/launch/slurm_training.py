"""Real training by the scripts of docs/slurm.md: to the signal, through the queue, and on.

python -m tests.launch.slurm_training

takes two minutes on 2 cores, and needs what `scripts/slurm.py` does.
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scripts import slurm
from tests.launch.test_slurm import SCRIPTS
from tests.processes.forking import ROOT


def _train(within, folder, script):
    """Runs a script of 60 steps, and signals it after some; prints what its log says of that."""
    folder.mkdir()
    program = f"{sys.executable} {ROOT}/train_image_classifier.py"
    script = script.replace("train_image_classifier", program).replace("steps=2000", "steps=60")
    (folder / "job.sh").write_text(script.replace("sleep 60", "sleep 10"))

    def run(*command):
        return subprocess.check_output([*within, *command], cwd=folder, text=True).strip()

    job = run("sbatch", "--parsable", f"--export=ALL,PYTHONPATH={ROOT}", "job.sh")

    def wait_for(pattern):
        while True:
            text = "".join(path.read_text() for path in folder.glob("*.log"))
            if match := re.search(pattern, text):
                return match[0]
            time.sleep(0.1)

    print(wait_for(r"step 20/.*"))
    run("scancel", "--batch", "--signal=USR1", job)
    print(wait_for(r"stopped by SIGTERM at step \d+"))
    print(wait_for(r"test accuracy at step 60.*"))
    print(*sorted(path.name for path in folder.glob("digits*-*/model.ckpt-*.index")))


def main():
    """Runs both scripts of clusters."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        (folder / "slurm").mkdir()
        with slurm.one_machine(folder / "slurm", 2) as within:
            for number, script in enumerate(SCRIPTS[:2]):
                _train(within, folder / str(number), script)


if __name__ == "__main__":
    main()
