"""Modules as TensorFlow 1 had them, and what they say of names that are gone."""

import functools
import importlib
import operator
import re
import sys
import types

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.tf1 import gone, names
from model_deploy.tf1.old_module import GoneError, OldModule

pytestmark = pytest.mark.one_mode


def test_names_come_from_the_first_provider_that_has_them():
    """Extras come before providers; these are asked in order, and a value is kept."""
    first, second = types.ModuleType("first"), types.ModuleType("second")
    first.a, second.a, second.b, second.c = 1, 2, 2, 2
    made = []
    module = OldModule("tensorflow.old", [first, second], {"c": lambda: made.append(3) or 3})
    assert (module.a, module.b, module.c, module.c) == (1, 2, 3, 3)
    assert made == [3]
    assert {"a", "b", "c"} <= set(dir(module))
    assert set(module.__all__) == {"a", "b", "c"}


def test_providers_are_imported_when_they_are_needed(tmp_path, monkeypatch):
    """A module that is named by a text is not imported before a name is asked for."""
    (tmp_path / "late_provider.py").write_text("value = 5\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = OldModule("tensorflow.old", ["late_provider"])
    assert "late_provider" not in sys.modules
    assert module.value == 5
    assert "late_provider" in sys.modules


def test_version_is_that_of_the_provider():
    """Programs ask `tf.__version__`; other names of that kind are not looked up."""
    assert names.root().__version__ == tf.__version__
    assert not hasattr(names.root(), "__path__")
    assert not hasattr(OldModule("tensorflow.old", [tf]), "__nothing__")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tensorflow.mul", "tf.mul is gone since TensorFlow 1.0: use tf.multiply"),
        ("tensorflow.contrib.learn.x.y", "tf.contrib.learn.x.y is gone since TensorFlow 2.0: use"),
        ("tensorflow.contrib.never", "tf.contrib.never is gone since .*: TensorFlow 2 has no"),
        ("tensorflow.never", "tf.never is in no release of TensorFlow that is known here"),
    ],
)
def test_gone_names_say_what_to_use(name, message):
    """The error is an `AttributeError`, so that `hasattr` is false and programs can catch it."""
    parent, _, last = name.rpartition(".")
    module = OldModule(parent, [types.ModuleType("empty")])
    assert not hasattr(module, last)
    with pytest.raises(GoneError, match=message):
        getattr(module, last)
    assert issubclass(GoneError, AttributeError)


def _find(name):
    """A name of TensorFlow 1, by the way that a program would take."""
    return functools.reduce(getattr, name.split(".")[1:], names.root())


@pytest.mark.parametrize("name", gone._GONE)
def test_what_is_called_gone_is_gone(name):
    """TensorFlow does not have the name, and a program is told so; parts of it may be left."""
    with pytest.raises(AttributeError):
        functools.reduce(getattr, name.split(".")[1:], tf)
    release = gone._GONE[name][0]
    with pytest.raises((GoneError, ImportError)) as caught:
        # Of what is there in part, a name that is not.
        _find(f"{name}.no_such_name")
    message = str(caught.value)
    # Python itself names a package that is now on its own, where it is not installed.
    is_missing = message == f"No module named {name.rpartition('.')[2]!r}"
    assert is_missing or f"is gone since TensorFlow {release}: " in message
    assert tuple(map(int, release.split("."))) <= tuple(map(int, tf.__version__.split(".")[:2]))


def _advised():
    """Dotted names in advice, with those that only other packages have left out."""
    texts = {text for _, text in gone._GONE.values()}
    found = {name for text in texts for name in re.findall(r"\b(?:tf|model_deploy)\.[\w.]+", text)}
    return sorted(name.rstrip(".") for name in found)


@pytest.mark.parametrize("name", _advised())
def test_what_is_advised_exists(name):
    """Each name that a message tells to use is there."""
    top, _, rest = name.partition(".")
    if top == "tf":
        assert _find(f"tensorflow.{rest}") is not None
    else:
        assert operator.attrgetter(rest)(importlib.import_module("model_deploy"))
