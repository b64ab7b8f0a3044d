"""A network built for training, evaluation, features and small images: one set of variables.

Each is built in the same graph and, but for the first one, in a name scope of its own; what has
been built before it is of no consequence for how its ops are called there.
"""

import contextlib
import dataclasses
import itertools
import json
import re
from typing import Any

import pytest
import tensorflow.compat.v1 as tf

from nets import resnet_v1, resnet_v2
from tests.nets import graphs, reference
from tests.nets.training_step import Figures, Step
from tests.nets.twins import TWINS, VARIANTS

# Of the twins one stays in place of the other, as in `test_wrong_networks.py`.
_UNTRAINED = {*TWINS, *VARIANTS, "mobilenet_v1"} - {"mobilenet_v1_025"}
_UNIT = re.compile(r"(block\d)/unit_(\d+)/")


@dataclasses.dataclass(frozen=True)
class Built:
    """What one building of a network makes.

    Attributes:
      variables: `[name, shape]` of each variable that it asks for, in this order.
      end_points: `[key, shape]`.
      op_names: those of `graphs.op_names`.
      normalizations: those of `graphs.normalizations`.
      added: how many regularization losses and update ops.
      tensors: its result and end points.
    """

    variables: list[list[Any]]
    end_points: list[list[Any]]
    op_names: dict[str, Any]
    normalizations: dict[str, Any]
    added: tuple[int, int]
    tensors: tuple[Any, dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Training:
    """A network built for training, and its first step on the reference weights."""

    structure: graphs.Structure
    initializers: dict[str, str]
    regularized: list[str]
    without_gradient: list[str]
    figures: Figures


def build(name: str, scope: str, images: Any, **keywords: Any) -> Built:
    """Builds a network in the current graph, over the variables that are there."""
    asked = {}

    def note(getter, name, *arguments, **keywords):
        variable = getter(name, *arguments, **keywords)
        asked[name] = variable.shape.as_list()
        return variable

    before = _collected()
    with (
        tf.variable_scope("", reuse=tf.AUTO_REUSE, custom_getter=note),
        tf.name_scope(scope),
    ):
        result, end_points = graphs.build(name, images, **keywords)
    end_points = {key.removeprefix(f"{scope}/"): value for key, value in end_points.items()}
    return Built(
        variables=[list(item) for item in asked.items()],
        end_points=graphs.static_shapes(end_points),
        op_names=graphs.op_names(result, end_points, f"{scope}/"),
        normalizations=graphs.normalizations(tf.get_default_graph(), f"{scope}/"),
        added=tuple(after - each for after, each in zip(_collected(), before, strict=True)),
        tensors=(result, end_points),
    )


def _collected() -> tuple[int, int]:
    return (
        len(tf.losses.get_regularization_losses()),
        len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)),
    )


class Network:
    """One network, built several times over the same variables, and run on the reference weights.

    Attributes:
      expected: its reference numbers.
      training: the first of what is built; None where another network stands for this one.
      evaluation: on images of the usual size.
      small: on small images; None where there are no reference numbers of these.
      features: on the smallest images; None where another network stands for this one.
      values: what ran: `logits`, `end_points`, and `small`, the logits of a small image; None for
        twins, of which nothing is run but training.
    """

    def __init__(self, name: str) -> None:
        self.name, self.expected = name, reference.load(name)
        self.keywords = {key for key, _ in self.expected["flags"]["parameters"]}
        self.training = self.small = self.features = self.values = None
        with contextlib.ExitStack() as stack:
            step = None if name in _UNTRAINED else stack.enter_context(Step(name))
            graph = step.graph if step else tf.Graph()
            with graph.as_default():
                self._build()
                if name not in TWINS:
                    session = step.session if step else stack.enter_context(graphs.session(graph))
                    self._run(session)
            if step:
                self.training = _train(step, has_weights=name not in TWINS)

    @property
    def is_video(self) -> bool:
        """Whether it takes videos."""
        return len(self.expected["input"]["shape"]) == 5

    def _build(self) -> None:
        self._images = tf.placeholder(tf.float32, self.expected["input"]["shape"])
        if self.name in TWINS and self.name.startswith("resnet"):
            self.evaluation = _of_few_units(self.name, self._images)
        else:
            self.evaluation = build(self.name, "evaluation", self._images)
        if small := self.name not in TWINS and self.expected.get("logits_small_input"):
            again = {"reuse": True} if "reuse" in self.keywords else {}
            images = tf.constant(reference.images(small["input_shape"]))
            keywords = {**again, **small.get("keywords", {})}
            self.small = build(self.name, "small", images, **keywords)
        if self.name not in TWINS | VARIANTS:
            # Dense layers, of networks that take images of one size, have other variables.
            graph = tf.get_default_graph() if small or self.is_video else tf.Graph()
            with graph.as_default():
                images = graphs.sample(self.name, smallest=1)
                self.features = build(self.name, "features", images, num_classes=0)

    def _run(self, session: tf.Session) -> None:
        logits, end_points = self.evaluation.tensors
        fetches = {"logits": logits, "end_points": end_points}
        if self.small:
            fetches["small"] = self.small.tensors[0]
        graphs.load_weights(session)
        images = reference.images(self.expected["input"]["shape"])
        self.values = session.run(fetches, {self._images: images})


def _train(step: Step, has_weights: bool) -> Training:
    return Training(
        structure=step.structure,
        figures=step.run(weights=None if has_weights else reference.weights),
        regularized=step.regularized(),
        without_gradient=step.without_gradient,
        initializers=step.initializers(),
    )


def _of_few_units(name: str, images: Any) -> Built:
    """What a ResNet of many units is, from one in which three units of each block are built.

    All between the first and the last unit of a block are asked for by the same arguments: the
    second one stands for them.
    """
    counts = {}

    def of_three_units(four_blocks, *arguments):
        blocks = four_blocks(*arguments)
        for each in blocks:
            first, inner, *others, last = each.args
            assert all(other == inner for other in others)
            counts[each.scope] = len(each.args)
            yield each._replace(args=[first, inner, last])

    with pytest.MonkeyPatch.context() as patch:
        for module in (resnet_v1, resnet_v2):
            original = module.four_blocks
            patch.setattr(module, "four_blocks", lambda *a, f=original: list(of_three_units(f, *a)))
        few = build(name, "evaluation", images)
    variables = _expanded(few.variables, counts)
    num_norms = few.normalizations["fused"] + _num_gammas(variables) - _num_gammas(few.variables)
    names = few.op_names
    return dataclasses.replace(
        few,
        variables=variables,
        end_points=_expanded(few.end_points, counts),
        op_names={**names, "end_points": _expanded(names["end_points"], counts)},
        normalizations={**few.normalizations, "fused": num_norms},
    )


def _expanded(facts: list[list[Any]], counts: dict[str, int]) -> list[list[Any]]:
    """Returns `[name, fact]` of all units, from those of the first, the second and the last."""
    found = []
    for place, group in itertools.groupby(facts, _place):
        few = json.dumps(list(group))
        for number in _numbers(place, counts):
            found += json.loads(few.replace(f"/unit_{place[1]}/", f"/unit_{number}/"))
    return found


def _place(fact: list[Any]) -> tuple[str, str]:
    """Returns the block and the number of the unit that a fact is of, or names."""
    match = _UNIT.search(str(fact))
    return match.groups() if match else ("", "")


def _numbers(place: tuple[str, str], counts: dict[str, int]) -> list[int]:
    """Returns the numbers of the units that the one at this place stands for."""
    block, unit = place
    count = counts.get(block, 0)
    return {"2": list(range(2, count)), "3": [count]}.get(unit, [1])


def _num_gammas(variables: list[list[Any]]) -> int:
    return sum(name.endswith("/gamma") for name, _ in variables)
