"""`tf.contrib.training.HParams`: named hyperparameters, changed by texts such as `rate=0.1`."""

import json
import numbers
import re
from collections.abc import Iterator, Mapping
from typing import Any

# `name=value` or `name[index]=value` or `name=[v1,v2]`, and the comma behind it.
_ASSIGNMENT = re.compile(
    r"\s*(?P<name>[A-Za-z][\w.]*)\s*(?:\[\s*(?P<index>\d+)\s*\])?\s*=\s*"
    r"(?:\[(?P<list>[^\]]*)\]|(?P<value>[^,\[\]]*))\s*(?:,|$)"
)
_WORDS = {"true": True, "True": True, "false": False, "False": False}


class HParams:
    """Hyperparameters as attributes; their types stay those of the first values.

    >>> hparams = HParams(rate=0.1, sizes=[64, 32], name="small")
    >>> hparams.parse("rate=0.5,sizes[1]=16").values()
    {'rate': 0.5, 'sizes': [64, 16], 'name': 'small'}

    Args:
      hparam_def: None; the protocol buffer that could be here is gone with `tf.contrib`.
      model_structure: anything, see `get_model_structure`.
      **kwargs: names and values: numbers, texts, truth values, or lists of one of these.

    Raises:
      ValueError: for an `hparam_def`, a name that is taken, or an empty list.
    """

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **kwargs: Any) -> None:
        if hparam_def is not None:
            raise ValueError(f"hparam_def must be None, got {hparam_def!r}")
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
        kinds = {name: kind for name, (kind, _) in self._hparam_types.items()}
        for name, value in parse_values(values, kinds).items():
            self.set_hparam(name, self._with_items(name, value))
        return self

    def _with_items(self, name: str, value: Any) -> Any:
        """A value, or where it is of items by their places, the list with these."""
        if not isinstance(value, dict):
            return value
        items = getattr(self, name)
        if not isinstance(items, list | tuple) or max(value) >= len(items):
            raise ValueError(f"{name} must have an item {max(value)}, got {items!r}")
        return [value.get(index, item) for index, item in enumerate(items)]

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> "HParams":
        """Changes hyperparameters to those of a mapping.

        Raises:
          KeyError: for an unknown name.
          ValueError: for a value of another type.
        """
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def set_from_map(self, values_map: Mapping[str, Any]) -> "HParams":
        """`override_from_dict` as it was called first."""
        return self.override_from_dict(values_map)

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
            if isinstance(default, list | tuple) != is_list:
                wanted = "a list" if is_list else "no list"
                raise ValueError(f"default of {key} must be {wanted}, got {default!r}")
            for each in default if is_list else [default]:
                _cast(key, kind, each)
        return getattr(self, key)

    def to_json(self, indent: Any = None, separators: Any = None, sort_keys: bool = False) -> str:
        """All hyperparameters as a JSON object; functions among them are left out."""
        plain = _without_functions(self.values())
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


def parse_values(
    values: str, type_map: Mapping[str, type], ignore_unknown: bool = False
) -> dict[str, Any]:
    """The values of a text such as `rate=0.1,sizes=[64,32]`, by name.

    Args:
      values: the text.
      type_map: the type of each name, of a list that of its items.
      ignore_unknown: whether other names are left out.

    Returns:
      Name -> value, list of values, or for `sizes[1]=16` a dict from places to values.

    Raises:
      ValueError: if the text cannot be read, a name is unknown, or has two values.
    """
    found: dict[str, Any] = {}
    for name, index, value in _assignments(values):
        if name not in type_map:
            if ignore_unknown:
                continue
            raise ValueError(
                f"hparams must be of {', '.join(type_map)}, got {name!r} in {values!r}"
            )
        kind = type_map[name]
        taken = found.get(name) if index is not None else None
        if name in found and (not isinstance(taken, dict) or index in taken):
            raise ValueError(f"{name} must have one value, got more in {values!r}")
        if index is not None:
            found.setdefault(name, {})[index] = _read(name, kind, value)
        elif isinstance(value, list):
            found[name] = [_read(name, kind, each) for each in value]
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
            yield (
                match["name"],
                index,
                [each for each in re.split(r"[\s,]+", match["list"]) if each],
            )
        else:
            yield match["name"], index, match["value"].strip()


def _read(name: str, kind: type, text: str) -> Any:
    """A value of a type from a text."""
    try:
        if kind is bool:
            return _WORDS[text] if text in _WORDS else bool(int(text))
        return text if kind in (str, type(None)) else kind(text)
    except ValueError:
        raise ValueError(f"{name} must be of type {kind.__name__}, got {text!r}") from None


def _cast(name: str, kind: type, value: Any) -> Any:
    """A value as one of a type that means the same."""
    if value is None or kind is type(None):
        return value
    wrong = (
        issubclass(kind, bool) != isinstance(value, bool)
        or (issubclass(kind, str) and not isinstance(value, str))
        or (issubclass(kind, int) and not isinstance(value, numbers.Integral))
    )
    if not wrong:
        try:
            return value if isinstance(value, kind) else kind(value)
        except (TypeError, ValueError):
            pass
    raise ValueError(f"{name} must be of type {kind.__name__}, got {value!r}")


def _without_functions(value: Any) -> Any:
    """The same without functions, in dicts and lists inside of it as well."""
    if isinstance(value, dict):
        return {key: _without_functions(each) for key, each in value.items() if not callable(each)}
    if isinstance(value, list | tuple):
        return [_without_functions(each) for each in value if not callable(each)]
    return value
