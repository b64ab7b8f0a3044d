"""Evaluations of a run's own checkpoints, on a split that it does not train on."""

import contextlib
from collections.abc import Iterator

from model_deploy import training
from model_deploy.config import DeploymentConfig
from model_deploy.image_training.run import PlannedRun

# Of more classes a picture of the confusion matrix would show nothing.
MOST_CLASSES_SHOWN = 100


class Evaluations:
    """Those of a run's checkpoints; the newest one is not evaluated twice.

    Args:
      evaluator: of the held-out split.
    """

    def __init__(self, evaluator: training.Evaluator) -> None:
        self._evaluator = evaluator
        self._last: training.Evaluation | None = None

    def scores(self, checkpoint: str) -> dict[str, float]:
        """What the loop shows of a checkpoint."""
        found = self._last = self._evaluator.evaluate(checkpoint)
        return {"accuracy": found.accuracy, "recall_at_5": found.recall_at_5}

    def of_newest(self, train_dir: str) -> training.Evaluation:
        """The evaluation of the newest checkpoint in a folder that this run writes."""
        newest = training.find_checkpoint(train_dir)
        if self._last is None or self._last.checkpoint != newest:
            self._last = self._evaluator.evaluate(newest)
        return self._last


@contextlib.contextmanager
def evaluations_of(
    run: PlannedRun, classifier: training.Classifier
) -> Iterator[Evaluations | None]:
    """The chief's evaluations on the test split, or else the validation split; None without."""
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
    # One clone, on a GPU as those of the training, or not.
    config = DeploymentConfig(
        clone_on_cpu=run.config.clone_on_cpu,
        gpu_memory_fraction=run.config.gpu_memory_fraction,
        tf32=run.config.tf32,
    )
    held_out = training.get_dataset(options, run.held_out)
    with classifier.evaluator(held_out, config) as evaluator:
        yield Evaluations(evaluator)


def evaluate_newest(run: PlannedRun, evaluations: Evaluations) -> float:
    """Evaluates the newest checkpoint."""
    found = evaluations.of_newest(run.options.train_dir)
    print(
        f"{run.held_out} accuracy at step {found.global_step}: {found.accuracy:.4f} "
        f"({found.examples} images)"
    )
    show_confusion(run, found)
    return found.accuracy


def show_confusion(run: PlannedRun, found: training.Evaluation) -> None:
    """Gives TensorBoard the confusion matrix of an evaluation, unless there are too many classes.

    The network's classes are those of the dataset without the first `labels_offset`.
    """
    names = run.dataset.class_names[run.options.labels_offset :]
    if len(names) > MOST_CLASSES_SHOWN:
        return
    title = f"{run.held_out} accuracy {found.accuracy:.4f} at step {found.global_step}"
    board = training.Board(run.options.train_dir, suffix=".evaluation")
    picture = training.confusion_png(found.confusion, names, title)
    board.add_picture("evaluation/confusion_matrix", picture, found.global_step)
    board.close()
