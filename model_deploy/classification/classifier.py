"""`Classifier`: an image classifier with dataset, preprocessing and network named by options.

The scripts pass in the factory of networks, `nets_factory.get_network_fn`.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import inputs
from model_deploy.classification.classifier_options import ClassifierOptions
from model_deploy.classification.losses import add_classification_losses
from model_deploy.commands import named_as
from model_deploy.config import DeploymentConfig
from model_deploy.evaluation import Evaluator
from model_deploy.metrics import RecallAt, add_metric

_IMAGES_RANK = 4
_SHOWN = 8  # images of a batch in a summary

# Argument of the input pipelines -> flag that sets it, for error messages.
_PIPELINE_FLAGS = {
    "preprocessing name": "preprocessing_name",
    "preprocessing": "preprocessing_name",
    "image_size": "train_image_size",
    "height": "train_image_size",
    "width": "train_image_size",
}
# Start of a network's error about the size of images -> the same in terms of the flag.
_NETWORK_FLAGS = {
    "images must be at least": "train_image_size must be at least",
    "inputs must be at least": "train_image_size must be at least",
    "spatial_squeeze needs": "train_image_size must be one that gives",
}


class Classifier(NamedTuple):
    """A network and its preprocessing, the same in training and evaluation.

    Attributes:
      options: the settings.
      num_classes: number of classes, without the `labels_offset` first ones.
      get_network_fn: `nets_factory.get_network_fn`.
    """

    options: ClassifierOptions
    num_classes: int
    get_network_fn: Callable[..., Any]

    @classmethod
    def of(
        cls,
        options: ClassifierOptions,
        dataset: inputs.Dataset,
        get_network_fn: Callable[..., Any],
    ) -> "Classifier":
        """Creates a classifier for the classes of a dataset.

        Raises:
          ValueError: if `labels_offset` leaves no class, or the network is unknown.
        """
        if options.labels_offset >= dataset.num_classes:
            raise ValueError(
                f"labels_offset must be less than the {dataset.num_classes} classes of "
                f"{dataset.name}, got {options.labels_offset}"
            )
        num_classes = dataset.num_classes - options.labels_offset
        classifier = cls(options, num_classes, get_network_fn)
        classifier.network_fn(is_training=True)  # raises if unknown
        return classifier

    def network_fn(self, is_training: bool) -> Any:
        """Returns the network as a function of images.

        Args:
          is_training: as for `nets_factory.get_network_fn`.

        Returns:
          A function of images, float32 [batch, height, width, channels], that returns logits,
          float32 [batch, classes], and end points by name.  Errors about the size of images name
          the flag.
        """
        return self._network_fn(self.options.weight_decay if is_training else 0.0, is_training)

    def _network_fn(self, weight_decay: float, is_training: bool) -> Any:
        name = self.options.model_name
        network_fn = self.get_network_fn(name, self.num_classes, weight_decay, is_training)

        @functools.wraps(network_fn)
        def named(images: Any, **keywords: Any) -> Any:
            with named_as(**_NETWORK_FLAGS):
                return network_fn(images, **keywords)

        return named

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
        """Returns the labels of a batch, from 0 on; a label below the offset stops the run.

        Args:
          batch: has "label": int64 [batch], or class probabilities, float32 [batch, classes].

        Returns:
          int64 [batch], in [0, num_classes); or float32 [batch, num_classes].

        Raises:
          tf.errors.InvalidArgumentError: when the graph runs, for a label below the offset.
        """
        labels, offset = batch["label"], self.options.labels_offset
        if not offset:
            return labels
        message = f"labels must be at least labels_offset={offset}"
        if labels.dtype.is_floating:
            left_out = tf.debugging.assert_equal(labels[:, :offset], 0.0, message=message)
            labels = labels[:, offset:]
        else:
            labels -= offset
            left_out = tf.debugging.assert_non_negative(labels, message=message)
        with tf.control_dependencies([left_out]):
            return tf.identity(labels)

    def train_batches(self, dataset: inputs.Dataset, **arguments: Any) -> inputs.TrainBatches:
        """Returns the batches for training, as the network and the options need them.

        Args:
          dataset: the split to train on.
          **arguments: more arguments of `inputs.train_batches`.

        Raises:
          ValueError: as `inputs.train_batches`, with the names of flags; if the network takes no
            images.
        """
        self._check_takes_images()
        with named_as(**_PIPELINE_FLAGS):
            return inputs.train_batches(dataset, **arguments, **self.input_options)

    def add_losses(self, batches: inputs.TrainBatches, *, shows_accuracy: bool = False) -> None:
        """Builds one clone's network on its batch; the `model_fn` of the deployment.

        Args:
          batches: yields "image", float32 [batch, height, width, channels], and "label", int64
            [batch] or, for mixed images, float32 [batch, classes].
          shows_accuracy: whether to add a metric of the training images: the share whose label, or
            class with the largest share, has the highest logit.
        """
        batch = next(batches)
        # A few images for TensorBoard, which scales each to the full range of brightness.
        tf.summary.image("inputs", batch["image"], max_outputs=_SHOWN)
        logits, labels = self._apply(batch, is_training=True)
        if shows_accuracy:
            classes = tf.argmax(labels, axis=1) if labels.dtype.is_floating else labels
            add_metric(RecallAt("accuracy", k=1), classes, logits)

    def predict(self, batch: dict[str, Any]) -> tuple[Any, Any]:
        """Returns logits and labels of a batch, for evaluation; adds the losses of training.

        Args:
          batch: "image", float32 [batch, height, width, channels], and "label", int64 [batch].

        Returns:
          Logits, float32 [batch, classes], and labels, int64 [batch].
        """
        return self._apply(batch, is_training=False)

    def evaluator(
        self,
        dataset: inputs.Dataset,
        config: DeploymentConfig | None = None,
        batch_size: int = 100,
        **options: Any,
    ) -> Evaluator:
        """Returns an evaluator on a split, using moving averages if they were trained.

        Args:
          dataset: the split.
          config: the clones; by default one, on the GPU where there is one.
          batch_size: images at a time, divided over the clones.
          **options: more arguments of `Evaluator`.

        Raises:
          ValueError: as `inputs.eval_batches` and `Evaluator`, with the names of flags; if the
            network takes no images.
        """

        self._check_takes_images()

        def batches() -> dict[str, Any]:
            with named_as(**_PIPELINE_FLAGS):
                pipeline = inputs.eval_batches(
                    dataset, batch_size=batch_size, include_index=True, **self.input_options
                )
            return next(pipeline)

        use_averages = self.options.moving_average_decay is not None
        return Evaluator(self.predict, batches, config=config, use_averages=use_averages, **options)

    def _check_takes_images(self) -> None:
        """Checks that the network takes images, if it declares its inputs."""
        taken = getattr(self.network_fn(is_training=False), "inputs", None)
        if taken is not None and getattr(taken, "rank", None) != _IMAGES_RANK:
            raise ValueError(
                f"model_name must be a network of images, got {self.options.model_name!r}"
            )

    def _apply(self, batch: dict[str, Any], is_training: bool) -> tuple[Any, Any]:
        """Returns logits and labels of a batch; adds its losses and regularization losses."""
        options = self.options
        network_fn = self._network_fn(options.weight_decay, is_training)
        images = batch["image"]
        mirrors = options.eval_mirrored and not is_training
        if mirrors:
            images = tf.concat([images, tf.reverse(images, [2])], axis=0)
        logits, end_points = network_fn(images)
        auxiliary_logits = end_points.get("AuxLogits")
        if mirrors:
            logits = _mean_of_halves(logits)
            auxiliary_logits = _mean_of_halves(auxiliary_logits)
        labels = self.labels(batch)
        add_classification_losses(
            logits,
            labels,
            auxiliary_logits=auxiliary_logits,
            label_smoothing=options.label_smoothing,
        )
        return logits, labels


def _mean_of_halves(logits: Any) -> Any:
    """Returns the mean of the logits of images and of their mirror images, [batch, classes].

    Args:
      logits: float [2 * batch, classes], mirror images last; None returns None.
    """
    return None if logits is None else tf.add_n(tf.split(logits, 2)) / 2
