"""Evaluates an image classifier: accuracy, recall at 5, each class, each image.

    eval_image_classifier --train_dir=digits_run

evaluates the newest checkpoint of a run, with the settings that the run has saved, on the
test split.  With `--eval_interval_secs` it evaluates each checkpoint as it appears, until the
run has ended.  `--checkpoint_path` names any other checkpoint; flags describe its network.
"""

import dataclasses
import os
import sys
from collections.abc import Iterable, Iterator
from typing import ClassVar

from model_deploy import file_systems
from model_deploy.commands import without_tensorflow_notices

with without_tensorflow_notices():
    import tensorflow.compat.v1 as tf

    import model_deploy
    from model_deploy import inputs, training
    from model_deploy.commands import named_as, option, run_command
    from nets import nets_factory


@dataclasses.dataclass(frozen=True)
class EvalOptions(training.ClassifierOptions):
    """All settings of an evaluation; each is a flag."""

    topic: ClassVar[str] = "evaluation"

    # Those of a training run are about its own split, devices and start.
    not_reused: ClassVar[tuple[str, ...]] = (
        "batch_size",
        "checkpoint_path",
        "clone_on_cpu",
        "dataset_split_name",
        "debug",
        "master",
        "num_clones",
    )

    train_dir: str | None = option(
        None, "folder of a run; its settings stand in for flags", topic="run"
    )
    checkpoint_path: str | None = option(
        None, "checkpoint, or a folder for its newest one; default: train_dir", topic="run"
    )
    eval_dir: str | None = option(
        None,
        "folder for results and TensorBoard events; default: eval_<split> beside the checkpoint",
        topic="run",
    )
    dataset_split_name: str | None = option(
        None, "split to evaluate on; default: test, or else validation", topic="inputs"
    )
    eval_image_size: int | None = option(
        None,
        "height and width of the images; default: those of training",
        minimum=1,
        topic="inputs",
    )
    batch_size: int = option(
        100, "images at a time, divided over the clones", minimum=1, topic="inputs"
    )
    max_num_batches: int | None = option(
        None, "end after this many batches; default: all", minimum=1
    )
    num_clones: int | None = option(
        None,
        "clones; default: one for each visible GPU, or 1 on the CPU",
        minimum=1,
        topic="deployment",
    )
    clone_on_cpu: bool = option(
        False, "put the clones on the CPU; by itself without a GPU", topic="deployment"
    )
    master: str = option(
        "", "address of the TensorFlow server to use; default: this process", topic="cluster"
    )
    eval_interval_secs: float | None = option(
        None,
        "seconds between looks for new checkpoints; default: evaluate the newest one and end",
        above=0,
    )
    eval_timeout_secs: float = option(
        3600.0, "how many seconds to wait for the next checkpoint", minimum=0
    )
    max_number_of_steps: int | None = option(
        None,
        "step after which to look for no more checkpoints; default: that of the run",
        minimum=1,
    )
    quantize: bool = training.gone("quantize")
    debug: bool = option(False, "show where an error comes from", topic="other")

    def __post_init__(self) -> None:
        super().__post_init__()
        nets_factory.check_network_name("model_name", self.model_name)
        if not self.source:
            raise ValueError("train_dir or checkpoint_path must be given, got neither")

    @property
    def source(self) -> str:
        """The checkpoint or folder to evaluate."""
        return self.checkpoint_path or self.train_dir or ""

    @property
    def source_flag(self) -> str:
        """The flag that names it."""
        return "checkpoint_path" if self.checkpoint_path else "train_dir"

    @property
    def size_flag(self) -> str:
        """The flag that says how large the images are."""
        return "train_image_size" if self.eval_image_size is None else "eval_image_size"


def evaluate(options: EvalOptions) -> training.Evaluation:
    """Evaluates what the options name, writes and prints the results; returns the last one.

    Raises:
      ValueError: for a setting that breaks a rule, or if there is no checkpoint.
      OSError: if the results cannot be written.
    """
    checkpoints = checkpoints_of(options)
    dataset = split_of(options)
    eval_dir = options.eval_dir or default_eval_dir(options, dataset.split)
    if options.eval_image_size is not None:
        options = dataclasses.replace(options, train_image_size=options.eval_image_size)
    classifier = training.Classifier.of(options, dataset, nets_factory.get_network_fn)
    found = None
    with named_as(train_image_size=options.size_flag):
        built = build_evaluator(options, classifier, dataset)
    with (
        built as evaluator,
        build_writer(options, dataset, eval_dir) as writer,
    ):
        for found in evaluations(evaluator, checkpoints):
            writer.write(found)
            print(f"{line_of(found, dataset.split)}; results in {eval_dir}", flush=True)
    reason = getattr(checkpoints, "reason", "")
    if found is None:
        raise ValueError(f"at least one checkpoint must appear, got none: {reason}")
    if reason:
        print(f"stopped: {reason}")
    return found


def checkpoints_of(options: EvalOptions) -> Iterable[str]:
    """The checkpoint to evaluate, or the watch over those that appear.

    Raises:
      ValueError: if there is no checkpoint, or no folder to watch.
    """
    if options.eval_interval_secs is None:
        with named_as(checkpoint_path=options.source_flag):
            return [training.find_checkpoint(options.source)]
    if not file_systems.is_folder(options.source):
        raise ValueError(
            f"{options.source_flag} must be a folder with eval_interval_secs="
            f"{options.eval_interval_secs:g}, got {options.source}"
        )
    return training.CheckpointWatch(
        options.source,
        options.eval_interval_secs,
        timeout_secs=options.eval_timeout_secs,
        last_step=options.max_number_of_steps,
    )


def split_of(options: EvalOptions) -> inputs.Dataset:
    """The split to evaluate on."""
    if options.dataset_split_name is None:
        return training.get_evaluation_dataset(options)
    return training.get_dataset(options, options.dataset_split_name)


def default_eval_dir(options: EvalOptions, split: str) -> str:
    """`eval_<split>` in the train_dir, or else in the folder of the checkpoint."""
    folder = options.train_dir or options.checkpoint_path or ""
    if not file_systems.is_folder(folder):
        folder = os.path.dirname(folder)
    return os.path.join(folder, f"eval_{split}")


def build_writer(
    options: EvalOptions, dataset: inputs.Dataset, eval_dir: str
) -> training.EvaluationWriter:
    """The writer of the results."""
    facts = {
        "model": options.model_name,
        "dataset": dataset.name,
        "split": dataset.split,
        "moving_averages": options.moving_average_decay is not None,
        "mirrored": options.eval_mirrored,
    }
    class_names = dataset.class_names[options.labels_offset :]
    return training.EvaluationWriter(eval_dir, class_names, facts)


def build_evaluator(
    options: EvalOptions, classifier: training.Classifier, dataset: inputs.Dataset
) -> training.Evaluator:
    """The evaluator on the GPUs that are visible, or else on the CPU.

    Raises:
      ValueError: if there are fewer GPUs than clones.
    """
    num_gpus = len(tf.config.list_physical_devices("GPU"))
    on_cpu = options.clone_on_cpu or num_gpus == 0
    clones = training.DeploymentOptions(
        num_clones=options.num_clones or (1 if on_cpu else num_gpus), clone_on_cpu=on_cpu
    )
    config: model_deploy.DeploymentConfig = training.deployment_config(clones, num_gpus)
    return classifier.evaluator(
        dataset,
        config,
        batch_size=options.batch_size,
        max_num_batches=options.max_num_batches,
        master=options.master,
    )


def evaluations(
    evaluator: training.Evaluator, checkpoints: Iterable[str]
) -> Iterator[training.Evaluation]:
    """Evaluates one checkpoint after another; the run may delete them meanwhile."""
    for path in checkpoints:
        try:
            found = evaluator.evaluate(path)
        except (ValueError, tf.errors.OpError):
            if training.is_checkpoint(path):
                raise
            print(f"not evaluated: {path} has been deleted", flush=True)
            continue
        yield found


def line_of(found: training.Evaluation, split: str) -> str:
    """What a person wants to know first."""
    return (
        f"{split} at step {found.global_step}: accuracy {found.accuracy:.4f}, "
        f"recall at 5 {found.recall_at_5:.4f}, total loss {found.total_loss:.4f} "
        f"({found.examples} images in {found.seconds:.1f} s)"
    )


def main(argv: list[str]) -> int:
    """Runs the command; a user's mistake is one line and exit code 1 or 2."""
    return run_command(argv, EvalOptions, evaluate, __doc__, saved_in="train_dir")


def run() -> None:
    """The command `eval_image_classifier`."""
    sys.exit(main(sys.argv))


if __name__ == "__main__":
    run()
