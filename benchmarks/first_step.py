"""A process up to its first step, or to a stage before it; it imports what its users would."""

import importlib
import tempfile
import time
from typing import Any

from benchmarks.child import Requests

IMPORT, AS_WE_DO, LIBRARY = "import tensorflow", "TensorFlow behind model_deploy", "model_deploy"
GRAPH, SESSION, FIRST_STEP = "graph", "session", "first step"
# What a process of `train` has reached, one after the other.
STAGES = (AS_WE_DO, LIBRARY, GRAPH, SESSION, FIRST_STEP)


def serve(requests: Requests, loop: str, num_clones: int) -> None:
    """Trains the tiny network with one of the loops, and is ready after the first step.

    Only in a program of this project is `model_deploy` imported before TensorFlow, which then
    leaves Keras for later.
    """
    importlib.import_module("model_deploy" if loop == "train" else "tensorflow")
    loops = importlib.import_module("benchmarks.loops")
    loops.serve_first_step(requests, loop, num_clones)


def reach(requests: Requests, stage: str) -> None:
    """Is ready when a stage of `train` is over: `IMPORT` by itself, or one of `STAGES`."""
    if stage != IMPORT:
        importlib.import_module("model_deploy")
    tf = importlib.import_module("tensorflow").compat.v1
    if stage not in (IMPORT, AS_WE_DO):
        tf.disable_eager_execution()
        _reach_by_us(requests, stage, tf)
    else:
        _say(requests)
    requests.wait()


def _reach_by_us(requests: Requests, stage: str, tf: Any) -> None:
    library = importlib.import_module("model_deploy")
    deploy, train = library.deploy, library.train
    if stage == LIBRARY:
        _say(requests)
        return

    def model_fn() -> None:
        logits = tf.ones([8, 10]) @ tf.get_variable("weights", [10, 3])
        tf.losses.sparse_softmax_cross_entropy(tf.zeros([8], tf.int64), logits)

    config = library.DeploymentConfig(clone_on_cpu=True)
    model = deploy(config, model_fn, optimizer=tf.train.GradientDescentOptimizer(0.1))
    if stage == GRAPH:
        _say(requests)
        return

    class Hook(tf.train.SessionRunHook):  # type: ignore[misc] - TensorFlow's is not known here
        """Is ready with the session, or after the first step."""

        def after_create_session(self, session: Any, coord: Any) -> None:
            del session, coord
            if stage == SESSION:
                _say(requests)

        def after_run(self, run_context: Any, run_values: Any) -> None:
            del run_context, run_values
            if stage == FIRST_STEP:
                _say(requests)

    with tempfile.TemporaryDirectory() as folder:
        train(model, folder, max_steps=1, hooks=[Hook()])


def _say(requests: Requests) -> None:
    requests.answer({"CPU seconds": time.process_time()})
