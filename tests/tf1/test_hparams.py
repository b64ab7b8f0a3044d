"""`tf.contrib.training.HParams`: types stay, texts are read, mistakes are told."""

import json

import numpy as np
import pytest

from model_deploy.tf1.contrib.written.hparams import HParams, parse_values

pytestmark = pytest.mark.one_mode


def make(**more):
    """Hyperparameters of each kind."""
    kinds = {"rate": 0.1, "layers": 2, "name": "small", "norm": True, "sizes": [64, 32]}
    return HParams(**kinds, **more)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("", {}),
        ("rate=1e-4,layers=3", {"rate": 1e-4, "layers": 3}),
        (" rate = 2 , name = large ", {"rate": 2.0, "name": "large"}),
        ("norm=false", {"norm": False}),
        ("norm=0", {"norm": False}),
        ("norm=2", {"norm": True}),
        ("name=", {"name": ""}),
        ("name=a/b:c", {"name": "a/b:c"}),
        ("sizes=[1,2,3]", {"sizes": [1, 2, 3]}),
        ("sizes=[1 2, 3],layers=1", {"sizes": [1, 2, 3], "layers": 1}),
        ("sizes[1]=16,sizes[0]=8", {"sizes": [8, 16]}),
    ],
)
def test_parse(text, changed):
    """A text changes what it names; types stay those of the first values."""
    hparams = make()
    before = hparams.values()
    assert hparams.parse(text) is hparams
    assert hparams.values() == {**before, **changed}
    for name, value in before.items():
        assert type(getattr(hparams, name)) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("depth=3", "hparams must be of rate, .*, sizes, got 'depth'"),
        ("layers=1.5", "layers must be of type int, got '1.5'"),
        ("norm=maybe", "norm must be of type bool, got 'maybe'"),
        ("sizes=[1,x]", "sizes must be of type int, got 'x'"),
        ("sizes=3", "sizes must be a list, got 3"),
        ("layers=[3]", r"layers must be no list, got \[3\]"),
        ("sizes[2]=3", r"sizes must have an item 2, got \[64, 32\]"),
        ("layers[0]=3", "layers must have an item 0, got 2"),
        ("rate=1,rate=2", "rate must have one value, got more"),
        ("sizes=[1,2],sizes[0]=2", "sizes must have one value"),
        ("rate", "must be name=value with commas between, got 'rate'"),
        ("rate=1;layers=2", "rate must be of type float"),
    ],
)
def test_parse_rejects(text, message):
    """A text that does not fit is an error that says which name and value it was."""
    with pytest.raises(ValueError, match=message):
        make().parse(text)


def test_parse_values():
    """Types are given by name; an unknown name may be left out."""
    kinds = {"a": int, "b": float, "c.d": str}
    assert parse_values("a[1]=2,b=[1,2],c.d=x", kinds) == {"a": {1: 2}, "b": [1.0, 2.0], "c.d": "x"}
    assert parse_values("a=1,z=2", kinds, ignore_unknown=True) == {"a": 1}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("rate", 1, 1.0),
        ("rate", np.float32(0.5), 0.5),
        ("layers", np.int64(7), 7),
        ("sizes", (1, 2), [1, 2]),
        ("nothing", "anything", "anything"),
    ],
)
def test_set_hparam(name, value, expected):
    """A value of another type that means the same becomes one of the type."""
    hparams = make(nothing=None)
    hparams.set_hparam(name, value)
    assert getattr(hparams, name) == expected
    assert type(getattr(hparams, name)) is type(expected)


OTHERS = {"name": [2.2], "norm": [1], "rate": [True, "fast"], "sizes": [[2, 3.3], 2, "2"]}
OTHERS["layers"] = [False, 2.2, 2.0, [2]]


@pytest.mark.parametrize(("name", "values"), OTHERS.items())
def test_set_hparam_rejects_another_type(name, values):
    """What would be another value after a cast, or is no list where one is wanted, is an error."""
    hparams = make()
    for value in values:
        with pytest.raises(ValueError, match=f"{name} must be (of type|a list|no list).*, got"):
            hparams.set_hparam(name, value)
    assert hparams.values() == make().values()


def test_names():
    """Only `add_hparam` adds a name; `get` is that of a dict; what is deleted is gone."""
    hparams = make()
    for call in (
        lambda: hparams.set_hparam("depth", 1),
        lambda: hparams.override_from_dict({"depth": 1}),
    ):
        with pytest.raises(KeyError, match="depth"):
            call()
    assert (hparams.get("rate"), hparams.get("rate", 3.0), hparams.get("depth", 7)) == (0.1, 0.1, 7)
    assert hparams.get("sizes", [1]) == [64, 32]
    hparams.add_hparam("depth", 1)
    assert "depth" in hparams
    assert hparams.parse("depth=2").depth == 2
    for name in ("rate", "depth", "never"):
        hparams.del_hparam(name)
    assert "rate" not in hparams
    assert not hasattr(hparams, "rate")
    assert list(hparams.values()) == ["layers", "name", "norm", "sizes"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda h: h.add_hparam("rate", 1), "new one, got 'rate'"),
        (lambda h: h.add_hparam("parse", 1), "new one, got 'parse'"),
        (lambda h: h.add_hparam("more", []), "value in its list"),
        (lambda h: h.get("rate", "x"), "rate must be of type float"),
        (lambda h: h.get("sizes", 3), "default of sizes must be a list"),
        (lambda _: HParams(object()), "hparam_def must be None"),
    ],
)
def test_mistakes(call, message):
    """Other mistakes are told as well."""
    with pytest.raises(ValueError, match=message):
        call(make())


def test_json():
    """What `to_json` writes, `parse_json` reads; functions are left out, however deep."""
    hparams = make(activation=abs)
    text = hparams.to_json(indent=1, sort_keys=True)
    assert json.loads(text) == make().values()
    assert list(json.loads(text)) == sorted(make().values())
    other = make().parse("rate=7,sizes=[1]")
    assert other.parse_json(text).values() == make().values()
    assert json.loads(HParams(table={"f": abs, "g": [abs, 1]}).to_json()) == {"table": {"g": [1]}}


def test_override_and_model_structure():
    """A dict changes several; something else may be kept beside them."""
    hparams = HParams(None, "structure", rate=0.1)
    assert hparams.get_model_structure() == "structure"
    hparams.set_model_structure("other")
    assert hparams.get_model_structure() == "other"
    assert hparams.override_from_dict({"rate": 1}).values() == {"rate": 1.0}
    assert hparams.set_from_map({"rate": 2}).rate == 2.0
    assert str(hparams) == "[('rate', 2.0)]"
    assert repr(hparams) == "HParams([('rate', 2.0)])"
