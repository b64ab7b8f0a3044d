"""A copy of the variables for each clone, for training by all-reduce.

The first clone uses the variables themselves, under their usual names: checkpoints hold these.  The
copies of clone i are local variables named `clone_<i>/...` on its device, initialized from the
first clone's values.
"""

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import gpus, graph_walk, internals, placement
from model_deploy.clone_scopes import current_clone
from model_deploy.config import DeploymentConfig
from model_deploy.keras_layers import by_no_layer, using_own_variables

# The graph's one `_Registry`, for several deployments in a graph.  Not a string, see `hooks.py`.
_REGISTRY = ("model_deploy", "variable_copies")


class _Entry(NamedTuple):
    """A variable or optimizer of the first clone, and its copies by clone index."""

    original: Any
    others: dict[int, Any]


class _Registry(NamedTuple):
    """Entries by the `id` of the original; the entries keep the originals alive.

    `variables` are the model's variables, `slots` the variables that optimizers made.
    """

    variables: dict[int, _Entry]
    slots: dict[int, _Entry]
    optimizers: dict[int, _Entry]


class VariableCopies:
    """Makes and finds the clones' copies of variables in the default graph.

    Args:
      config: the deployment, with all-reduce.
    """

    def __init__(self, config: DeploymentConfig) -> None:
        self._config = config
        if not tf.get_collection(_REGISTRY):
            tf.add_to_collection(_REGISTRY, _Registry({}, {}, {}))
        [self._registry] = tf.get_collection(_REGISTRY)

    def variables(self) -> list[tuple[Any, list[Any]]]:
        """Returns the model's variables, each with the copies of the other clones.

        Returns:
          `(variable, copies)` pairs; a copy has the variable's shape and dtype.
        """
        indices = range(1, self._config.num_clones)
        return [
            (entry.original, [entry.others[i] for i in indices])
            for entry in self._registry.variables.values()
            if all(i in entry.others for i in indices)
        ]

    def of_clone(self, variable: Any, clone_index: int) -> Any:
        """Returns a clone's copy of a variable of the first clone; None if it has no copy.

        Args:
          variable: a variable of the model or of its optimizer, of any shape.
          clone_index: the clone.

        Returns:
          A variable of the same shape and dtype; for the first clone `variable` itself.
        """
        if clone_index == 0:
            return variable
        entry = self._registry.variables.get(id(variable)) or self._registry.slots.get(id(variable))
        return entry.others.get(clone_index) if entry else None

    def give_each_clone_its_own(self, model_fn: Callable[..., Any]) -> Callable[..., Any]:
        """Wraps `model_fn` so that each call gets the variables of its clone.

        Variables that `tf.get_variable` and layers make in the first call get copies; later calls
        find the copies in place of the variables, in graph collections as well.  Variables that
        are not in `GLOBAL_VARIABLES` stay shared.
        """

        def model_fn_of_clone(*args: Any, **kwargs: Any) -> Any:
            i = current_clone()
            scope = tf.variable_scope(
                tf.get_variable_scope(),
                custom_getter=lambda *a, **k: self._get_variable(i, *a, **k),
                auxiliary_name_scope=False,
            )
            with (
                scope,
                tf.device(self._device_function(i)),
                self.collections_of(i),
                using_own_variables(lambda variable: self._copied(variable, i)),
            ):
                return model_fn(*args, **kwargs)

        return model_fn_of_clone

    @contextlib.contextmanager
    def collections_of(self, clone_index: int) -> Iterator[None]:
        """A `with` block in which the graph's collections hold the clone's copies of variables.

        Custom gradients look there for variables, when their functions are called and when
        gradients are computed.

        Args:
          clone_index: the clone.
        """
        if clone_index == 0:
            yield
            return
        pairs = [(original, copies[clone_index - 1]) for original, copies in self.variables()]
        _replace_in_collections({id(original): copied for original, copied in pairs})
        try:
            yield
        finally:
            _replace_in_collections({id(copied): original for original, copied in pairs})

    def check_own_variables(
        self, clone_losses: Sequence[Sequence[Any]], variables: Sequence[Any]
    ) -> None:
        """Checks that each clone after the first trains only its own copies.

        Args:
          clone_losses: for each clone the scalars that it differentiates.
          variables: the first clone's variables to train.

        Raises:
          ValueError: naming a variable without copies, or one of the first clone that
            another clone uses.
        """
        if len(clone_losses) == 1:
            return
        used = [graph_walk.variables_read(losses) for losses in clone_losses]
        for variable in variables:
            name = variable.op.name
            if self.of_clone(variable, 1) is None and any(name in names for names in used):
                raise ValueError(
                    "with all_reduce model_fn must make its variables, by tf.get_variable or "
                    f"layers, got {name} made elsewhere"
                )
            for i, names in enumerate(used[1:], start=1):
                if name in names:
                    raise ValueError(
                        f"with all_reduce clone {i} must use its own copy of {name}, "
                        "got that of clone 0"
                    )

    def optimizer_of_clone(self, optimizer: Any, clone_index: int) -> Any:
        """Returns the clone's optimizer: `optimizer` for the first clone, else a copy of it."""
        if clone_index == 0:
            return optimizer
        others = _copies_of(self._registry.optimizers, optimizer)
        if clone_index not in others:
            others[clone_index] = _optimizer_like(optimizer)
        return others[clone_index]

    @contextlib.contextmanager
    def optimizer_variables(self, clone_index: int, made: list[Any]) -> Iterator[None]:
        """Makes variables created in the `with` block belong to the clone's optimizer.

        Args:
          clone_index: the clone; the first clone must come first.
          made: a list that collects the first clone's variables.  Variables of another clone become
            copies of them, in the same order and of the same shapes.

        Raises:
          ValueError: if the optimizer of another clone makes more variables.
        """
        originals = iter(list(made))

        def creator(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
            if clone_index == 0:
                made.append(next_creator(**kwargs))
                return made[-1]
            original = next(originals, None)
            if original is None:
                raise ValueError(
                    "optimizer must make the same variables for each clone, got "
                    f"{kwargs.get('name')} for clone {clone_index} only"
                )
            settings = _copy_settings(original, clone_index)
            if str(kwargs["name"]).startswith(f"clone_{clone_index}/"):
                del settings["name"]  # a slot, named after the copy that it belongs to
            kwargs.update(settings)
            kwargs.pop("shape", None)
            variable = _start_from(original, next_creator(**kwargs))
            _copies_of(self._registry.slots, original)[clone_index] = variable
            return variable

        with tf.variable_creator_scope(creator):
            yield

    def _get_variable(
        self, clone_index: int, getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any
    ) -> Any:
        """A custom getter for `tf.variable_scope` that returns the clone's copy."""
        variable = getter(name, *args, **kwargs)
        collections = kwargs.get("collections")
        if collections is not None and tf.GraphKeys.GLOBAL_VARIABLES not in collections:
            return variable
        if not internals.is_partitioned(variable):
            return self._copied(variable, clone_index)
        parts = [self._copied(part, clone_index) for part in variable]
        if clone_index == 0:
            return variable
        name = f"clone_{clone_index}/{variable.name}"
        return internals.partitioned_variable(name, variable, parts)

    def _copied(self, variable: Any, clone_index: int) -> Any:
        """Makes the missing copies of a variable; returns the clone's copy."""
        others = _copies_of(self._registry.variables, variable)
        for i in range(1, self._config.num_clones):
            if i not in others:
                with by_no_layer():
                    others[i] = _copy_variable(variable, i, self._device_of_copy(variable, i))
        return self.of_clone(variable, clone_index)

    def _device_function(self, clone_index: int) -> Callable[[Any], str]:
        """Returns a device function: variables to the clone's device, if none is named."""
        device = gpus.placing(self._config.clone_device(clone_index))

        def place(op: Any) -> str:
            if not placement.is_variable_op(op):
                return str(op.device)
            if callable(device):
                return device(op)
            return placement.merge_devices(device, op.device)

        return place

    def _device_of_copy(self, variable: Any, clone_index: int) -> str:
        """Returns the clone's device, or the variable's device if `model_fn` named one."""
        first = tf.DeviceSpec.from_string(self._config.clone_device(0))
        if tf.DeviceSpec.from_string(variable.device) == first:
            return self._config.clone_device(clone_index)
        return str(variable.device)


def _copies_of(entries: dict[int, _Entry], original: Any) -> dict[int, Any]:
    """Returns the copies of a variable or optimizer by clone index, in a dict to fill."""
    return entries.setdefault(id(original), _Entry(original, {})).others


def _copy_settings(original: Any, clone_index: int) -> dict[str, Any]:
    """Returns the keyword arguments of `tf.Variable` for a copy."""
    return {
        "initial_value": lambda: tf.zeros(original.shape, original.dtype.base_dtype),
        "name": f"clone_{clone_index}/{original.op.name}",
        "collections": [tf.GraphKeys.LOCAL_VARIABLES],
        "trainable": False,
        "dtype": original.dtype.base_dtype,
        "use_resource": internals.is_resource_variable(original),
        "constraint": original.constraint,
    }


def _start_from(original: Any, made: Any) -> Any:
    """Makes the initializer of the copy `made` assign the original's value; returns `made`.

    An initial value would be computed on the copy's device, which must not read the original there.
    """
    graph = tf.get_default_graph()
    with tf.init_scope(), tf.device(None), graph.colocate_with(None, ignore_existing=True):
        value = original.read_value()
        with tf.device(made.device):
            internals.set_initializer(made, tf.assign(made, value).op)
    return made


def _copy_variable(original: Any, clone_index: int, device: str) -> Any:
    """Makes a copy of a variable, outside of any loop or control dependency."""
    # `init_scope`: the original may be made inside of a loop body or under control dependencies.
    with tf.init_scope(), tf.device(None), tf.device(device), tf.name_scope(None):
        made = tf.Variable(**_copy_settings(original, clone_index))
    if internals.slice_of(original) is not None:  # of a partitioned variable
        internals.set_slice_of(made, internals.slice_of(original))
    _start_from(original, made)
    # Last, as from then on tapes note what touches it.  It is in no collection of such variables.
    internals.set_trainable(made, original.trainable)
    return made


def _replace_in_collections(by_id: dict[int, Any]) -> None:
    graph = tf.get_default_graph()
    for key in graph.get_all_collection_keys():
        if key != tf.GraphKeys.LOCAL_VARIABLES:
            items = graph.get_collection_ref(key)
            items[:] = [by_id.get(id(item), item) for item in items]


def _optimizer_like(optimizer: Any) -> Any:
    """Returns an optimizer with the same settings and no slots yet."""
    twin = copy.copy(optimizer)
    for name, value in vars(optimizer).items():
        if isinstance(value, tf.train.Optimizer):
            setattr(twin, name, _optimizer_like(value))
    internals.forget_slots(twin)
    internals.follow_loss_scale(twin)
    return twin
