"""Views of TensorFlow modules that also have the names moved out of them since TensorFlow 1."""

import importlib
import types

# Module of TensorFlow 1 -> name in it -> the module that has it on current TensorFlow.
_MOVED: dict[str, dict[str, str]] = {
    "tensorflow.python.framework.ops": {
        "Tensor": "tensorflow.python.framework.tensor",
        "IndexedSlices": "tensorflow.python.framework.indexed_slices",
    },
    "tensorflow.python.layers.normalization": {
        "BatchNorm": "tf_keras.src.legacy_tf_layers.normalization",
        "BatchNormalization": "tf_keras.src.legacy_tf_layers.normalization",
        "batch_normalization": "tf_keras.src.legacy_tf_layers.normalization",
    },
    "tensorflow.python.ops.array_ops": {
        "stack": "tensorflow.python.ops.array_ops_stack",
        "unstack": "tensorflow.python.ops.array_ops_stack",
    },
    "tensorflow.python.ops.control_flow_ops": {
        "Assert": "tensorflow.python.ops.control_flow_assert",
        "case": "tensorflow.python.ops.control_flow_case",
        "cond": "tensorflow.python.ops.cond",
        "while_loop": "tensorflow.python.ops.while_loop",
    },
    "tensorflow.python.ops.variable_scope": {
        "variable": "tensorflow.python.ops.variable_v1",
        "disable_resource_variables": "tensorflow.python.ops.resource_variables_toggle",
        "enable_resource_variables": "tensorflow.python.ops.resource_variables_toggle",
        "resource_variables_enabled": "tensorflow.python.ops.resource_variables_toggle",
    },
    "tensorflow.python.util.nest": {"is_sequence": "tensorflow.python.util.nest"},
    "tensorflow.python.ops.variables": {
        "VariableV1": "tensorflow.python.ops.variable_v1",
    },
}
# Names that were also renamed: old name -> new name.
_RENAMED = {
    "variable": "VariableV1",
    "BatchNorm": "BatchNormalization",
    "is_sequence": "is_nested",
}


class View(types.ModuleType):
    """A module plus the names that were moved out of it; everything else is the module's own."""

    def __init__(self, module: types.ModuleType) -> None:
        super().__init__(module.__name__, module.__doc__)
        self.__dict__["_viewed"] = module
        self.__dict__["_moved"] = _MOVED[module.__name__]

    def __getattr__(self, name: str) -> object:
        home = self.__dict__["_moved"].get(name)
        if home is None:
            return getattr(self.__dict__["_viewed"], name)
        return getattr(importlib.import_module(home), _RENAMED.get(name, name))

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.__dict__["_viewed"], name, value)


def with_moved_names(module: types.ModuleType) -> types.ModuleType:
    """Returns a view of a TensorFlow module; the module itself if no name was moved."""
    return View(module) if module.__name__ in _MOVED else module
