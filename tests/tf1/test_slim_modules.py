"""`datasets`, `preprocessing` and `deployment` have the names and arguments of TF-Slim's."""

import importlib
import inspect
import json
from pathlib import Path

import pytest

from model_deploy import slim, tf1
from model_deploy.tf1 import importing

pytestmark = pytest.mark.one_mode

_FACTS = json.loads((Path(__file__).parent / "data" / "slim_modules.json").read_text())


def _module(name):
    """The module that a program gets under a name of TF-Slim."""
    top, _, rest = name.partition(".")
    return importlib.import_module(f"{importing.SUPPLIED[top]}.{rest}")


def _functions(facts, owner=None):
    """Each function with the class that has it, or None, and its arguments."""
    for name, arguments in facts.items():
        if isinstance(arguments, dict):
            yield from _functions(arguments, name)
        elif name != "names":
            yield owner, name, arguments


@pytest.mark.parametrize("name", _FACTS)
def test_every_function_takes_what_it_took(name):
    """Arguments have the same names, order and defaults."""
    module = _module(name)
    differences = []
    for owner, function, wanted in _functions(_FACTS[name]):
        value = getattr(getattr(module, owner) if owner else module, function)
        if not callable(value):  # a property, or the default of a field
            continue
        found = [p for p in inspect.signature(value).parameters.values() if p.name != "self"]
        names = [str(p).partition("=")[0].partition(":")[0] for p in found]
        defaults = {p.name: p.default for p in found if p.default is not p.empty}
        pairs = [each.partition("=")[::2] for each in wanted]
        expected = {each: eval(text, vars(module)) for each, text in pairs if text}
        # What is added stands behind all that was there.
        kept = names[: len(pairs)] if owner or name.startswith("deployment") else names
        if kept != [each for each, _ in pairs] or any(
            defaults.get(each) != value for each, value in expected.items()
        ):
            differences.append(f"{function}({', '.join(map(str, found))}); wanted {wanted}")
    assert differences == []


@pytest.mark.parametrize("name", [name for name in _FACTS if "names" in _FACTS[name]])
def test_every_other_name_is_there(name):
    """So are tables, constants and classes."""
    module = _module(name)
    assert [each for each in _FACTS[name]["names"] if not hasattr(module, each)] == []


def test_modules_for_programs_that_change_their_imports():
    """`model_deploy.tf1` has the factories and `contrib` under its own name."""
    assert tf1.dataset_factory is _module("datasets.dataset_factory")
    assert tf1.preprocessing_factory is _module("preprocessing.preprocessing_factory")
    assert tf1.contrib.slim.conv2d is slim.conv2d
    with pytest.raises(AttributeError, match=r"'model_deploy.tf1' has no attribute 'never'"):
        tf1.never  # noqa: B018 - asks for it
