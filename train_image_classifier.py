"""Trains an image classifier on clones: flags -> options -> the library.

    train_image_classifier --train_dir=digits_run

trains a LeNet on scikit-learn's handwritten digits, on all visible GPUs or else on
two clones on the CPU, and evaluates it.  `--help` lists all flags.
"""

import contextlib
import dataclasses
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple


@contextlib.contextmanager
def _without_tensorflow_notices() -> Iterator[None]:
    """Holds back what TensorFlow's libraries print when they load, unless loading fails."""
    # 3 also hides errors: without a driver, that there is no GPU.
    level = "2" if os.path.exists("/dev/nvidiactl") else "3"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", level)
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as held_back:
        os.dup2(held_back.fileno(), 2)
        try:
            yield
        except BaseException:
            held_back.seek(0)
            os.write(stderr, held_back.read())
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


with _without_tensorflow_notices():
    import tensorflow.compat.v1 as tf
    from absl import flags

    import model_deploy
    from model_deploy import inputs, training
    from model_deploy.options import define_flags, option, options_from_flags
    from nets import nets_factory

# Epochs of a run whose length is not given.
DEFAULT_EPOCHS = 20


@dataclasses.dataclass(frozen=True)
class TrainOptions(
    training.DeploymentOptions, training.OptimizerOptions, training.LearningRateOptions
):
    """All settings of a training run; each is a flag."""

    train_dir: str = option("/tmp/tfmodel/", "folder for checkpoints and TensorBoard events")
    dataset_name: str = option("digits", "name of the dataset")
    dataset_split_name: str = option("train", "split to train on")
    dataset_dir: str | None = option(None, "folder of the dataset's files; digits needs none")
    model_name: str = option("lenet", "name of the network")
    labels_offset: int = option(
        0, "subtracted from labels: 1 leaves out the background class of ImageNet", minimum=0
    )
    skip_corrupt_records: int = option(0, "how many corrupt records may be skipped", minimum=0)
    num_readers: int | None = option(
        None, "images read at the same time; default: tuned while it runs", minimum=1
    )
    num_preprocessing_threads: int | None = option(
        None, "calls of the preprocessing at a time; default: tuned while it runs", minimum=1
    )
    use_grayscale: bool = option(False, "turn the images to grey")
    preprocessing_name: str | None = option(
        None, "name of the preprocessing; default: that of the network"
    )
    train_image_size: int | None = option(
        None, "height and width of the images; default: those of the network", minimum=1
    )
    max_number_of_steps: int | None = option(
        None, f"number of the last step; default: that of epoch {DEFAULT_EPOCHS}", minimum=1
    )
    weight_decay: float = option(0.00004, "weight of the L2 regularization", minimum=0)
    label_smoothing: float = option(
        0.0, "share of the target spread over all classes", minimum=0, below=1
    )
    moving_average_decay: float | None = option(
        None, "decay of the moving averages of the variables; default: none", above=0, below=1
    )
    clip_norm: float | None = option(
        None, "largest joint L2 norm of the gradients; default: not clipped", above=0
    )
    seed: int = option(0, "seed of initial values and of the order of images", minimum=0)
    log_every_n_steps: int = option(10, "steps between updates of the progress shown", minimum=1)
    save_interval_secs: int = option(600, "seconds between checkpoints", minimum=1)
    save_summaries_secs: int = option(600, "seconds between summaries", minimum=1)
    keep_checkpoints: int = option(5, "how many checkpoints of this run to keep", minimum=1)
    describe: bool = option(False, "print what is placed on which device, before training")
    debug: bool = option(False, "show where an error comes from")

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_name("model_name", self.model_name, nets_factory.networks_map)
        _check_name("dataset_name", self.dataset_name, inputs.dataset_names())
        if self.preprocessing_name is not None:
            names = inputs.preprocessing_names()
            _check_name("preprocessing_name", self.preprocessing_name, names)


def _check_name(field: str, name: str, names: Iterable[str]) -> None:
    if name not in names:
        raise ValueError(f"{field} must be one of {', '.join(names)}, got {name!r}")


class Classifier(NamedTuple):
    """The network and its preprocessing, the same in training and evaluation."""

    options: TrainOptions
    num_classes: int

    def network_fn(self, is_training: bool) -> Any:
        """The network as a function of images; an unknown name lists the valid ones."""
        weight_decay = self.options.weight_decay if is_training else 0.0
        name = self.options.model_name
        return nets_factory.get_network_fn(name, self.num_classes, weight_decay, is_training)

    @property
    def input_options(self) -> dict[str, Any]:
        """Keyword arguments for the input pipelines."""
        size = self.options.train_image_size
        options: dict[str, Any] = {
            "preprocessing": self.options.preprocessing_name or self.options.model_name,
            "image_size": size or self.network_fn(False).default_image_size,
            "num_readers": self.options.num_readers,
            "num_preprocessing_threads": self.options.num_preprocessing_threads,
        }
        if self.options.use_grayscale:
            options["preprocessing_options"] = {"use_grayscale": True}
        return options

    def labels(self, batch: dict[str, Any]) -> Any:
        """Labels of a batch, from 0 on; one below the offset stops the run."""
        if not self.options.labels_offset:
            return batch["label"]
        labels = batch["label"] - self.options.labels_offset
        message = f"labels must be at least labels_offset={self.options.labels_offset}"
        with tf.control_dependencies([tf.debugging.assert_non_negative(labels, message=message)]):
            return tf.identity(labels)

    def add_losses(self, batches: inputs.TrainBatches) -> None:
        """The `model_fn` of the deployment: one clone's network on its batch."""
        batch = next(batches)
        logits, end_points = self.network_fn(is_training=True)(batch["image"])
        training.add_classification_losses(
            logits,
            self.labels(batch),
            auxiliary_logits=end_points.get("AuxLogits"),
            label_smoothing=self.options.label_smoothing,
        )

    def predict(self, dataset: inputs.Dataset) -> tuple[Any, Any]:
        """Logits and labels of a split, for evaluation."""
        batch = next(inputs.eval_batches(dataset, **self.input_options))
        logits, _ = self.network_fn(is_training=False)(batch["image"])
        return logits, self.labels(batch)


class Run(NamedTuple):
    """A run: what is trained on what, and for how long."""

    config: model_deploy.DeploymentConfig
    dataset: inputs.Dataset
    batch_size: int
    steps_per_epoch: int
    max_steps: int

    @property
    def images_per_step(self) -> int:
        """Images over all clones of this worker."""
        return self.batch_size * self.config.num_clones


def get_dataset(options: TrainOptions, split: str) -> inputs.Dataset:
    """A split of the dataset that the options name."""
    return inputs.get_dataset(
        options.dataset_name,
        split,
        options.dataset_dir,
        skip_corrupt_records=options.skip_corrupt_records,
    )


def plan(options: TrainOptions) -> Run:
    """Finds devices and dataset and checks the settings against them.

    Raises:
      ValueError: for a setting that breaks a rule.
    """
    num_gpus = len(tf.config.list_physical_devices("GPU"))
    config = training.deployment_config(options, num_gpus)
    batch_size = training.clone_batch_size(options, config.num_clones)
    dataset = get_dataset(options, options.dataset_split_name)
    if options.labels_offset >= dataset.num_classes:
        raise ValueError(
            f"labels_offset must be less than the {dataset.num_classes} classes of "
            f"{dataset.name}, got {options.labels_offset}"
        )
    steps_per_epoch = dataset.num_examples // (batch_size * config.num_clones)
    if steps_per_epoch < 1:
        raise ValueError(
            f"the global batch size must be at most the {dataset.num_examples} images of "
            f"{dataset.name}, got {batch_size * config.num_clones}"
        )
    max_steps = options.max_number_of_steps or DEFAULT_EPOCHS * steps_per_epoch
    return Run(config, dataset, batch_size, steps_per_epoch, max_steps)


def build(
    options: TrainOptions, run: Run, classifier: Classifier
) -> tuple[model_deploy.DeployedModel, inputs.TrainBatches]:
    """Builds inputs, optimizer and clones in the default graph."""
    with tf.device(run.config.variables_device()):
        global_step = tf.train.get_or_create_global_step()
    with tf.device(run.config.inputs_device()):
        batches = inputs.train_batches(
            run.dataset,
            batch_size=run.batch_size,
            num_clones=run.config.num_clones,
            num_shards=run.config.num_replicas,
            shard_index=run.config.replica_id,
            seed=options.seed,
            # One worker's batches follow from the step; several each count their own.
            position=global_step if run.config.num_replicas == 1 else None,
            clone_devices=[run.config.clone_device(i) for i in range(run.config.num_clones)],
            **classifier.input_options,
        )
    with tf.device(run.config.optimizer_device()):
        rate = training.build_learning_rate(options, global_step, run.steps_per_epoch)
        optimizer = training.build_optimizer(rate, options)
        summaries = [tf.summary.scalar("learning_rate", rate, collections=[])]
    update_ops = []
    if options.moving_average_decay is not None:
        update_ops = [training.moving_average_update(options.moving_average_decay, global_step)]
    model = model_deploy.deploy(
        run.config,
        classifier.add_losses,
        [batches],
        optimizer=optimizer,
        update_ops=update_ops,
        summaries=summaries,
        clip_norm=options.clip_norm,
    )
    return model, batches


def train(options: TrainOptions) -> float | None:
    """Trains and evaluates; returns the test accuracy, None where there is no test split.

    Raises:
      ValueError: for a setting that breaks a rule.
      OSError: if the train_dir cannot be written.
    """
    run = plan(options)
    classifier = Classifier(options, run.dataset.num_classes - options.labels_offset)
    is_chief = options.task == 0
    if is_chief:
        training.check_writable(options.train_dir)
    with tf.Graph().as_default():
        tf.set_random_seed(options.seed)
        model, batches = build(options, run, classifier)
        print_banner(options, run)
        if options.describe:
            print(model_deploy.describe(model))
        result = model_deploy.train(
            model,
            options.train_dir,
            max_steps=run.max_steps,
            images_per_step=run.images_per_step,
            wait_secs=batches.wait_secs,
            log_every_n_steps=options.log_every_n_steps,
            save_interval_secs=options.save_interval_secs,
            save_summaries_secs=options.save_summaries_secs,
            keep_checkpoints=options.keep_checkpoints,
            master=options.master,
            is_chief=is_chief,
        )
    if result.total_loss is None:
        print(f"nothing left to train: {options.train_dir} is at step {result.global_step}")
    return evaluate(options, run.dataset, classifier) if is_chief else None


def evaluate(
    options: TrainOptions, dataset: inputs.Dataset, classifier: Classifier
) -> float | None:
    """Evaluates the newest checkpoint on the test split, or else the validation split."""
    others = [split for split in ("test", "validation") if split in dataset.splits]
    if not others:
        print(f"not evaluated: {dataset.name} has no test or validation split")
        return None
    split = get_dataset(options, others[0])
    found = training.evaluate(
        lambda: classifier.predict(split),
        options.train_dir,
        use_averages=options.moving_average_decay is not None,
    )
    print(
        f"{others[0]} accuracy at step {found.global_step}: {found.accuracy:.4f} "
        f"({found.examples} images)"
    )
    return found.accuracy


def print_banner(options: TrainOptions, run: Run) -> None:
    """Prints what is about to be trained, on what."""
    if run.config.clone_on_cpu and not options.clone_on_cpu:
        print("no GPU is visible: the clones run on the CPU (as with --clone_on_cpu)")
    devices = [run.config.clone_device(i) for i in range(run.config.num_clones)]
    print(
        f"{options.model_name} on {run.dataset.name} ({run.dataset.num_examples} images, "
        f"{run.dataset.num_classes} classes)\n"
        f"{run.config.num_clones} clone(s) on {', '.join(sorted(set(devices)))}, "
        f"{run.config.num_replicas} replica(s), {run.config.num_ps_tasks} ps\n"
        f"batch size {run.batch_size} per clone, "
        f"{run.images_per_step * run.config.num_replicas} global; "
        f"{run.steps_per_epoch} steps per epoch, up to step {run.max_steps}\n"
        f"{options.optimizer}, learning rate {options.learning_rate} "
        f"({options.learning_rate_decay_type}); checkpoints in {options.train_dir}",
        flush=True,
    )


def parse(argv: list[str]) -> TrainOptions | None:
    """Options from the command line; None after printing the help that it asks for.

    Raises:
      ValueError: for an unknown flag or a bad value.
    """
    flag_values = flags.FlagValues()
    flags.DEFINE_boolean("help", False, "print this help", flag_values, short_name="h")
    define_flags(TrainOptions, flag_values)
    try:
        rest = flag_values(argv)[1:]
    except flags.Error as error:
        raise ValueError(str(error)) from error
    if rest:
        raise ValueError(f"arguments must be flags such as --train_dir=DIR, got {' '.join(rest)}")
    if flag_values.help:
        print(__doc__)
        print(flag_values.module_help(define_flags.__module__))
        return None
    options: TrainOptions = options_from_flags(TrainOptions, flag_values)
    return options


def main(argv: list[str]) -> int:
    """Runs the command; a user's mistake is one line and exit code 1 or 2."""
    tf.disable_eager_execution()
    # `==` then compares variables by identity: slim does so for each new one with all before,
    # which takes most of the time to build a deep network.
    tf.disable_tensor_equality()
    tf.get_logger().setLevel("ERROR")
    try:
        options = parse(argv)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    try:
        if options is not None:
            train(options)
    except (ValueError, OSError, FloatingPointError) as error:
        if options is not None and options.debug:
            raise
        print(f"error: {error}", file=sys.stderr)
        return 1
    except tf.errors.OpError as error:
        if options is not None and options.debug:
            raise
        # Behind its first line comes TensorFlow's own account of the place.
        print(f"error: {error.message.strip().splitlines()[0]}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted: the state is saved", file=sys.stderr)
        return 130
    return 0


def run() -> None:
    """The command `train_image_classifier`."""
    sys.exit(main(sys.argv))


if __name__ == "__main__":
    run()
