"""The programs of docs/keras.md, in a process of their own: the second one runs eagerly."""

import os
import re
import subprocess
import sys
from pathlib import Path

import keras
import pytest

from model_deploy.keras import translate_optimizer

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "keras.md").read_text()


@pytest.mark.one_mode
@pytest.mark.slow
def test_programs(tmp_path):
    """One after the other they train, predict and print what is shown."""
    programs = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    [shown] = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "program.py").write_text("\n".join(programs))
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == shown


def test_optimizers():
    """The table has the optimizers that are translated, with settings that they have."""
    [table] = re.findall(r"\| Keras \| settings \|\n(.*?)\n\n", PAGE, re.DOTALL)
    rows = re.findall(r"^\| (`.*?`) \| (.*?) \|$", table, re.MULTILINE)
    names = {name: settings for row, settings in rows for name in re.findall(r"`(\w+)`", row)}
    with pytest.raises(ValueError, match="must be one of") as error:
        translate_optimizer(None, 0)
    refused = str(error.value)
    [listed] = re.findall("one of (.*) of Keras", refused)
    assert sorted(names) == listed.split(", ")
    for name, settings in names.items():
        optimizer = getattr(keras.optimizers, name)()
        for setting in re.findall(r"`(\w+)`", settings):
            assert hasattr(optimizer, setting), (name, setting)
