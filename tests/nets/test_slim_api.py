"""The modules of TF-Slim: every name that programs import from them, with its arguments."""

import functools
import gzip
import importlib
import inspect
import json
from pathlib import Path
from typing import Any

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim

# Module -> name -> its arguments as text, `name` or `name=default`; of a class, those of each of
# its functions. `names` are names of other values, `attributes` those of functions.
_FACTS = json.loads(
    gzip.decompress((Path(__file__).parent / "data" / "slim" / "slim_api.json.gz").read_bytes())
)


def members(module: Any, facts: dict[str, Any]) -> list[tuple[str, list[str] | None]]:
    """Returns each name in a module, dotted, with its arguments; None where it is no function."""
    found: list[tuple[str, list[str] | None]] = []
    for name, arguments in facts.items():
        if name in ("names", "attributes"):
            found += [(value, None) for value in arguments]
        elif isinstance(arguments, dict):
            found.append((name, None))
            found += [(f"{name}.{function}", arguments[function]) for function in arguments]
        else:
            found.append((name, arguments))
    return found


def difference(
    module: Any, name: str, wanted: list[str] | None, may_add: bool = False
) -> str | None:
    """Returns how a name of a module differs from what is wanted, None if it does not.

    With `may_add` there may be more arguments behind those that are wanted.
    """
    try:
        value = functools.reduce(getattr, name.split("."), module)
    except AttributeError:
        return f"no {name}"
    if wanted is None or not callable(value):  # a property, or the default of a field
        return None
    parameters = [p for p in inspect.signature(value).parameters.values() if p.name != "self"]
    parameters = parameters[: len(wanted)] if may_add else parameters
    if [str(p).partition("=")[0].partition(":")[0] for p in parameters] != [
        argument.partition("=")[0] for argument in wanted
    ]:
        return f"{name} takes {', '.join(map(str, parameters))}; wanted {', '.join(wanted)}"
    names = {"tf": tf, "slim": slim, **vars(module)}
    for parameter, argument in zip(parameters, wanted, strict=True):
        _, has_default, text = argument.partition("=")
        default = eval(text, names) if has_default else inspect.Parameter.empty
        if not (parameter.default == default and type(parameter.default) is type(default)):
            return f"{name} has {parameter}; wanted {argument}"
    return None


@pytest.mark.parametrize("module_name", _FACTS)
def test_every_name_with_its_arguments(module_name):
    """A module has the names, arguments in order, defaults and attributes that TF-Slim's has."""
    module = importlib.import_module(module_name)
    wanted = members(module, _FACTS[module_name])
    differences = [difference(module, name, arguments) for name, arguments in wanted]
    assert [text for text in differences if text] == []


def test_differences_are_found():
    """A missing name, another argument, order or default, and one too many, are told."""
    module = importlib.import_module("nets.mobilenet_v1")
    arguments = _FACTS["nets.mobilenet_v1"]["mobilenet_v1"]
    assert difference(module, "mobilenet_v1", arguments) is None
    assert difference(module, "mobilenet_v9", arguments) == "no mobilenet_v9"
    for changed in (
        arguments[:-1],
        arguments[::-1],
        [*arguments, "more=1"],
        [arguments[0], "num_classes=1001", *arguments[2:]],
    ):
        assert "wanted" in difference(module, "mobilenet_v1", changed)
