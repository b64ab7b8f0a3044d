"""`seeing_layers`: variables, updates and losses of Keras layers are those of the clone."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.config import DeploymentConfig, DeviceFunction
from model_deploy.keras_layers import checks, seeds
from model_deploy.keras_layers.assignments import Assignments
from model_deploy.keras_layers.losses import LayerLosses
from model_deploy.keras_layers.variables import LayerVariables, own_variable, place


@contextlib.contextmanager
def seeing_layers(
    config: DeploymentConfig, number: int, variables_device: str | DeviceFunction
) -> Iterator[None]:
    """A `with` block for a call of `model_fn`, in which Keras layers do what a clone needs.

    Variables that they make are made by `tf.get_variable`.  What they assign while they are
    called goes to `tf.GraphKeys.UPDATE_OPS`, what they add as losses to `LOSSES`, and their
    regularizers, for the first clone, to `REGULARIZATION_LOSSES`, unless `model_fn` has made
    these part of a loss.  Variables that a model does not train leave `TRAINABLE_VARIABLES`.

    Args:
      config: the deployment.
      number: of the clone, or of the part of a clone, from 0 on.
      variables_device: where variables are placed that were made before, on no device.

    Raises:
      ValueError: in the block, for a layer that cannot be trained by clones.
    """
    seen = _LayersOfClone(config, number, variables_device)
    with seen.stack, internals.watching_layers(seen), internals.fresh_names():
        with tf.variable_creator_scope(seen.variables.create):
            yield
        seen.finish()


class _LayersOfClone:
    """Sees each call of a layer; see `internals.LayerWatcher` and `seeing_layers`.

    Args:
      config: the deployment.
      number: of the clone, or of the part of a clone.
      variables_device: where variables are placed that were made before.

    Attributes:
      stack: the `with` blocks that end with the clone.
      variables: makes those of layers.
    """

    def __init__(
        self, config: DeploymentConfig, number: int, variables_device: str | DeviceFunction
    ) -> None:
        self._config = config
        self._number = number
        self._variables_device = variables_device
        has_others = config.batches_per_step > 1
        self._assignments = Assignments(has_others=has_others)
        self._losses = LayerLosses()
        self.variables = LayerVariables(
            # Not the config's, which a second deployment in the graph may not have.
            tf.get_default_graph().get_name_scope(),
            lambda: self._assignments.in_layer(None),
        )
        self.stack = contextlib.ExitStack()
        self._is_watching = False
        self._layers: dict[int, Any] = {}
        self._known: dict[int, Any] = {}
        self._depth = 0
        self._is_symbolic = False
        self._num_seeds = 0

    @contextlib.contextmanager
    def calling(self, layer: Any, is_symbolic: Callable[[], bool]) -> Iterator[None]:
        before = self._is_symbolic
        if not self._is_symbolic:
            # Keras 3 calls layers for their shapes also in the call of a model that is not built.
            nested = bool(self._depth)
            self._is_symbolic = internals.in_stateless_scope() or (not nested and is_symbolic())
        if not self._is_symbolic and id(layer) not in self._layers:
            checks.check_layer(layer, self._config, is_outermost=not self._depth)
            self._layers[id(layer)] = layer
            self._watch()
            self._use(internals.layer_variables(layer), layer.name)
        self._depth += 1
        name = None if self._is_symbolic else layer.name
        try:
            with self._assignments.in_layer(name), _norms(self._is_symbolic):
                yield
        finally:
            self._depth -= 1
            self._is_symbolic = before

    def added_loss(self, layer: Any, losses: Sequence[Any]) -> None:
        if self._depth and not self._is_for_shapes():
            self._losses.add(layer, losses)

    def losses_of(self, layer: Any) -> list[Any] | None:
        return None if self._is_for_shapes() else self._losses.of(layer)

    def drawing(self, generator: Any, draw: Callable[[], Any]) -> Any:
        if self._is_for_shapes():
            return draw()
        self._watch()
        self._use([internals.tf_variable(generator.state)], generator.name)
        self._num_seeds += 1
        with self._assignments.in_layer(generator.name):
            return seeds.seed_of_clone(generator, draw, self._config, self._number, self._num_seeds)

    def finish(self) -> None:
        """Adds to the graph's collections what the clone's layers have made."""
        with self._assignments.in_layer(None):
            self._losses.collect(list(self._layers.values()) if self._number == 0 else ())
            self._assignments.add_update_ops()
            for layer in self._layers.values():
                _apply_settings(layer)
        checks.check_assigned(self._assignments.changed_and_trained(), self._config)

    def _is_for_shapes(self) -> bool:
        """Whether layers are called for their shapes alone.

        Keras 3 does so also within the first call of a subclassed model, to build it.
        """
        return self._is_symbolic or internals.in_stateless_scope()

    def _watch(self) -> None:
        """From the first layer on ops are looked at; without one building takes no more time."""
        if not self._is_watching:
            self._is_watching = True
            self.stack.enter_context(internals.making_ops_by(self._assignments.rule))
            self.stack.enter_context(internals.fusing_batch_norms())

    def _use(self, variables: Sequence[Any], name: str) -> None:
        """Places variables that were made before; those of other clones are not used."""
        for variable in variables:
            if id(variable) in self._known or id(variable) in self.variables.made:
                continue
            self._known[id(variable)] = variable
            checks.check_graph(variable, name)
            if variable is None or internals.is_partitioned(variable):
                continue
            if self._number == 0:
                place(variable, self._config, self._variables_device)
            own = own_variable(variable)
            if own is not variable:
                self._assignments.use_in_place_of(variable, own)


@contextlib.contextmanager
def _norms(is_symbolic: bool) -> Iterator[None]:
    """A `with` block of a call; of one for shapes alone, batch norms are as Keras has them."""
    if is_symbolic:
        with internals.leaving_batch_moments(), internals.fusing_batch_norms(False):
            yield
    else:
        yield


def _apply_settings(layer: Any) -> None:
    """Lets optimizers apply constraints, and leave alone what the layer does not train."""
    trained = tf.get_collection_ref(tf.GraphKeys.TRAINABLE_VARIABLES)
    frozen = {id(internals.tf_variable(each)) for each in layer.non_trainable_variables}
    trained[:] = [variable for variable in trained if id(variable) not in frozen]
    for variable in layer.variables:
        of_tf = internals.tf_variable(variable)
        constraint = getattr(variable, "constraint", None)
        if constraint is not None and not internals.is_partitioned(of_tf):
            internals.set_constraint(of_tf, constraint)
