"""`Part`: one built copy of the model, a clone or a part of a clone; `Clone`: its outputs."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy.config import DeploymentConfig, DeviceFunction

# The key of a graph collection.
Key = str | tuple[str, str]


class Call(NamedTuple):
    """The call that builds the model: `model_fn(*args, **kwargs)`."""

    model_fn: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]


@dataclasses.dataclass(eq=False)
class Part:
    """One built copy of the model: a clone or, with `accumulate_steps`, a part of a clone.

    Attributes:
      config: the deployment.
      call: the call that builds the part; the same object for all parts of a deployment.
      features: the features of the deployment, see `features.py`.
      number: number of the part among all parts of this process, from 0 on.
      clone_index: number of the clone, from 0 on.
      index: number of the part within its clone, from 0 on.
      scope: name scope, ends with `/`; '' for a single clone without parts.
      variables_device: device, or device function, of variables; shared by all parts.
      ops: the ops that building the part added to the graph.
      added: for each graph collection the `id`s of the items that the part added.
      counterparts: for a part that is a copy, maps ops and tensors of the first part to their
        copies in this part (a `copying.twins.Twins`); None if `model_fn` was called for the part.
    """

    config: DeploymentConfig
    call: Call
    features: Sequence[Any]
    number: int
    clone_index: int
    index: int
    scope: str
    variables_device: str | DeviceFunction
    ops: Sequence[Any] = ()
    added: dict[Key, set[int]] = dataclasses.field(default_factory=dict)
    counterparts: Any = None

    def owns(self, item: Any, key: Key) -> bool:
        """Whether this part created an item of the graph collection `key`."""
        by_scope = bool(self.scope) and item.name.startswith(self.scope)
        return by_scope or id(item) in self.added.get(key, ())


class _Clone(NamedTuple):
    """The fields of TF-Slim's `Clone`, in its order."""

    outputs: Any
    scope: str
    device: str


class Clone(_Clone):
    """One copy of the model on one device; with `accumulate_steps` one part of it.

    Attributes:
      outputs: what `model_fn` returned: tensors of any shapes in any structure, or other objects.
      scope: name scope, `clone_<i>/`, or '' for a single clone; for a part
        `clone_<i>/part_<j>/`, or `part_<j>/` with a single clone.
      device: device of the clone, such as `/device:GPU:0`.
      part: the `Part` that `create_clones` built; None for a `Clone` made by other code.
    """

    part: Part | None = None


def parts_by_clone(clones: Sequence[Clone]) -> list[list[int]]:
    """Returns for each clone the places of its parts in `clones`, one place if it has no parts."""
    groups: dict[Any, list[int]] = {}
    for place, clone in enumerate(clones):
        part = clone.part
        key = place if part is None else (id(part.call), part.clone_index)
        groups.setdefault(key, []).append(place)
    return list(groups.values())


def features_of(clones: Sequence[Clone]) -> Sequence[Any]:
    """Returns the features of the deployment of `clones`; none for clones made by other code."""
    part = clones[0].part if clones else None
    return () if part is None else part.features


def stages_by_device(parts: Sequence[Part]) -> dict[str, str]:
    """Returns by device the stages of clones with several devices, such as `clone 0 stage 1`."""
    named: dict[str, list[str]] = {}
    for part in parts:
        for stage, device in enumerate(part.config.stage_devices(part.clone_index)):
            named.setdefault(device, []).append(f"clone {part.clone_index} stage {stage}")
    return {device: ", ".join(dict.fromkeys(names)) for device, names in named.items()}


# All parts in the graph.  Not a string: collections with string names go into MetaGraphs.
_PARTS = ("model_deploy", "parts")


def note_part(part: Part) -> None:
    """Notes a part in the default graph, so that other deployments leave its items alone."""
    tf.add_to_collection(_PARTS, part)


def noted_parts(graph: tf.Graph) -> list[Part]:
    """Returns the parts of all deployments in a graph."""
    return list(graph.get_collection(_PARTS))
