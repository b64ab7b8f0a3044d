"""A task's place in the cluster as flags of its command, for programs that read no `TF_CONFIG`."""

import json
from collections.abc import Sequence

NAMES = ("{ps_hosts}", "{worker_hosts}", "{job_name}", "{task_index}")


def asked_for(command: Sequence[str]) -> list[str]:
    """Which of `NAMES` stand in a command."""
    return [name for name in NAMES if any(name in word for word in command)]


def filled(command: Sequence[str], tf_config: str | None) -> list[str]:
    """The command of a task, with its place in the cluster for `NAMES`; other braces stay.

    The chief is worker 0, whatever `TF_CONFIG` calls it.

    >>> place = '{"cluster": {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]},'
    >>> place += ' "task": {"type": "worker", "index": 0}}'
    >>> filled(["--hosts={worker_hosts}", "--job={job_name}", "--task={task_index}"], place)
    ['--hosts=a:1,b:1', '--job=worker', '--task=1']

    Args:
      command: the words of the command.
      tf_config: the task's `TF_CONFIG`; None where tasks have no addresses that stay, and the
        command none of `NAMES`.
    """
    if tf_config is None:
        return list(command)
    config = json.loads(tf_config)
    jobs, task = config["cluster"], config["task"]
    chiefs = [*jobs.get("chief", ()), *jobs.get("master", ())]
    is_chief = task["type"] in ("chief", "master")
    values = (
        ",".join(jobs.get("ps", ())),
        ",".join([*chiefs, *jobs.get("worker", ())]),
        "worker" if is_chief else task["type"],
        str(task["index"] + (len(chiefs) if task["type"] == "worker" else 0)),
    )
    return [_replaced(word, values) for word in command]


def _replaced(word: str, values: Sequence[str]) -> str:
    for name, value in zip(NAMES, values, strict=True):
        word = word.replace(name, value)
    return word
