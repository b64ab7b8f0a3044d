"""The room of TensorFlow's private names: complete, and each of them still there."""

import ast
import importlib
import re
from pathlib import Path

import keras
import pytest
import tensorflow.compat.v1 as tf
import tf_keras
from keras.src.backend.common import global_state
from tensorflow.core.framework import model_pb2
from tensorflow.python.eager import record
from tensorflow.python.feature_column import feature_column_v2
from tensorflow.python.framework import config, dtypes, kernels, op_def_registry, ops
from tensorflow.python.keras.utils import version_utils
from tensorflow.python.lib.io import tf_record
from tensorflow.python.ops import (
    custom_gradient,
    data_flow_ops,
    gradients_util,
    lookup_ops,
    ref_variable,
    resource_variable_ops,
    variable_scope,
    variables,
)
from tensorflow.python.training.experimental import loss_scale
from tensorflow.python.training.saving import saveable_object, saveable_object_util
from tensorflow.python.util import deprecation, pywrap_xla_ops
from tf_keras.src import backend
from tf_keras.src.engine import base_layer_v1
from tf_keras.src.utils import version_utils as tf_keras_version_utils

from model_deploy import estimator, internals

pytestmark = pytest.mark.one_mode

ROOT = Path(__file__).parents[2]


def estimator_module(name):
    """A module of Estimator's package: `training` has `train_and_evaluate`."""
    estimator.load()
    return importlib.import_module(f"tensorflow_estimator.python.estimator.{name}")


# What "Wraps `Operation._update_input`" in a docstring stands for.
_OWNERS = {
    "Graph": [tf.Graph],
    "Operation": [ops.Operation],
    "DType": [dtypes.DType],
    "Session": [tf.Session],
    "RunOptions": [tf.RunOptions()],
    "BatchNormalization": [keras.layers.BatchNormalization, tf_keras.layers.BatchNormalization],
    "LayerNormalization": [tf_keras.layers.LayerNormalization],
    "Layer": [tf_keras.layers.Layer, base_layer_v1.Layer],
    "SeedGenerator": [keras.random.SeedGenerator],
    "backend": [backend],
    "global_state": [global_state],
    "keras": [keras],
    "variable_scope": [variable_scope],
    "Optimizer": [tf.train.Optimizer(use_locking=False, name="any")],
    "KerasOptimizer": [keras.optimizers.Optimizer, tf_keras.optimizers.Optimizer],
    "SlurmClusterResolver": [tf.distribute.cluster_resolver.SlurmClusterResolver],
    "PartitionedVariable": [variables.PartitionedVariable],
    "variables": [variables],
    "Variable": [ref_variable.RefVariable, resource_variable_ops.ResourceVariable],
    "BaseResourceVariable": [resource_variable_ops.BaseResourceVariable],
    "resource_variable_ops": [resource_variable_ops],
    "saveable_object": [saveable_object],
    "saveable_object_util": [saveable_object_util],
    "deprecation": [deprecation],
    "version_utils": [version_utils, tf_keras_version_utils],
    "config": [config],
    "kernels": [kernels],
    "op_def_registry": [op_def_registry],
    "record": [record],
    "model_pb2": [model_pb2],
    "custom_gradient": [custom_gradient],
    "data_flow_ops": [data_flow_ops],
    "lookup_ops": [lookup_ops],
    "tf_record": [tf_record],
    "pywrap_xla_ops": [pywrap_xla_ops],
    "gradients_util": [gradients_util],
    "ops": [ops],
    "ops.gradient_registry": [ops.gradient_registry],
    "SessionManager": [tf.train.SessionManager],
    "session.BaseSession": [tf.Session],
    "session.BaseSession._Callable": [tf.Session._Callable],
    "Estimator": [estimator.Estimator],
    "RunConfig": [estimator.RunConfig],
    "_TrainingExecutor": [estimator_module("training")._TrainingExecutor],
    "head": [estimator_module("canned.head")],
    "feature_column_v2": [feature_column_v2],
    "EmbeddingColumn": [feature_column_v2.EmbeddingColumn],
    "ExponentialMovingAverage": [tf.train.ExponentialMovingAverage],
    "LossScale": [tf.mixed_precision.LossScale],
    "MixedPrecisionLossScaleOptimizer": [tf.mixed_precision.MixedPrecisionLossScaleOptimizer],
    "loss_scale": [loss_scale],
}
# Set by constructors: only an object has them.
_OF_OBJECTS = {
    *("_save_slice_info", "_initializer_op", "_constraint", "_trainable", "_loss_scale"),
    *("_callable_losses", "_in_graph_mode", "_stateful", "_value"),
}
_FUNCTIONS = [name for name in internals.__all__ if name[0].islower()]
# Public in spite of their underscore: of named tuples, and of `os`.
_DOCUMENTED = {"_asdict", "_exit", "_fields", "_make", "_replace"}
_CODE = [
    path
    for folder in ("model_deploy", "nets", "examples", "benchmarks", ".")
    for path in (ROOT.glob("*.py") if folder == "." else (ROOT / folder).rglob("*.py"))
    if ROOT / "model_deploy" / "internals" not in path.parents
]


def _wrapped(function):
    """The private names of a docstring, as `(owner, name)`."""
    text = " ".join(getattr(internals, function).__doc__.split())
    sentences = re.findall(r"(?:Wraps|Overrides) ((?:[^.`]|`[^`]*`)*)", text)
    names = re.findall(r"`([\w.]+)`", " ".join(sentences))
    return [name.rpartition(".")[::2] for name in names if not name.startswith("tf.")]


@pytest.mark.parametrize("function", _FUNCTIONS)
def test_tensorflow_still_has_what_is_wrapped(function):
    """Each function says which name it wraps, and TensorFlow has that name."""
    wrapped = _wrapped(function)
    assert wrapped
    for owner, name in wrapped:
        for each in _OWNERS[owner]:
            found = name in _OF_OBJECTS or hasattr(each, name)
            message = f"TensorFlow {tf.__version__} has no {owner}.{name}, which {function} wraps"
            assert found, message


@pytest.mark.parametrize("path", _CODE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_nothing_else_uses_private_names(path):
    """Outside of the room no name of TensorFlow that is not public is imported or read."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom | ast.Import):
            modules = [alias.name for alias in node.names]
            modules.append(getattr(node, "module", "") or "")
            assert not [
                m for m in modules if m.startswith(("tensorflow.python", "tensorflow.core"))
            ]
        if isinstance(node, ast.Attribute) and re.match("_[a-z]", node.attr):
            owner = node.value.func if isinstance(node.value, ast.Call) else node.value
            is_own = isinstance(owner, ast.Name) and owner.id in ("self", "cls", "super")
            assert is_own or node.attr in _DOCUMENTED, f"{path}:{node.lineno}: {node.attr}"
