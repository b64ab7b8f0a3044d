"""Weights of Keras models: read from and written to Keras files, read from a run's checkpoints."""

import concurrent.futures
import os
import tempfile
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.checkpoints import few, with_checkpoint
from model_deploy.keras.file_names import check_export, check_file
from model_deploy.keras.libraries import library_of
from model_deploy.keras.naming import match_names

# Suffix that `moving_average_update` adds to the names of variables.
_AVERAGE = "ExponentialMovingAverage"


def read_weights(model: Any, path: str | os.PathLike[str]) -> list[np.ndarray | None]:
    """Reads the values that a file has for a Keras model; the model is not changed.

    Args:
      model: a model of Keras 3, or of tf-keras with a `get_config`; in a graph or eager.
      path: a `.weights.h5`, `.keras` or `.h5` file, as `model.load_weights` takes it.

    Returns:
      Arrays in the order and of the shapes of `model.weights`; None for a weight that is missing or
      of another shape.

    Raises:
      ValueError: if the file cannot be read, or is of another model.
    """
    path = os.fspath(path)
    check_file("path", path)
    if not os.path.isfile(path):
        raise ValueError(f"path must be a file of Keras weights, got {path}, which is not there")
    read = _read_by_keras_3 if _is_keras_3(model) else _read_by_tf_keras
    try:
        return read(model, path)
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(
            f"path must be a file with weights of the model {model.name!r}, got {path}: {error}"
        ) from error


def init_fn(model: Any, path: str | os.PathLike[str]) -> Callable[[Any], None]:
    """Returns a function that loads a file's weights into a model, for `train(init_fn=...)`.

    Args:
      model: a built model in the default graph, with variables of any shapes.
      path: a `.weights.h5`, `.keras` or `.h5` file.

    Returns:
      A function of a session.

    Raises:
      ValueError: as `read_weights`; naming weights that are missing or of another shape.
    """
    if not model.weights:
        raise ValueError(
            f"model must be built before it gets weights, got {model.name!r} without any; call it"
        )
    values = read_weights(model, path)
    variables = [internals.tf_variable(each) for each in model.weights]
    missing = [v.op.name for v, value in zip(variables, values, strict=True) if value is None]
    if missing:
        raise ValueError(
            f"path must have all weights of {model.name!r}, got {os.fspath(path)} without "
            f"{few(missing)} in these shapes"
        )
    return loading(variables, values)


def loading(variables: Sequence[Any], values: Sequence[Any]) -> Callable[[Any], None]:
    """Returns a function of a session that loads arrays into variables of the same shapes."""

    def load(session: Any) -> None:
        for variable, value in zip(variables, values, strict=True):
            for part in variable if internals.is_partitioned(variable) else [variable]:
                cut = internals.slice_of(part)
                if cut is not None:
                    begins = zip(cut.var_offset, cut.var_shape, strict=True)
                    part.load(value[tuple(slice(at, at + size) for at, size in begins)], session)
                else:
                    part.load(value, session)

    return load


def read_checkpoint(
    model: Any, checkpoint: str | os.PathLike[str], *, use_averages: bool = False
) -> list[np.ndarray]:
    """Reads the values that a run's checkpoint has for a Keras model.

    Args:
      model: the model that was trained, or one made in the same way; in a graph or not.
      checkpoint: its name, or a folder, for the newest good one there.
      use_averages: whether to take the moving averages of what was trained, of the same shapes.

    Returns:
      Arrays in the order of `model.weights`, of their shapes.

    Raises:
      ValueError: if there is no such checkpoint, or it is damaged; naming what it lacks or has in
        another shape.
    """
    return with_checkpoint(
        os.fspath(checkpoint), lambda path: _read_whole(model, path, use_averages=use_averages)
    )


def _read_whole(model: Any, path: str, *, use_averages: bool) -> list[np.ndarray]:
    """Reads the values of one checkpoint, see `read_checkpoint`."""
    reader = tf.train.NewCheckpointReader(path)
    shapes = reader.get_variable_to_shape_map()
    names = [_name(weight) for weight in model.weights]
    found = match_names(names, shapes)
    wrong = [
        name
        for name, saved, weight in zip(names, found, model.weights, strict=True)
        if saved is None or list(weight.shape) != shapes[saved]
    ]
    if wrong:
        raise ValueError(
            f"checkpoint must be one of the model {model.name!r}, got {path} without {few(wrong)} "
            "in these shapes; a model that model_fn makes has the names of its layers"
        )
    averages = {name: f"{name}/{_AVERAGE}" for name in found if name} if use_averages else {}
    return [
        reader.get_tensor(averages[name] if averages.get(name) in shapes else name)
        for name in found
        if name
    ]


def load_checkpoint(
    model: Any, checkpoint: str | os.PathLike[str], *, use_averages: bool = False
) -> Any:
    """Loads the weights of a run's checkpoint into an eager Keras model, so that it can `predict`.

    Args:
      model: a built model made in the same way as the trained one.
      checkpoint: its name, or a folder, for the newest good one there.
      use_averages: whether to take the moving averages of what was trained, of the same shapes.

    Returns:
      The model.

    Raises:
      ValueError: as `read_checkpoint`.
      RuntimeError: in a graph, where a model gets its weights by a session.
    """
    if not tf.executing_eagerly():
        raise RuntimeError(
            "load_checkpoint is for eager execution: call it outside of graphs, in a process "
            "without tf.disable_eager_execution()"
        )
    values = read_checkpoint(model, checkpoint, use_averages=use_averages)
    for weight, value in zip(model.weights, values, strict=True):
        weight.assign(value)
    return model


def export_checkpoint(
    model: Any,
    checkpoint: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    use_averages: bool = False,
) -> None:
    """Writes the weights of a run's checkpoint as a Keras file.

    Args:
      model: the model that was trained, or one made in the same way; in a graph or not.  It keeps
        the weights that it has.
      checkpoint: its name, or a folder, for the newest good one there.
      path: a `.weights.h5` file for the weights or `.keras` file for model and weights; an existing
        file is replaced as a whole.
      use_averages: whether to take the moving averages of what was trained, of the same shapes.

    Raises:
      ValueError: as `read_checkpoint`; for a file of another kind.
    """
    path = os.fspath(path)
    check_export("path", path)
    values = read_checkpoint(model, checkpoint, use_averages=use_averages)
    write = _write_by_keras_3 if _is_keras_3(model) else _write_by_tf_keras
    folder, name = os.path.split(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=f".{name}.") as new:
        write(model, values, os.path.join(new, name))
        os.replace(os.path.join(new, name), path)


def _is_keras_3(model: Any) -> bool:
    library = library_of(model)
    if library is None or not hasattr(model, "weights"):
        raise ValueError(
            f"model must be a Keras model, got {type(model).__module__}.{type(model).__name__}"
        )
    return bool(library.__name__ == "keras")


def _name(weight: Any) -> str:
    """Returns a variable's name in the model: its path in Keras 3, its name in tf-keras."""
    name: str = getattr(weight, "path", None) or weight.name
    return name.partition(":")[0]


def _read_by_keras_3(model: Any, path: str) -> list[np.ndarray | None]:
    keras = library_of(model)
    # The scope records assignments without making them; the graph takes constants.
    with (
        tf.Graph().as_default(),
        keras.StatelessScope() as scope,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # skipped weights are found below
        if path.endswith(".weights.h5") or not path.endswith(".h5"):
            model.load_weights(path, skip_mismatch=True)
        else:
            _read_old_file(model, path, scope)
        assigned = [scope.get_current_value(weight) for weight in model.weights]
        return [None if value is None else tf.get_static_value(value) for value in assigned]


def _read_old_file(model: Any, path: str, scope: Any) -> None:
    """Loads layer by layer in order; by name if no layer fits."""
    try:
        model.load_weights(path)
    except ValueError:
        if all(scope.get_current_value(weight) is None for weight in model.weights):
            model.load_weights(path, by_name=True, skip_mismatch=True)


def _write_by_keras_3(model: Any, values: Sequence[np.ndarray], path: str) -> None:
    keras = library_of(model)
    with keras.StatelessScope() as scope, warnings.catch_warnings():
        # Keras' variables do not know NumPy 2's `copy`.
        warnings.simplefilter("ignore", DeprecationWarning)
        for weight, value in zip(model.weights, values, strict=True):
            # Arrays: in a graph tensors would have no values to write.
            scope.add_update((weight, value))
        (model.save_weights if path.endswith(".weights.h5") else model.save)(path)


def _read_by_tf_keras(model: Any, path: str) -> list[np.ndarray | None]:
    """Reads weights into an eager model of the same configuration."""

    def read() -> list[np.ndarray | None]:
        twin = type(model).from_config(model.get_config())
        twin.load_weights(path)
        return [weight.numpy() for weight in twin.weights]

    return _eagerly(read)


def _write_by_tf_keras(model: Any, values: Sequence[np.ndarray], path: str) -> None:
    def write() -> None:
        twin = type(model).from_config(model.get_config())
        twin.set_weights(values)
        (twin.save_weights if path.endswith(".weights.h5") else twin.save)(path)

    _eagerly(write)


def _eagerly(function: Callable[[], Any]) -> Any:
    """Calls a function in eager mode, whatever graph is open."""

    def run() -> Any:
        if not tf.executing_eagerly():
            raise ValueError(
                "tf-keras reads and writes its files eagerly, got a process with "
                "tf.disable_eager_execution()"
            )
        return function()

    # A new thread has no open graph.
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result()
