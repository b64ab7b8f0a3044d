"""`tf.contrib.training.HParams`: named hyperparameters, changed by texts such as `rate=0.1`."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

# `name=value` or `name[index]=value` or `name=[v1,v2]`, and the comma behind it.
_ASSIGNMENT = re.compile(
    r"\s*(?P<name>[A-Za-z]\w*)\s*(?:\[\s*(?P<index>\d+)\s*\])?\s*=\s*"
    r"(?:\[(?P<list>[^\]]*)\]|(?P<value>[^,\[\]]*))\s*(?:,|$)"
)
_WORDS = {"true": True, "false": False, "1": True, "0": False}


class HParams:
    """Hyperparameters as attributes; their types stay those of the first values.

    >>> hparams = HParams(rate=0.1, sizes=[64, 32], name="small")
    >>> hparams.parse("rate=0.5,sizes[1]=16").values()
    {'rate': 0.5, 'sizes': [64, 16], 'name': 'small'}

    Args:
      model_structure: anything, see `get_model_structure`.
      **kwargs: names and values: numbers, texts, truth values, or lists of one of these.
    """

    def __init__(self, model_structure: Any = None, **kwargs: Any) -> None:
        self._hparam_types: dict[str, tuple[type, bool]] = {}
        self._model_structure = model_structure
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds a hyperparameter.

        Raises:
          ValueError: if the name is taken, or the value is an empty list.
        """
        if getattr(self, name, None) is not None:
            raise ValueError(f"name must be a new one, got {name!r}, which is there already")
        if isinstance(value, list | tuple):
            if not value:
                raise ValueError(f"{name} must have a value in its list, got {value!r}")
            self._hparam_types[name] = (type(value[0]), True)
        else:
            self._hparam_types[name] = (type(value), False)
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Changes a hyperparameter, which keeps its type.

        Raises:
          KeyError: if there is none of this name.
          ValueError: if the value is of another type.
        """
        kind, is_list = self._hparam_types[name]
        if isinstance(value, list | tuple) != is_list:
            wanted = "a list" if is_list else "no list"
            raise ValueError(f"{name} must be {wanted}, got {value!r}")
        cast = [_cast(name, kind, each) for each in value] if is_list else _cast(name, kind, value)
        setattr(self, name, cast)

    def del_hparam(self, name: str) -> None:
        """Removes a hyperparameter; does nothing if there is none of this name."""
        if hasattr(self, name):
            delattr(self, name)
            del self._hparam_types[name]

    def parse(self, values: str) -> "HParams":
        """Changes hyperparameters to those of a text, such as `rate=0.1,sizes=[64,32]`.

        Raises:
          ValueError: if the text cannot be read, or a name is unknown.
        """
        for name, index, value in _assignments(values):
            if name not in self._hparam_types:
                known = ", ".join(self._hparam_types)
                raise ValueError(f"hparams must be of {known}; got {name!r} in {values!r}")
            kind, is_list = self._hparam_types[name]
            if index is not None:
                items = list(getattr(self, name))
                items[index] = _read(name, kind, value)
                setattr(self, name, items)
            elif isinstance(value, list):
                self.set_hparam(name, [_read(name, kind, each) for each in value])
            else:
                read = _read(name, kind, value)
                self.set_hparam(name, [read] if is_list else read)
        return self

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> "HParams":
        """Changes hyperparameters to those of a mapping.

        Raises:
          KeyError: for an unknown name.
          ValueError: for a value of another type.
        """
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def values(self) -> dict[str, Any]:
        """All hyperparameters by name."""
        return {name: getattr(self, name) for name in self._hparam_types}

    def get(self, key: str, default: Any = None) -> Any:
        """A hyperparameter by name, or `default` if there is none.

        Raises:
          ValueError: if the default is of another type than the hyperparameter.
        """
        if key not in self._hparam_types:
            return default
        if default is not None:
            kind, is_list = self._hparam_types[key]
            for each in default if is_list else [default]:
                _cast(key, kind, each)
        return getattr(self, key)

    def to_json(self, indent: Any = None, separators: Any = None, sort_keys: bool = False) -> str:
        """All hyperparameters as a JSON object; functions among them are left out."""
        plain = {name: value for name, value in self.values().items() if not callable(value)}
        return json.dumps(plain, indent=indent, separators=separators, sort_keys=sort_keys)

    def parse_json(self, values_json: str) -> "HParams":
        """Changes hyperparameters to those of a JSON object."""
        return self.override_from_dict(json.loads(values_json))

    def set_model_structure(self, model_structure: Any) -> None:
        """Keeps something beside the hyperparameters."""
        self._model_structure = model_structure

    def get_model_structure(self) -> Any:
        """What `set_model_structure` or the constructor got."""
        return self._model_structure

    def __contains__(self, key: str) -> bool:
        return key in self._hparam_types

    def __str__(self) -> str:
        return str(sorted(self.values().items()))

    def __repr__(self) -> str:
        return f"HParams({self})"


def parse_values(values: str, type_map: Mapping[str, type]) -> dict[str, Any]:
    """The values of a text such as `rate=0.1,sizes=[64,32]`, by name.

    Args:
      values: the text.
      type_map: the type of each name.

    Raises:
      ValueError: if the text cannot be read, or a name is unknown.
    """
    found: dict[str, Any] = {}
    for name, index, value in _assignments(values):
        if name not in type_map:
            raise ValueError(
                f"hparams must be of {', '.join(type_map)}; got {name!r} in {values!r}"
            )
        kind = type_map[name]
        if isinstance(value, list):
            found[name] = [_read(name, kind, each) for each in value]
        elif index is not None:
            found.setdefault(name, {})[index] = _read(name, kind, value)
        else:
            found[name] = _read(name, kind, value)
    return found


def _assignments(text: str) -> Iterator[tuple[str, int | None, Any]]:
    """Name, index in a list or None, and value, of each assignment; a list as one of texts."""
    place = 0
    while place < len(text):
        match = _ASSIGNMENT.match(text, place)
        if match is None:
            raise ValueError(f"hparams must be name=value with commas between, got {text!r}")
        place = match.end()
        index = None if match["index"] is None else int(match["index"])
        if match["list"] is not None:
            yield match["name"], index, [each.strip() for each in match["list"].split(",")]
        else:
            yield match["name"], index, match["value"].strip()


def _read(name: str, kind: type, text: str) -> Any:
    """A value of a type from a text."""
    try:
        if kind is bool:
            return _WORDS[text.lower()]
        return text if kind in (str, type(None)) else kind(text)
    except (KeyError, ValueError):
        raise ValueError(f"{name} must be of type {kind.__name__}, got {text!r}") from None


def _cast(name: str, kind: type, value: Any) -> Any:
    """A value as one of a type that means the same."""
    if value is None or kind is type(None) or isinstance(value, kind):
        return value
    wrong = isinstance(value, str) != issubclass(kind, str) or isinstance(value, bool)
    if wrong or kind is bool or (issubclass(kind, int) and value != int(value)):
        raise ValueError(f"{name} must be of type {kind.__name__}, got {value!r}")
    return kind(value)
