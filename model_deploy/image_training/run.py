"""`PlannedRun`: a training run as planned from its options and the machine."""

from typing import NamedTuple

import tensorflow
import tensorflow.compat.v1 as tf

from model_deploy import inputs, training
from model_deploy.config import DeploymentConfig
from model_deploy.image_training.networks import Networks
from model_deploy.image_training.train_options import DEFAULT_EPOCHS, TrainOptions
from model_deploy.ways import way_for


class PlannedRun(NamedTuple):
    """A run before its first step: what it trains, on which data, and for how long.

    Attributes:
      options: the options as given.
      config: the deployment of this process.
      dataset: the split to train on.
      batch_size: images per batch of a clone.
      steps_per_epoch: updates of the variables per epoch.
      max_steps: number of the last step.
      batches_in_update: batches, of all workers, per update.
    """

    options: TrainOptions
    config: DeploymentConfig
    dataset: inputs.Dataset
    batch_size: int
    steps_per_epoch: int
    max_steps: int
    batches_in_update: int

    @property
    def held_out(self) -> str | None:
        """The split to evaluate on; None if the dataset has none."""
        splits = [name for name in ("test", "validation") if name in self.dataset.splits]
        return splits[0] if splits else None

    @property
    def update_batch_size(self) -> int:
        """Images per update of the variables, over all workers that take part."""
        return self.batch_size * self.batches_in_update

    @property
    def images_per_step(self) -> int:
        """Images that this worker takes per step."""
        return self.batch_size * min(self.batches_in_update, self.config.batches_per_step)


def plan(options: TrainOptions) -> PlannedRun:
    """Finds devices and dataset, and checks the options against them.

    Raises:
      ValueError: for an invalid option.
    """
    num_gpus = len(tf.config.list_physical_devices("GPU"))
    config = training.deployment_config(options, num_gpus)
    batch_size = training.clone_batch_size(options, config.num_clones)
    dataset = training.get_dataset(options, options.dataset_split_name)
    batches = way_for(config).clones_in_update * options.accumulate_steps
    # Checks, before anything is built, that the dataset is large enough for the pipelines.
    inputs.Order(dataset.num_examples, batch_size * config.batches_per_step * config.num_replicas)
    steps_per_epoch = dataset.num_examples // (batch_size * batches)
    max_steps = options.max_number_of_steps or DEFAULT_EPOCHS * steps_per_epoch
    return PlannedRun(options, config, dataset, batch_size, steps_per_epoch, max_steps, batches)


def prepare(
    options: TrainOptions, networks: Networks, *, checks_start: bool
) -> tuple[PlannedRun, training.Classifier]:
    """Plans a run and creates its classifier, before any graph is built.

    Args:
      options: the options.
      networks: the networks to choose from.
      checks_start: whether to check the train_dir, as in the process that writes to it.

    Raises:
      ValueError: for a setting that breaks a rule.
      OSError: if the train_dir cannot be written.
    """
    if options.deterministic:
        # A setting of the process, read when ops are made, also by the evaluation's graph.
        tensorflow.config.experimental.enable_op_determinism()
    run = plan(options)
    classifier = training.Classifier.of(options, run.dataset, networks.get_network_fn)
    if checks_start:
        # Early: `train` checks both again, but only after the graph is built.
        training.check_start(options.train_dir, options.checkpoint_path, options.resume)
        training.check_writable(options.train_dir)
    return run, classifier
