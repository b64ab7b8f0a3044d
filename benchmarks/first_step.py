"""A loop of graph mode up to its first step, in a process that imports what its users would."""

import importlib

from benchmarks.child import Requests


def serve(requests: Requests, loop: str, num_clones: int) -> None:
    """Trains the tiny network with one of the loops, and is ready after the first step.

    Only in a program of this project is `model_deploy` imported before TensorFlow, which then
    leaves Keras for later.
    """
    importlib.import_module("model_deploy" if loop == "train" else "tensorflow")
    loops = importlib.import_module("benchmarks.loops")
    loops.serve_first_step(requests, loop, num_clones)
