"""`tf.contrib.predictor`: a SavedModel as a function."""

# ruff: noqa: PLR0917 - the order of arguments is contrib's
from collections.abc import Mapping
from typing import Any

import tensorflow.compat.v1 as tf

_DEFAULT = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY


class SavedModelPredictor:
    """Calls one signature of a SavedModel, in a session of its own.

    Args:
      export_dir: folder of the SavedModel.
      signature_def_key: name of the signature; that for serving by default.
      signature_def: the signature itself, in the place of its name.
      input_names: name -> name of a tensor, in the place of a signature; with `output_names`.
      output_names: name -> name of a tensor.
      tags: of the graph in the SavedModel, with commas between; "serve" by default.
      graph: to load it into; a new one by default.
      config: of the session.

    Attributes:
      graph: with the model.
      session: with its variables.
      feed_tensors: name -> tensor, which a call takes values for.
      fetch_tensors: name -> tensor, which a call returns values of.

    Raises:
      ValueError: for several of the three ways to name the tensors, or an unknown signature.
    """

    def __init__(
        self,
        export_dir: str,
        signature_def_key: str | None = None,
        signature_def: Any = None,
        input_names: Mapping[str, str] | None = None,
        output_names: Mapping[str, str] | None = None,
        tags: str | None = None,
        graph: tf.Graph | None = None,
        config: Any = None,
    ) -> None:
        ways = [signature_def_key, signature_def, input_names]
        if sum(way is not None for way in ways) > 1 or (input_names is None) != (
            output_names is None
        ):
            raise ValueError(
                "of signature_def_key, signature_def, and input_names with output_names one must "
                f"be given, got {signature_def_key}, {signature_def}, {input_names}, {output_names}"
            )
        self.graph = graph or tf.Graph()
        self.session = tf.Session(graph=self.graph, config=config)
        with self.graph.as_default():
            model = tf.saved_model.loader.load(
                self.session, (tags or "serve").split(","), export_dir
            )
        if input_names is None or output_names is None:
            signature = signature_def or _signature(model, signature_def_key or _DEFAULT)
            input_names = {key: value.name for key, value in signature.inputs.items()}
            output_names = {key: value.name for key, value in signature.outputs.items()}
        self.feed_tensors = self._tensors(input_names)
        self.fetch_tensors = self._tensors(output_names)

    def _tensors(self, names: Mapping[str, str]) -> dict[str, Any]:
        return {key: self.graph.get_tensor_by_name(name) for key, name in names.items()}

    def __call__(self, input_dict: Mapping[str, Any]) -> dict[str, Any]:
        """The values of the outputs for those of the inputs, both by name.

        Raises:
          ValueError: for an input that is not one.
        """
        unknown = set(input_dict) - set(self.feed_tensors)
        if unknown:
            raise ValueError(
                f"inputs must be of {sorted(self.feed_tensors)}, got {sorted(unknown)}"
            )
        feeds = {self.feed_tensors[key]: value for key, value in input_dict.items()}
        found: dict[str, Any] = self.session.run(self.fetch_tensors, feeds)
        return found


def _signature(model: Any, key: str) -> Any:
    if key not in model.signature_def:
        raise ValueError(
            f"signature_def_key must be one of {sorted(model.signature_def)}, got {key!r}"
        )
    return model.signature_def[key]


def from_saved_model(export_dir: str, *args: Any, **kwargs: Any) -> SavedModelPredictor:
    """`SavedModelPredictor`, see there."""
    return SavedModelPredictor(export_dir, *args, **kwargs)
