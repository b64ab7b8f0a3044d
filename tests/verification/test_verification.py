"""A step that is made twice: what is found, what is not, and what a step is afterwards."""

import itertools
import time

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import deploy
from model_deploy.verification import CorruptionError
from tests.goldens import LogicalDevices
from tests.harness import sgd
from tests.verification.injections import false_alarms, injections
from tests.verification.steps import CASES, MISSED, Steps, steps_of

# Those whose ops programs of TensorFlow 1 have otherwise, and clones with copies.
_IN_BOTH_MODES = ("rows", "loop", "all-reduce with batch norm")


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[] if case in _IN_BOTH_MODES else [pytest.mark.one_mode])
        for case in CASES
    ],
)
def test_flips_are_found(case):
    """Of 8 bits that flip in a gradient, a weight or a batch none is missed, but one without effect
    on any variable; in clean steps nothing is found.
    """
    with steps_of(case, injects=True) as steps:
        assert injections(steps, 8)[MISSED] == 0
        steps.begin()
        assert false_alarms(steps, 5) == 0


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        (
            "gradient 2 of hidden/weights",
            r"gradient of hidden/weights on /device:CPU:1 \(clone 1\)",
        ),
        ("weight hidden/biases", r"variable hidden/biases on /device:CPU:0: 1 bits in 1 of 5 elem"),
    ],
)
def test_what_a_difference_names(kind, pattern):
    """A difference names the gradient or variable, its device and the step, in one line."""
    with steps_of("dropout", injects=True) as steps:
        steps.verify()
        steps.injector.arm(kind, 1, (0, 30))
        with pytest.raises(
            CorruptionError, match=f"^silent corruption at step 2: .*{pattern}"
        ) as e:
            steps.verify()
    assert e.value.step == 2
    assert "\n" not in str(e.value)


def test_a_weight_that_flips_between_steps_is_found_by_its_copies():
    """With all-reduce a bit of a copy that flips in storage is found in the next verified step."""
    with steps_of("all-reduce") as steps:
        [copy] = [v for v in tf.local_variables() if v.op.name == "clone_1/hidden/weights"]
        steps.verify()
        value = steps.session.run(copy)
        value.view(np.int32)[0, 0] ^= 1 << 20
        copy.load(value, steps.session)
        with pytest.raises(
            CorruptionError, match="copies of variable hidden/weights differ, those"
        ):
            steps.verify()


@pytest.mark.parametrize(
    "case",
    [
        pytest.param("clones", marks=pytest.mark.one_mode),
        "rows",
        pytest.param("parts of clones on a CPU", marks=pytest.mark.one_mode),
        pytest.param("all-reduce", marks=pytest.mark.one_mode),
    ],
)
def test_a_verified_step_is_a_step(case):
    """Steps made twice end with the values of steps made once, to the last bit."""
    ends = []
    for verifies in (True, False):
        with steps_of(case) as steps:
            for _ in range(3):
                steps.verify() if verifies else steps.session.run(steps.report)
            values = steps.session.run({v.op.name: v for v in tf.global_variables()})
            ends.append({name: value.tobytes() for name, value in values.items()})
    assert ends[0] == ends[1]


@pytest.mark.one_mode
@pytest.mark.parametrize("in_the_loss", [True, False], ids=["a loss", "an update op"])
def test_a_sum_begins_with_the_same_value(in_the_loss):
    """(3 + 1e8) - 1e8 is 0 in float32, and (-1e8 + 1e8) + 3 is 3: a sum whose first values others
    keep, in the first making longer than in the second one, begins with the same value in both.
    """
    makings = itertools.count()

    def kept(*_):
        time.sleep(0.0 if next(makings) % 2 else 0.4)
        return np.float32(0)

    def late(value):
        time.sleep(0.2)
        return value

    def model_fn():
        weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
        value = tf.stop_gradient(weight[tf.newaxis])
        first, second = value * 3.0, value * 1e8
        third = tf.py_func(late, [value], tf.float32) * -1e8
        total = tf.add_n([first, second, third])[0]
        if in_the_loss:
            tf.losses.add_loss(total)
        else:
            state = tf.get_variable("state", [], trainable=False)
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, state.assign(total).op)
        tf.losses.add_loss(weight**2)
        tf.losses.add_loss(tf.py_func(kept, [first, second], tf.float32))

    model = deploy(LogicalDevices(), model_fn, optimizer=sgd(0.0))
    with Steps(model).opened() as steps:
        assert 1.0 in steps.verify()  # the loss


@pytest.mark.parametrize("waits", [False, True], ids=["by tensors", "by control inputs"])
def test_inputs_are_read_once(waits):
    """Each step takes one element, also where ops wait for the input without its value."""
    dataset = tf.data.Dataset.range(100).map(lambda n: tf.cast(n, tf.float32))
    iterator = tf.data.make_initializable_iterator(dataset)
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    with tf.variable_scope("sums"):
        total, count = (tf.get_variable(n, [], initializer=tf.zeros_initializer()) for n in "tc")

    def model_fn():
        number = iterator.get_next()
        tf.losses.add_loss(tf.get_variable("w", [], initializer=tf.ones_initializer()) * number)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(total, number).op)
        with tf.control_dependencies([number] if waits else []):
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(count, 1.0).op)

    model = deploy(LogicalDevices(), model_fn, optimizer=sgd())
    with Steps(model).opened() as steps:
        for made in range(1, 5):
            steps.verify() if made % 2 else steps.session.run(steps.report)
            # 0 + 1 + ... of one number a step
            expected = [made * (made - 1) / 2, made]
            assert steps.session.run([total, count]) == expected
