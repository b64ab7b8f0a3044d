"""`Passes`: runs a graph of its own over all batches, for one checkpoint after another."""

import dataclasses
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import gpus
from model_deploy.checkpoints import Restorer, with_checkpoint
from model_deploy.checks import check_at_least
from model_deploy.config import DeploymentConfig
from model_deploy.embeddings import growing_shards
from model_deploy.optimization import averages_to_restore

# Sessions of a server share variables of the same container; this one keeps evaluation apart.
_CONTAINER = "evaluation"


class Pass(NamedTuple):
    """All batches, run with the variables of a checkpoint.

    Attributes:
      checkpoint: path of the checkpoint.
      global_step: its global step.
      runs: for each fetch, by name, its values: arrays, one for each batch.
    """

    checkpoint: str
    global_step: int
    runs: dict[str, tuple[Any, ...]]


class Passes:
    """The graph and the session of an evaluation, which is opened and closed.

    Args:
      build: builds inputs and model in the default graph for a config; returns what to fetch for
        each batch, tensors of any shapes by name.
      config: the clones; None for one.
      use_averages: whether to restore moving averages.
      max_num_batches: number of batches after which to stop; None for all.
      master: address of a TensorFlow server; '' for a session in this process.
      session_config: a `tf.ConfigProto`; by default that of `gpus.session_config` with soft
        placement.

    Raises:
      ValueError: if `max_num_batches` is less than 1.
    """

    def __init__(
        self,
        build: Callable[[DeploymentConfig], Mapping[str, Any]],
        *,
        config: DeploymentConfig | None = None,
        use_averages: bool = False,
        max_num_batches: int | None = None,
        master: str = "",
        session_config: Any = None,
    ) -> None:
        check_at_least("max_num_batches", max_num_batches, 1)
        self._max_num_batches = max_num_batches
        self._master = master
        config = config or DeploymentConfig()
        self._session_config = session_config or gpus.session_config(
            config,
            on_cpu=config.clone_on_cpu,
            base=tf.ConfigProto(allow_soft_placement=True),
        )
        if not config.clone_on_cpu:
            gpus.use_tf32(config)
        self._session: Any = None
        self._graph = tf.Graph()
        with self._graph.as_default(), self._graph.container(_CONTAINER):
            # Deterministic ops need a seed, here for initial values that are never computed.
            tf.set_random_seed(0)
            # Not copied: each clone takes its part of a batch in its call of `predict`; and there
            # are no gradients to accumulate.
            config = dataclasses.replace(config, copy_clones=False, accumulate_steps=1)
            self._fetches = dict(build(config))
            self._restorer = Restorer(
                averages_to_restore()
                if use_averages
                else {variable.op.name: variable for variable in tf.global_variables()}
            )
            self._initializer = tf.group(tf.local_variables_initializer(), tf.tables_initializer())
        with self._graph.as_default():
            # A checkpoint of other parameter servers comes with ops that find the rows in it.
            if not growing_shards():
                self._graph.finalize()

    def open(self) -> None:
        """Opens the session."""
        self._session = tf.Session(self._master, self._graph, self._session_config)
        # A callable, as `Session.run` would take most of the time for small batches.
        self._run_batch = self._session.make_callable(list(self._fetches.values()))

    def close(self) -> None:
        """Closes the session."""
        self._session.close()
        self._session = None

    def run(self, checkpoint: str | os.PathLike[str]) -> Pass:
        """Restores a checkpoint and runs all batches.

        Args:
          checkpoint: path of a checkpoint, or of a folder, for its newest good one.

        Raises:
          ValueError: if there is no such checkpoint, or it is damaged or of another model.
          MemoryError: if a batch does not fit into the memory of a device.
          RuntimeError: if the session is not open.
        """
        if self._session is None:
            raise RuntimeError("evaluate must be called within `with Evaluator(...) as evaluator:`")
        path, step = with_checkpoint(
            os.fspath(checkpoint), lambda path: (path, self._restorer.restore(self._session, path))
        )
        self._session.run(self._initializer)
        runs: list[list[Any]] = []
        with gpus.device_errors_explained(own_pid=os.getpid()):
            while self._max_num_batches is None or len(runs) < self._max_num_batches:
                try:
                    runs.append(self._run_batch())
                except tf.errors.OutOfRangeError:
                    break
        columns = zip(*runs, strict=True) if runs else [()] * len(self._fetches)
        return Pass(path, step, dict(zip(self._fetches, columns, strict=True)))


def check_has_examples(count: int) -> None:
    """Checks that batches have given examples.

    Raises:
      ValueError: if there was none.
    """
    if not count:
        raise ValueError("batches must give at least one example, got none")
