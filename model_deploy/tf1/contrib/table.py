"""Which module of today has what was in a module of `tf.contrib`."""

import functools
import importlib
import importlib.util
import operator
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy.importing import with_moved_names
from model_deploy.tf1 import lenient
from model_deploy.tf1.contrib import legacy_keras
from model_deploy.tf1.gone import advice
from model_deploy.tf1.old_module import GoneError, OldModule


class _Part(NamedTuple):
    """A part of `tf.contrib`.

    Attributes:
      providers: modules that have its names.
      package: package that has its files, such as `initializers` of `layers`.
      extras: names that no provider has -> what makes the value.
    """

    providers: tuple[str, ...]
    package: str | None = None
    extras: dict[str, Callable[[], Any]] = {}  # noqa: RUF012 - a named tuple's default, not changed


def _input_data() -> Any:
    return importlib.import_module("model_deploy.tf1.input_data")


def _learn_datasets() -> Any:
    return OldModule("tensorflow.contrib.learn.datasets", extras={"mnist": _input_data})


def _preprocessing() -> Any:
    return OldModule("tensorflow.contrib.learn.preprocessing", [_own("preprocessing")])


def _model_analyzer() -> Any:
    providers = [_own("tfprof"), "tensorflow.compat.v1.profiler"]
    return OldModule("tensorflow.contrib.tfprof.model_analyzer", providers)


def _core_rnn_cell() -> Any:
    return contrib_module("tensorflow.contrib.rnn")


def _jit() -> Any:
    scope = tf.xla.experimental.jit_scope
    return OldModule(
        "tensorflow.contrib.compiler.jit", extras={"experimental_jit_scope": lambda: scope}
    )


def _stateless() -> dict[str, Callable[[], Any]]:
    today = {
        "stateless_multinomial": "stateless_multinomial",
        "stateless_random_normal": "stateless_normal",
        "stateless_random_uniform": "stateless_uniform",
        "stateless_truncated_normal": "stateless_truncated_normal",
    }
    return {old: functools.partial(getattr, tf.random, new) for old, new in today.items()}


def _nest() -> Any:
    return with_moved_names(importlib.import_module("tensorflow.python.util.nest"))


def _own(name: str) -> str:
    """The file, or folder, that has what a part of `tf.contrib` had, written anew."""
    return f"model_deploy.tf1.contrib.written.{name}"


def _module(name: str) -> Callable[[], Any]:
    return functools.partial(importlib.import_module, name)


def _member(module: str, name: str) -> Callable[[], Any]:
    return lambda: operator.attrgetter(name)(importlib.import_module(module))


def _estimators() -> dict[str, Callable[[], Any]]:
    """What became `tf.estimator.experimental`."""
    experimental = (
        *("InMemoryEvaluatorHook", "make_early_stopping_hook", "make_stop_at_checkpoint_step_hook"),
        *("stop_if_higher_hook", "stop_if_lower_hook"),
        *("stop_if_no_decrease_hook", "stop_if_no_increase_hook"),
    )
    return {name: _member(_ESTIMATOR, f"experimental.{name}") for name in experimental}


def _tpu_estimators() -> dict[str, Callable[[], Any]]:
    """What became `tf.estimator.tpu`, and the files in which that was."""
    names = ("InputPipelineConfig", "RunConfig", "TPUConfig", "TPUEstimator", "TPUEstimatorSpec")
    files = ("error_handling", "tpu_config", "tpu_context", "tpu_estimator", "util")
    return {
        **{name: _member(_ESTIMATOR, f"tpu.{name}") for name in names},
        **{name: functools.partial(_file_of_estimator, f"tpu.{name}") for name in files},
    }


def _file_of_estimator(name: str) -> Any:
    importlib.import_module(_ESTIMATOR).load()
    return importlib.import_module(f"tensorflow_estimator.python.estimator.{name}")


_ESTIMATOR = "model_deploy.estimator"
_SUMMARIES = "tensorflow.python.ops.summary_ops_v2"
_PARTS = {
    "slim": _Part(("tf_slim",), "tf_slim", {"nets": _module("tf_slim.nets")}),
    "layers": _Part(
        (
            "tf_slim.layers",
            "tf_slim.layers.layers",
            "tf_slim.layers.normalization",
            "tf_slim.layers.optimizers",
            "tf_slim.layers.regularizers",
            "tf_slim.layers.rev_block_lib",
            "tf_slim.layers.sparse_ops",
            "tf_slim.layers.summaries",
            _own("embeddings"),
        ),
        "tf_slim.layers",
        {"safe_embedding_lookup_sparse": lambda: tf.nn.safe_embedding_lookup_sparse},
    ),
    "framework": _Part(
        (
            "tf_slim.ops.arg_scope",  # before files that import it as a module
            "tf_slim.ops.variables",
            "tf_slim.ops.framework_ops",
            "tf_slim.training.evaluation",  # checkpoints_iterator
            "tensorflow.compat.v1.train",
            "tensorflow.compat.v1",
            "tensorflow.python.framework.smart_cond",
            "tensorflow.python.framework.ops",  # prepend_name_scope, strip_name_scope
            "tensorflow.python.ops.confusion_matrix",  # remove_squeezable_dimensions
            "tensorflow.python.ops.data_flow_ops",  # RecordInput
            "tensorflow.python.util.deprecation",
        ),
        "tf_slim.ops",
        {"nest": _nest, "zero_initializer": lambda: tf.zeros_initializer},
    ),
    "training": _Part(
        (
            "tf_slim.training",
            "tf_slim.training.training",
            "tf_slim.training.evaluation",
            _own("buckets"),
            _own("hparams"),
            _own("sequences"),
            _own("strategies"),
            "tensorflow.compat.v1.train",
        ),
        "tf_slim.training",
        {"hparam": _module(_own("hparams"))},
    ),
    "rnn": _Part(
        (
            legacy_keras.CELLS,
            _own("rnn"),
            "tf_keras.src.layers.rnn.legacy_cells",  # LayerRNNCell
            "tensorflow.compat.v1.nn",
        ),
        extras={**lenient.cells(legacy_keras.CELLS), "core_rnn_cell": _core_rnn_cell},
    ),
    "seq2seq": _Part(
        (_own("seq2seq"),),
        extras={"_transpose_batch_time": _member(_own("rnn"), "transpose_batch_time")},
    ),
    "legacy_seq2seq": _Part((_own("legacy_seq2seq"),)),
    "metrics": _Part(
        (
            "tf_slim.metrics",
            "tf_slim.metrics.metric_ops",
            "tf_slim.metrics.classification",
        ),
        "tf_slim.metrics",
        {
            "confusion_matrix": lambda: tf.math.confusion_matrix,
            "set_difference": lambda: tf.sets.difference,
            "set_intersection": lambda: tf.sets.intersection,
            "set_size": lambda: tf.sets.size,
            "set_union": lambda: tf.sets.union,
        },
    ),
    "losses": _Part(("tf_slim.losses", "tf_slim.losses.loss_ops"), "tf_slim.losses"),
    "opt": _Part((_own("opt"), _own("scipy_optimizer"), _own("weight_decay"))),
    "crf": _Part((_own("crf"),)),
    "image": _Part((_own("image"),)),
    "nn": _Part((_own("nn"),)),
    "tfprof": _Part((_own("tfprof"),), extras={"model_analyzer": _model_analyzer}),
    "data": _Part(
        ("tensorflow.compat.v1.data.experimental", _own("data"), "tensorflow.compat.v1.data")
    ),
    "distribute": _Part((_own("distribute"), "tensorflow.compat.v1.distribute")),
    "distributions": _Part(("tensorflow.compat.v1.distributions",)),
    "learn": _Part(
        (_own("experiment"),),
        extras={
            "datasets": _learn_datasets,
            "datasets.mnist": _input_data,
            "learn_runner": _module(_own("experiment")),
            "preprocessing": _preprocessing,
            "preprocessing.categorical_vocabulary": _preprocessing,
            "preprocessing.text": _preprocessing,
            "run_config": _module(_own("experiment")),
        },
    ),
    "lookup": _Part(
        (_own("lookup"), "tensorflow.python.ops.lookup_ops", "tensorflow.compat.v1.lookup")
    ),
    "checkpoint": _Part(("tensorflow.compat.v1.train",)),
    "compiler": _Part((), extras={"jit": _jit, "xla": lambda: tf.xla.experimental}),
    "hooks": _Part(("tensorflow.compat.v1.train",)),  # ProfilerHook
    "nccl": _Part(("tensorflow.python.ops.nccl_ops",)),  # of which TensorFlow has GPU kernels only
    "predictor": _Part((_own("predictor"),)),
    "proto": _Part(("tensorflow.compat.v1.io",)),
    "saved_model": _Part(("tensorflow.compat.v1.saved_model",)),
    "signal": _Part(("tensorflow.compat.v1.signal",)),
    "staging": _Part(("tensorflow.python.ops.data_flow_ops",)),  # StagingArea
    "stateless": _Part((), extras=_stateless()),
    "util": _Part(
        ("tensorflow.compat.v1",), extras={"constant_value": lambda: tf.get_static_value}
    ),
    "tensorboard": _Part(("tensorboard",), "tensorboard"),
    "tpu": _Part(("tensorflow.compat.v1.tpu",), extras=_tpu_estimators()),
    "autograph": _Part(("tensorflow.compat.v1.autograph",)),
    "cluster_resolver": _Part(("tensorflow.compat.v1.distribute.cluster_resolver",)),
    "estimator": _Part((_own("estimator"), _ESTIMATOR), extras=_estimators()),
    "feature_column": _Part((_own("feature_column"), "tensorflow.compat.v1.feature_column")),
    "keras": _Part((legacy_keras.KERAS,)),
    # Not those of `tf.summary`: what is written goes to the writer around it, at each step.
    "summary": _Part(
        (_SUMMARIES,),
        extras={
            "all_summary_ops": _member(_SUMMARIES, "all_v2_summary_ops"),
            "graph": _member(_SUMMARIES, "graph_v1"),
            "should_record_summaries": _member(
                _SUMMARIES, "_legacy_contrib_should_record_summaries"
            ),
        },
    ),
}
# The other parts of TensorFlow 1.15.  Programs import them and may never use them: what they had
# is an error where it is used.
_GONE_PARTS = (  # noqa: SIM905 - a list would be 60 lines of one word
    "all_reduce batching bayesflow bigtable boosted_trees checkpoint cloud compiler "
    "constrained_optimization copy_graph crf cudnn_rnn decision_trees deprecated distribute "
    "eager estimator factorization ffmpeg gan graph_editor grid_rnn hadoop hooks image "
    "input_pipeline integrate keras kernel_methods labeled_tensor legacy_seq2seq libsvm "
    "linear_optimizer lite memory_stats meta_graph_transform mixed_precision model_pruning "
    "nccl nn optimizer_v2 periodic_resample predictor proto quantization quantize recurrent "
    "reduce_slice_ops remote_fused_graph resampler rpc seq2seq solvers sparsemax specs "
    "stat_summary stateless tensor_forest tensorrt testing text tfprof timeseries tpu"
).split()
_PARTS = {**dict.fromkeys(_GONE_PARTS, _Part(())), **_PARTS}
# `layers.python.layers.initializers`: the part, and the file in the folder of its files.
_FILES = re.compile(r"(?P<part>\w+)\.python(?:\.\w+(?:\.(?P<file>[\w.]+))?)?$")


class _Folder(OldModule):
    """A folder of files, such as `tensorflow.contrib.framework.python.ops`: files come first."""

    def __init__(self, name: str, part: _Part) -> None:
        super().__init__(name, part.providers, part.extras)
        self.__dict__["_part"] = part

    def _find(self, name: str) -> Any:
        part = self.__dict__["_part"]
        file = _file_of(part, name)
        if file is not None:
            own = getattr(file, name, None)  # such as `arg_scope`: `import *` hid the file by it
            return own if callable(own) else file
        try:
            return super()._find(name)
        except GoneError:
            match = _FILES.match(self.__name__.removeprefix("tensorflow.contrib."))
            is_gone = match and match["part"] in _GONE_PARTS and not match["file"]
            if not is_gone or not name.islower():
                raise
        return _Folder(f"{self.__name__}.{name}", part)  # a file, of which nothing is used yet


class _Package(OldModule):
    """A package of today whose files are there without an import of theirs."""

    def _find(self, name: str) -> Any:
        file = f"{self.__name__}.{name}"
        if importlib.util.find_spec(file) is not None:
            return importlib.import_module(file)
        return super()._find(name)


@functools.cache
def contrib_module(name: str) -> Any:
    """A module of `tf.contrib`, by its whole name in TensorFlow 1.

    Raises:
      ImportError: if it is nowhere; the message says what to use.
    """
    path = name.removeprefix("tensorflow.contrib").lstrip(".")
    if not path:
        extras = {part: functools.partial(contrib_module, f"{name}.{part}") for part in _PARTS}
        return OldModule(name, extras=extras)
    match = _FILES.match(path)
    part, _, file = path.partition(".")
    if match:
        part, file = match["part"], match["file"] or ""
    if part not in _PARTS:
        raise ImportError(advice(name))
    if not file:
        if match:
            return _Folder(name, _PARTS[part])
        return OldModule(name, _PARTS[part].providers, _PARTS[part].extras)
    found = _file_of(_PARTS[part], file)
    # Where files were cut otherwise, what they had is in the part, if anywhere.
    return _Folder(name, _PARTS[part]) if found is None else found


def _file_of(part: _Part, file: str) -> Any:
    """The module that has what was in a file of a part; None if there is no such one."""
    if file in part.extras:
        return part.extras[file]()
    name = f"{part.package}.{file}"
    if part.package is None or importlib.util.find_spec(name) is None:
        return None
    module = importlib.import_module(name)
    return _Package(name, [module]) if hasattr(module, "__path__") else module
