"""`datasets`, `preprocessing` and `deployment` have the names and arguments of TF-Slim's."""

import importlib
import json
from pathlib import Path

import pytest

from model_deploy import slim, tf1
from model_deploy.tf1 import importing
from tests.nets.test_slim_api import difference, members

pytestmark = pytest.mark.one_mode

_FACTS = json.loads((Path(__file__).parent / "data" / "slim_modules.json").read_text())


def _module(name):
    """The module that a program gets under a name of TF-Slim."""
    top, _, rest = name.partition(".")
    return importlib.import_module(f"{importing.SUPPLIED[top]}.{rest}")


@pytest.mark.parametrize("name", _FACTS)
def test_every_function_takes_what_it_took(name):
    """Arguments have the same names, order and defaults; tables, constants and classes are there.

    What is added to methods, and to `deployment`, stands behind all that was there.
    """
    module = _module(name)
    differences = [
        difference(module, each, arguments, "." in each or name.startswith("deployment"))
        for each, arguments in members(module, _FACTS[name])
    ]
    assert [text for text in differences if text] == []


def test_modules_for_programs_that_change_their_imports():
    """`model_deploy.tf1` has the factories and `contrib` under its own name."""
    assert tf1.dataset_factory is _module("datasets.dataset_factory")
    assert tf1.preprocessing_factory is _module("preprocessing.preprocessing_factory")
    assert tf1.contrib.slim.conv2d is slim.conv2d
    with pytest.raises(AttributeError, match=r"'model_deploy.tf1' has no attribute 'never'"):
        tf1.never  # noqa: B018 - asks for it
