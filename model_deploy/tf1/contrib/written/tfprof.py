"""`tf.contrib.tfprof`: graphs and calls of `Session.run` profiled, by `tf.profiler`."""

# ruff: noqa: PLR0917 - the order of arguments is that of `Session.run`
import functools
import os
import threading
from collections.abc import Collection
from typing import Any

import tensorflow.compat.v1 as tf

_BUILDER = tf.profiler.ProfileOptionBuilder
TRAINABLE_VARS_PARAMS_STAT_OPTIONS = _BUILDER.trainable_variables_parameter()
FLOAT_OPS_OPTIONS = _BUILDER.float_operation()
PRINT_ALL_TIMING_MEMORY = _BUILDER.time_and_memory()

_STEPS = frozenset([*range(10, 101, 10), *range(200, 1001, 100)])


def print_model_analysis(
    graph: tf.Graph,
    run_meta: Any = None,
    op_log: Any = None,
    tfprof_cmd: str = "scope",
    tfprof_options: Any = TRAINABLE_VARS_PARAMS_STAT_OPTIONS,
) -> Any:
    """Prints a profile of a graph, as `tf.profiler.profile` does.

    Args:
      graph: the graph.
      run_meta: a `tf.RunMetadata` of a traced call; None for what the graph alone says.
      op_log: no longer of use: operations have their numbers of floating-point operations.
      tfprof_cmd: the order, `scope`, `graph`, `op` or `code`.
      tfprof_options: one of this module's, or others of `tf.profiler.ProfileOptionBuilder`.

    Returns:
      The profile, a `tf.profiler.GraphNodeProto` or `MultiGraphNodeProto`.
    """
    return tf.profiler.profile(graph, run_meta, op_log, tfprof_cmd, tfprof_options)


class ProfileContext:
    """A `with` block in which some calls of `Session.run` are traced, and profiles written.

    The calls of all sessions of the process are counted together, from 0.

    Args:
      profile_dir: folder of the profiles, `profile_CALL`, which the command `tfprof` reads.
      trace_steps: the calls that are traced; by default 10, 20, ... 100, 200, ... 1000.  An empty
        list traces none.
      dump_steps: the calls after which a profile of all traced ones is written; by default the
        same.
      enabled: whether anything is done at all.
      debug: whether each traced call is logged.

    Raises:
      ValueError: if it is enabled and there is no folder.
    """

    def __init__(
        self,
        profile_dir: str | None,
        trace_steps: Collection[int] | None = None,
        dump_steps: Collection[int] | None = None,
        enabled: bool = True,
        debug: bool = False,
    ) -> None:
        if enabled and not profile_dir:
            raise ValueError(f"profile_dir must be a folder, got {profile_dir!r}")
        self._folder = profile_dir
        self._traced = set(_STEPS if trace_steps is None else trace_steps)
        self._written = set(_STEPS if dump_steps is None else dump_steps)
        self._enabled = enabled
        self._debug = debug
        self._step = 0
        self._counting = threading.Lock()
        self._session = tf.Session.__mro__[1]  # what `Session` and `InteractiveSession` share
        self._run: Any = None
        self._profiler: Any = None
        self._tracing = threading.Lock()

    @property
    def profiler(self) -> Any:
        """The `tf.profiler.Profiler` with the traced calls, None before the first of them."""
        return self._profiler

    def trace_next_step(self) -> None:
        """Has the next call traced."""
        self._traced.add(self._step)

    def dump_next_step(self) -> None:
        """Has a profile written after the next call, which is traced."""
        self._traced.add(self._step)
        self._written.add(self._step)

    def __enter__(self) -> "ProfileContext":
        if self._enabled:
            tf.gfile.MakeDirs(self._folder)
            self._run = self._session.run
            context, run = self, self._run

            def counted_run(
                session: Any,
                fetches: Any,
                feed_dict: Any = None,
                options: Any = None,
                run_metadata: Any = None,
            ) -> Any:
                return context.run(run, session, fetches, feed_dict, options, run_metadata)

            self._session.run = counted_run
        return self

    def __exit__(self, *_: object) -> None:
        if self._run is not None:
            self._session.run = self._run
            self._run = None

    def run(
        self, run: Any, session: Any, fetches: Any, feed_dict: Any, options: Any, metadata: Any
    ) -> Any:
        """Makes a call of `Session.run` by the method that it had, traced if it is to be.

        TensorFlow traces one call at a time: while one is traced those of other threads are not.
        """
        with self._counting:
            step, self._step = self._step, self._step + 1
        wanted = step in self._traced or step in self._written
        if not wanted or not self._tracing.acquire(blocking=False):
            return run(session, fetches, feed_dict, options, metadata)
        try:
            if step in self._traced:
                run = functools.partial(self._traced_run, run, step)
            result = run(session, fetches, feed_dict, options, metadata)
            if step in self._written and self._profiler is not None:
                path = os.path.join(str(self._folder), f"profile_{step}")
                with tf.gfile.Open(path, "wb") as file:
                    file.write(self._profiler.serialize_to_string())
        finally:
            self._tracing.release()
        return result

    def _traced_run(
        self,
        run: Any,
        step: int,
        session: Any,
        fetches: Any,
        feed_dict: Any,
        options: Any,
        metadata: Any,
    ) -> Any:
        if self._debug:
            tf.logging.info("call %d of Session.run is traced", step)
        traced = tf.RunOptions()
        traced.CopyFrom(options or traced)
        traced.trace_level = tf.RunOptions.FULL_TRACE
        metadata = tf.RunMetadata() if metadata is None else metadata
        result = run(session, fetches, feed_dict, traced, metadata)
        if self._profiler is None:
            self._profiler = tf.profiler.Profiler(session.graph)
        self._profiler.add_step(step, metadata)
        return result
