"""`deploy_model`: a Keras model with loss, optimizer and metrics as a deployment."""

import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow
import tensorflow.compat.v1 as tf

from model_deploy.config import DeploymentConfig
from model_deploy.deployment import DeployedModel, deploy
from model_deploy.keras.libraries import library_of
from model_deploy.keras.losses import get_loss, get_metrics, metric_values
from model_deploy.keras.optimizers import Translation, translate_optimizer
from model_deploy.randomness import random_by_step

# The graph's Keras models that are deployed.  Not a string: those collections go into checkpoints.
_MODELS = ("model_deploy", "keras_models")


class DeployedKerasModel(DeployedModel):
    """A deployment of a Keras model.

    Attributes:
      keras_model: the model in the clones' graph; the first clone's if each clone made one.
      learning_rate: the learning rate of the step, a float32 scalar; None without an optimizer.
      metrics: metrics by name, means over the clones' batches, float scalars.
    """

    keras_model: Any = None
    learning_rate: Any = None
    metrics: Mapping[str, Any] = types.MappingProxyType({})

    @classmethod
    def of_deployed(
        cls, deployed: DeployedModel, keras_model: Any, learning_rate: Any
    ) -> "DeployedKerasModel":
        """Adds a Keras model to a deployment that `deploy` made of it.

        Args:
          deployed: the deployment, whose clones' outputs have "metrics".
          keras_model: the first clone's model.
          learning_rate: a float scalar, or None.
        """
        found = cls(*deployed)
        vars(found).update(vars(deployed))
        outputs = [clone.outputs for clone in deployed.clones]
        found.keras_model, found.learning_rate = keras_model, learning_rate
        with tf.name_scope("metrics"):
            found.metrics = {
                name: tf.divide(
                    tf.add_n([each["metrics"][name] for each in outputs]), len(outputs), name
                )
                for name in outputs[0]["metrics"]
            }
        return found


def deploy_model(
    config: DeploymentConfig,
    model: Any,
    loss: Any,
    optimizer: Any,
    batches: Any,
    *,
    metrics: Sequence[Any] = (),
    by_rows: bool = False,
    **settings: Any,
) -> DeployedKerasModel:
    """Builds clones of a Keras model and the op that trains them, like `model.compile`.

    Each clone takes its own batch; its loss is Keras' mean over the batch (`sum_over_batch_size`),
    and the total loss is the mean over clones.  With the reduction `sum` it is the mean of the
    clones' sums.  Regularizers count once, losses of `add_loss` once per clone.  Layers with
    `trainable=False` are not trained.  Dropout depends on seed and step, see `random_by_step`.

    Args:
      config: the deployment.
      model: a function without arguments that makes the model, of Keras 3 or tf-keras, called in
        each clone (clones share variables, named after the layers); or a model made in the graph,
        inside of `tf.device(config.variables_device())`.
      loss: a Keras loss, a function of labels and predictions, or a name.
      optimizer: a Keras optimizer or its name, see `translate_optimizer`; or a
        `tf.compat.v1.train.Optimizer`; None to train nothing.
      batches: an iterator that yields one batch per clone, such as `inputs.train_batches`; or a
        `tf.data.Dataset` of batches.  A batch is (features, labels) or (features, labels,
        weights), each of shape [batch, ...], or a mapping with "image" and "label".
      metrics: Keras 3 metrics, functions or names, to compute on each batch.
      by_rows: whether Keras' Adam or AdamW trains tables of embeddings at the cost of the rows of a
        step, to the same values, see `RowAdamOptimizer`.
      **settings: more arguments of `deploy`.

    Returns:
      A `DeployedKerasModel`, for `train`.

    Raises:
      ValueError: as `deploy`, `translate_optimizer`; for a loss, metric or model of another kind.
      RuntimeError: if TensorFlow executes eagerly.
    """
    is_model = _is_model(model)
    if not (is_model or callable(model)):
        raise ValueError(f"model must be a Keras model or a function that makes one, got {model!r}")
    counted = get_metrics(metrics)
    num_before = len(tf.get_collection(_MODELS))

    def first_model() -> Any:
        """Returns the first clone's model, which is made later."""
        return tf.get_collection(_MODELS)[num_before]()

    if by_rows and isinstance(optimizer, tf.train.Optimizer):
        raise ValueError(
            "by_rows must be False with an optimizer of TensorFlow, which says so itself, such as "
            f"RowAdamOptimizer, got {type(optimizer).__name__}"
        )
    rate = None
    if not (optimizer is None or isinstance(optimizer, tf.train.Optimizer)):
        translation = _translate(config, optimizer, first_model, by_rows)
        optimizer, rate = translation.optimizer, translation.learning_rate
        if translation.clip_norm is not None:
            settings.setdefault("clip_norm", translation.clip_norm)

    def model_fn(batches: Iterator[Any]) -> dict[str, Any]:
        features, labels, weights = _parts_of(next(batches))
        called = model if is_model else _made_by(model)
        # Kept in a function, which hides the model from the copying of clones.
        tf.add_to_collection(_MODELS, lambda: called)
        predictions = called(features, training=True)
        scalar = get_loss(loss, library_of(called))
        tf.losses.add_loss(scalar(labels, predictions, weights))
        values = metric_values(counted, labels, predictions, weights)
        for name, value in values.items():
            tf.summary.scalar(f"metrics/{name}", value)
        return {"predictions": predictions, "metrics": values}

    deployed = deploy(
        config,
        random_by_step(model_fn),
        [_iterator(config, batches)],
        optimizer=optimizer,
        **settings,
    )
    return DeployedKerasModel.of_deployed(deployed, first_model(), rate)


def _translate(
    config: DeploymentConfig, optimizer: Any, first_model: Callable[[], Any], by_rows: bool
) -> Translation:
    device = config.optimizer_device() if config.all_reduce else config.variables_device()
    with tf.device(device):
        step = tf.train.get_or_create_global_step()
    with tf.device(config.optimizer_device()):
        return translate_optimizer(
            optimizer, step, lambda: first_model().variables, by_rows=by_rows
        )


def _is_model(thing: Any) -> bool:
    return library_of(thing) is not None and hasattr(thing, "weights")


def _made_by(make: Callable[[], Any]) -> Any:
    """Returns the model that a user's function makes, after checking that it is one."""
    model = make()
    if not _is_model(model):
        raise ValueError(
            "model must be a function that returns a Keras model, got "
            f"{type(model).__module__}.{type(model).__name__} of it"
        )
    return model


def _parts_of(batch: Any) -> tuple[Any, Any, Any]:
    """Returns features, labels, and weights or None, of a batch; each of shape [batch, ...]."""
    if isinstance(batch, Mapping) and {"image", "label"} <= set(batch):
        return batch["image"], batch["label"], None
    if isinstance(batch, tuple | list) and len(batch) in (2, 3):
        return batch[0], batch[1], batch[2] if len(batch) == 3 else None
    raise ValueError(
        "batches must be (features, labels), (features, labels, weights) or mappings with 'image' "
        f"and 'label', got {batch!r}"
    )


class _DatasetBatches(Iterator[Any]):
    """Yields a batch of a `tf.data.Dataset` per call of `next`, on the inputs' device.

    Adds to `tf.GraphKeys.TABLE_INITIALIZERS`.
    """

    def __init__(self, config: DeploymentConfig, dataset: Any) -> None:
        self._device = config.inputs_device()
        with tf.device(self._device):
            self._iterator = tf.data.make_initializable_iterator(dataset)
        tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, self._iterator.initializer)

    def __next__(self) -> Any:
        with tf.device(self._device):
            return self._iterator.get_next()


def _iterator(config: DeploymentConfig, batches: Any) -> Iterator[Any]:
    if isinstance(batches, tf.data.Dataset | tensorflow.data.Dataset):
        return _DatasetBatches(config, batches)
    if isinstance(batches, Iterator):
        return batches
    raise ValueError(
        "batches must be an iterator that next() advances by a batch, or a tf.data.Dataset, got "
        f"{type(batches).__module__}.{type(batches).__name__}"
    )
