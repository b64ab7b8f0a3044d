"""How far 16 bits may lead training astray: as far as the roundings on the longest path.

Each rounding to the nearest number of 16 bits is an error of at most `u`, half the distance of
neighbours near 1, of what is rounded.  One after the other `k` of them add up to `k u` at worst,
and as they go either way to at most `3 sqrt(k) u` with a probability of 0.98 (N. J. Higham and T.
Mary, A new approach to probabilistic rounding error analysis, SIAM Journal on Scientific Computing
41, 2019, theorem 2.4, of which 3 is the lambda: the probability is 1 - 2 exp(-lambda^2 / 2)).
Losses are wrong by so much of themselves; weights, which stay in 32 bits, by so much of how far
training moves them.  Where the terms of a gradient all but cancel they say more than their sum:
the largest move of all weights stands for them.
"""

import functools
import math
import types

import numpy as np
import tensorflow.compat.v1 as tf

from tests import harness
from tests.goldens import LogicalDevices

UNITS = {"bfloat16": 2.0**-8, "float16": 2.0**-11}
# Losses, of which rounding is seen to change less, are near to so many units in any case.
_OF_LOSSES = 8
_OF_16_BITS = (tf.bfloat16.as_datatype_enum, tf.float16.as_datatype_enum)
_LAMBDA = 3
_LOOPS = ("While", "StatelessWhile")


def one_clone(golden, make_optimizer):
    """Losses, and all values before and after the training of one clone in 32 bits."""
    one = harness.Replica(LogicalDevices(), golden, make_optimizer)
    with one.open():
        one.start()
        start = one.session.run(one.variables)
        for _ in range(harness.STEPS):
            one.step()
        one.finish()
    return types.SimpleNamespace(start=start, losses=one.losses, values=one.values)  # and no graph


def assert_near(run, one, precision):
    """What has been trained in 16 bits is in the bound of `one_clone`."""
    share = bound(run.graph, precision)
    rtol = min(share, _OF_LOSSES * UNITS[precision])
    np.testing.assert_allclose(run.losses, one.losses, rtol=rtol)
    trained = {v.op.name for v in run.graph.get_collection("trainable_variables")}
    moves = {name: np.max(np.abs(one.values[name] - one.start[name])) for name in one.start}
    largest = max(moves[name] for name in trained)
    for name, value in one.values.items():
        limit = share * max(largest, moves[name])
        np.testing.assert_allclose(run.values[name], value, rtol=0, atol=limit, err_msg=name)


def bound(graph, precision):
    """The share that a loss may be off, or a weight of the largest move; from the graph alone."""
    return _LAMBDA * math.sqrt(longest_path(graph.as_graph_def())) * UNITS[precision]


def longest_path(graph_def, loop_steps=5):
    """The most roundings that lie one after the other, those of a loop once for each step."""
    bodies = {each.signature.name: each.node_def for each in graph_def.library.function}

    @functools.cache
    def of_body(name):
        return _longest(bodies[name], of_loop)

    def of_loop(node):
        return loop_steps * of_body(node.attr["body"].func.name)

    return _longest(graph_def.node, of_loop)


def _longest(nodes, of_loop):
    by_name, found = {node.name: node for node in nodes}, {}
    waiting = list(by_name)
    while waiting:
        node = by_name[waiting[-1]]
        before = [each.split(":")[0] for each in node.input if not each.startswith("^")]
        before = [name for name in before if name in by_name and node.op != "NextIteration"]
        missing = [name for name in before if name not in found]
        if node.name in found or not missing:
            waiting.pop()
            rounds = of_loop(node) if node.op in _LOOPS else _rounds(node)
            found[node.name] = max((found[name] for name in before), default=0) + rounds
        waiting.extend(missing)
    return max(found.values(), default=0)


def _rounds(node):
    """1 for an op that gives numbers of 16 bits."""
    types = [node.attr[key].type for key in ("T", "DstT", "dtype") if key in node.attr]
    return int(any(each in _OF_16_BITS for each in types))
