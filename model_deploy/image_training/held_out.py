"""Evaluates a run's own checkpoints on a split that it does not train on."""

import contextlib
from collections.abc import Iterator

from model_deploy import training
from model_deploy.config import DeploymentConfig
from model_deploy.image_training.run import PlannedRun
from model_deploy.image_training.train_options import SCORES

# With more classes the picture of the confusion matrix would be unreadable.
MOST_CLASSES_SHOWN = 100


class Evaluations:
    """Evaluates a run's checkpoints; the newest is not evaluated twice.

    Args:
      evaluator: evaluator on the held-out split.
    """

    def __init__(self, evaluator: training.Evaluator) -> None:
        self._evaluator = evaluator
        self._last: training.Evaluation | None = None

    def scores(self, checkpoint: str) -> dict[str, float]:
        """Returns the scores of a checkpoint that the training loop shows."""
        found = self._last = self._evaluator.evaluate(checkpoint)
        return {name: getattr(found, name) for name in SCORES}

    def of_newest(self, train_dir: str) -> training.Evaluation:
        """Returns the evaluation of the newest checkpoint in the run's folder."""
        newest = training.find_checkpoint(train_dir)
        if self._last is None or self._last.checkpoint != newest:
            self._last = self._evaluator.evaluate(train_dir)
        return self._last


@contextlib.contextmanager
def evaluations_of(
    run: PlannedRun, classifier: training.Classifier
) -> Iterator[Evaluations | None]:
    """Opens the chief's evaluations on the test or validation split; None without."""
    options = run.options
    if options.task != 0:
        yield None
        return
    if run.held_out is None:
        if options.eval_every_n_steps is not None:
            raise ValueError(
                "eval_every_n_steps must go with a dataset that has a test or validation split, "
                f"got {options.eval_every_n_steps} with {run.dataset.name}"
            )
        print(f"not evaluated: {run.dataset.name} has no test or validation split")
        yield None
        return
    # One clone, on a GPU if the training uses GPUs.
    config = DeploymentConfig(
        clone_on_cpu=run.config.clone_on_cpu,
        gpu_memory_fraction=run.config.gpu_memory_fraction,
        tf32=run.config.tf32,
    )
    held_out = training.get_dataset(options, run.held_out)
    with classifier.evaluator(held_out, config) as evaluator:
        yield Evaluations(evaluator)


def evaluate_newest(run: PlannedRun, evaluations: Evaluations) -> float:
    """Evaluates the newest checkpoint; prints and returns the accuracy."""
    found = evaluations.of_newest(run.options.train_dir)
    print(
        f"{run.held_out} accuracy at step {found.global_step}: {found.accuracy:.4f} "
        f"({found.examples} images)"
    )
    show_confusion(run, found)
    return found.accuracy


def show_confusion(run: PlannedRun, found: training.Evaluation) -> None:
    """Adds the confusion matrix to TensorBoard, unless there are too many classes.

    The network lacks the first `labels_offset` classes of the dataset.
    """
    names = run.dataset.class_names[run.options.labels_offset :]
    if len(names) > MOST_CLASSES_SHOWN:
        return
    title = f"{run.held_out} accuracy {found.accuracy:.4f} at step {found.global_step}"
    board = training.Board(run.options.train_dir, suffix=".evaluation")
    picture = training.confusion_png(found.confusion, names, title)
    board.add_picture("evaluation/confusion_matrix", picture, found.global_step)
    board.close()
