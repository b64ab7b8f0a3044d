"""The source of old programs means what it meant."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.tf1 import old_source

pytestmark = pytest.mark.one_mode


def run(source):
    """The names that a module has after it has run."""
    names = {**old_source.BUILTINS, "np": np, "tf": tf}
    exec(old_source.compiled(source, "old.py"), names)
    return names


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("int(np.array([3.7]))", 3),
        ("int(2 * np.array([[1.0]]) + 1)", 3),
        ("float(np.array([2], np.int32))", 2.0),
        ("int(np.float32(3.7))", 3),
        ("int('17', 8)", 15),
        pytest.param("int()", 0, id="nothing"),
        pytest.param("int(*[5])", 5, id="starred"),
        ("int(float('2.5'))", 2),
        ("int(tf.TensorShape([7]).as_list()[0])", 7),
        ("list(map(int, ['1', '2']))", [1, 2]),
        ("isinstance(3, int) and int is type(3)", True),
    ],
)
def test_conversions(expression, value):
    """`int` and `float` convert what NumPy 1 let them convert, and all else as ever."""
    result = run(f"result = {expression}")["result"]
    assert (result, type(result)) == (value, type(value))


def test_own_int_is_called():
    """What the module itself calls `int` is called with what it is given."""
    assert run("def int(x): return ('own', x.shape)\nresult = int(np.zeros([1]))")["result"] == (
        "own",
        (1,),
    )


@pytest.mark.parametrize("array", ["np.zeros([2])", "np.zeros([0])"])
def test_other_arrays_are_refused(array):
    """An array of another size than one is no number."""
    with pytest.raises(TypeError, match=r"0-dimensional|size-1|length-1"):
        run(f"int({array})")


def test_lines_stay():
    """An error shows the line of the program."""
    with pytest.raises(ZeroDivisionError) as error:
        run("x = int(\n  1)\n\n1 / int(0)")
    assert error.traceback[-1].lineno == 3
