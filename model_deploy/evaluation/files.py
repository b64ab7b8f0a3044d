"""Writes evaluations to a folder: JSON, a picture, CSV and TensorBoard events."""

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import file_systems
from model_deploy.checkpoints import step_of
from model_deploy.commands import make_folder, read_checked, replaced_file, write_checked
from model_deploy.evaluation.confusion import confusion_png
from model_deploy.evaluation.results import Evaluation

_SUMMARY = "evaluation.json"


class EvaluationWriter:
    """Writes evaluations to a folder; use it in a `with` block.

    Of the last evaluation:

    * `predictions.csv`: a line per example, in the order of the dataset.
    * `confusion_matrix.png`.
    * `evaluation.json`: scores, accuracy of each class, confusion matrix.

    Of all: `evaluations.jsonl`, one line of scores per step, and TensorBoard events with the
    tags `accuracy`, `recall_at_5`, `log_loss`, `loss` and names of metrics.  Each file but the
    events is replaced as a whole, `evaluation.json` as the last.

    Args:
      folder: where to write; made if missing.
      class_names: one name per class.
      facts: further entries of `evaluation.json`, by name.

    Raises:
      OSError: if the folder cannot be made.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        class_names: Sequence[str],
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self._folder = os.fspath(folder)
        self._class_names = list(class_names)
        self._facts = dict(facts or {})
        self._events: Any = None
        make_folder("eval_dir", folder)

    def __enter__(self) -> "EvaluationWriter":
        return self

    def __exit__(self, *_: object) -> None:
        if self._events is not None:
            self._events.close()

    def write(self, evaluation: Evaluation) -> None:
        """Writes one evaluation, replacing the files of the previous one.

        Raises:
          OSError: if a file cannot be written; the previous one then remains.
        """
        with replaced_file(self._path("predictions.csv")) as file:
            evaluation.predictions.write_csv(file)
        title = f"step {evaluation.global_step}, {evaluation.examples} examples"
        picture = confusion_png(evaluation.confusion, self._class_names, title, dpi=100)
        with replaced_file(self._path("confusion_matrix.png"), "wb") as file:
            file.write(picture)
        self._write_history(evaluation)
        self._write_events(evaluation)
        write_checked(self._path(_SUMMARY), self._summary(evaluation))

    def _summary(self, evaluation: Evaluation) -> dict[str, Any]:
        examples = evaluation.confusion.sum(axis=1).tolist()
        rows = zip(self._class_names, examples, evaluation.class_accuracies, strict=True)
        classes = [
            {"name": name, "examples": count, "accuracy": accuracy}
            for name, count, accuracy in rows
        ]
        return {
            **self._facts,
            "checkpoint": evaluation.checkpoint,
            **evaluation.scores,
            "classes": classes,
            "confusion_matrix": evaluation.confusion.tolist(),
        }

    def _write_history(self, evaluation: Evaluation) -> None:
        """Adds a line to `evaluations.jsonl`, replacing a line of the same step."""
        path = self._path("evaluations.jsonl")
        lines = []
        if file_systems.is_file(path):
            lines = file_systems.read_text(path).splitlines()
        others = [line for line in lines if _step_in(line) not in (None, evaluation.global_step)]
        if broken := sum(_step_in(line) is None for line in lines):
            print(f"{path} is damaged: {broken} of {len(lines)} lines are dropped", flush=True)
        with replaced_file(path) as file:
            file.writelines(f"{line}\n" for line in [*others, _to_json(evaluation.scores)])

    def _write_events(self, evaluation: Evaluation) -> None:
        names = ("accuracy", "recall_at_5", "log_loss", *evaluation.metrics)
        scalars = {name: evaluation.scores[name] for name in names}
        if evaluation.total_loss is not None:
            scalars["loss"] = evaluation.total_loss
        values = [tf.Summary.Value(tag=tag, simple_value=scalar) for tag, scalar in scalars.items()]
        if self._events is None:
            # Names of events files differ by the second only; a second writer would empty the file.
            suffix = f".step-{evaluation.global_step}"
            with tf.Graph().as_default():  # file writers need graph mode
                self._events = tf.summary.FileWriter(self._folder, filename_suffix=suffix)
        self._events.add_summary(tf.Summary(value=values), evaluation.global_step)
        self._events.flush()

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)


def has_evaluation(folder: str | os.PathLike[str], checkpoint: str) -> bool:
    """Whether a checkpoint, or a later one, was evaluated into a folder after it was saved.

    Args:
      folder: that of an `EvaluationWriter`, which may not be there yet.
      checkpoint: path of a checkpoint, whose name has its step.
    """
    path = os.path.join(folder, _SUMMARY)
    with contextlib.suppress(FileNotFoundError):
        written = file_systems.facts_of(path).modified_nsec
        saved = file_systems.facts_of(f"{checkpoint}.index").modified_nsec
        try:
            last_step: int = read_checked(path)["global_step"]
        except (ValueError, KeyError) as error:
            print(f"{error}: {checkpoint} is evaluated again", flush=True)
            return False
        return saved <= written and (step_of(checkpoint) or 0) <= last_step
    return False


def _step_in(line: str) -> int | None:
    """Returns the step of a line of the history; None if the line is damaged."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return int(json.loads(line)["global_step"])
    return None


def _to_json(value: Any) -> str:
    return json.dumps(value, allow_nan=False)
