"""`Dataset`, and the table of datasets by name."""

import dataclasses
import importlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from model_deploy import file_systems
from model_deploy.checks import check_at_least

if TYPE_CHECKING:
    from model_deploy.inputs.reading import sources

Builder = Callable[..., "Dataset"]

# Datasets of this package -> the module whose function, named as what is before the slash, builds
# them.
_MODULES = {
    "cifar10": "cifar10",
    "digits": "digits",
    "fashion_mnist": "mnist",
    "flowers": "photographs",
    "folder": "folder",
    "hf": "hugging_face",
    "imagenet": "photographs",
    "mnist": "mnist",
    "synthetic": "synthetic",
    "tfds/NAME": "prepared",
    "tfrecord": "slim_records",
}
# The end of a name that is registered for a family of datasets.
_MEMBER = "/NAME"


def _built_in(name: str) -> Builder:
    """A dataset of this package: its module, and so TensorFlow, is imported when it is built."""

    def build(**arguments: Any) -> "Dataset":
        module = importlib.import_module(f"{__package__}.{_MODULES[name]}")
        dataset: Dataset = getattr(module, name.removesuffix(_MEMBER))(**arguments)
        return dataset

    return build


_BUILDERS: dict[str, Builder] = {name: _built_in(name) for name in _MODULES}


@dataclasses.dataclass(frozen=True)
class Dataset:
    """One split of a dataset: its properties, and the source of its examples.

    Attributes:
      name: the name under which it is registered.
      split: the name of this split, one of `splits`.
      num_examples: the number of examples in this split, at least 1.
      num_classes: labels are 0 to num_classes - 1.
      class_names: one name per class, in the order of the labels.
      image_shape: (height, width, channels); None for a size that varies.
      splits: the names of all splits.
      source: where the images and labels come from.

    Raises:
      ValueError: for a split that is not one of `splits`, without examples, or with more or
        fewer names than classes.
    """

    name: str
    split: str
    num_examples: int
    num_classes: int
    class_names: tuple[str, ...]
    image_shape: tuple[int | None, int | None, int | None]
    splits: tuple[str, ...]
    source: "sources.Source" = dataclasses.field(repr=False, compare=False)

    def __post_init__(self) -> None:
        check_split(self.name, self.split, self.splits)
        check_at_least(f"num_examples of dataset {self.name!r}", self.num_examples, 1)
        if len(self.class_names) != self.num_classes:
            raise ValueError(
                f"class_names of dataset {self.name!r} must name {self.num_classes} classes, "
                f"got {len(self.class_names)}"
            )


def register_dataset(name: str) -> Callable[[Builder], Builder]:
    """Registers the decorated function as the one that `get_dataset(name, ...)` calls.

    The function takes `split`, `data_dir` and any further keyword arguments of `get_dataset`, and
    returns a `Dataset`.

    A name such as "tfds/NAME" is of a family of datasets: the function is called for all names that
    begin as it does, and takes the whole name as the keyword argument `name`.

    Raises:
      ValueError: if the name is taken.

    >>> import numpy as np
    >>> from model_deploy.inputs.reading import sources
    >>> @register_dataset("black_and_white")
    ... def black_and_white(split, data_dir=None):
    ...     images = np.stack([np.zeros([8, 8, 1]), np.full([8, 8, 1], 255)]).astype(np.uint8)
    ...     source = sources.ArraySource(lambda: (images, np.array([0, 1])))
    ...     return Dataset(
    ...         "black_and_white", split, 2, 2, ("black", "white"), (8, 8, 1), ("train",), source
    ...     )
    >>> get_dataset("black_and_white", "train").num_examples
    2
    """
    if name in _BUILDERS:
        raise ValueError(f"dataset name must be new, got {name!r}, which is registered")

    def register(builder: Builder) -> Builder:
        _BUILDERS[name] = builder
        return builder

    return register


def dataset_names() -> tuple[str, ...]:
    """Returns the registered names, sorted."""
    return tuple(sorted(_BUILDERS))


def get_dataset(
    name: str, split: str, data_dir: str | os.PathLike[str] | None = None, **options: Any
) -> Dataset:
    """Returns a split of a registered dataset.

    Args:
      name: a registered name, see `dataset_names`.
      split: name of the split, such as "train" or "test"; each dataset has its own.
      data_dir: the folder with the dataset's files; datasets without files ignore it.
      **options: options of the dataset, such as `image_size` of "synthetic".

    Raises:
      ValueError: for an unknown name or split, and for missing or broken files.
    """
    check_dataset_name("dataset name", name)
    if name not in _BUILDERS:
        name, options = _family_of(name), {**options, "name": name}
    return _BUILDERS[name](split=split, data_dir=data_dir, **options)


def check_dataset_name(field: str, name: str) -> None:
    """Checks that a name is registered, or that of a member of a registered family.

    Raises:
      ValueError: naming the field, the registered names and `name`.
    """
    is_member = _family_of(name) in _BUILDERS and not name.endswith("/")
    if is_family(name) or not (name in _BUILDERS or is_member):
        raise ValueError(f"{field} must be one of {', '.join(dataset_names())}, got {name!r}")


def is_family(name: str) -> bool:
    """Whether a registered name stands for all that begin as it does, such as "tfds/NAME"."""
    return name.endswith(_MEMBER)


def _family_of(name: str) -> str:
    """Returns the name under which the family of a dataset would be registered."""
    start, slash, _ = name.partition("/")
    return f"{start}{_MEMBER}" if slash else name


def required_folder(name: str, data_dir: str | os.PathLike[str] | None) -> str:
    """Returns `data_dir` as a path, after checking it.

    Raises:
      ValueError: if it is None or not a folder.
    """
    if data_dir is None:
        raise ValueError(f"data_dir must name the folder of dataset {name!r}, got None")
    folder = os.path.expanduser(os.fspath(data_dir))
    if not file_systems.is_folder(folder):
        raise ValueError(f"data_dir of dataset {name!r} must be a folder, got {folder!r}")
    return folder


def check_split(name: str, split: str, splits: tuple[str, ...]) -> None:
    """Checks the name of a dataset's split, before any file is read.

    Raises:
      ValueError: if `split` is not one of `splits`.
    """
    if split not in splits:
        raise ValueError(
            f"split of dataset {name!r} must be one of {', '.join(splits)}, got {split!r}"
        )
