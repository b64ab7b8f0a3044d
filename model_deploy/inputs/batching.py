"""From the numbers of examples to batches of preprocessed images."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from model_deploy.checks import check_at_least
from model_deploy.inputs import dataset as dataset_lib
from model_deploy.inputs import decoding, reading, sources
from model_deploy.inputs import preprocessing as preprocessing_lib

Example = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Batching:
    """How examples of a dataset become batches.

    Attributes:
      dataset: where they come from.
      preprocessing: the family, or the name of a family or network.
      batch_size: examples per batch.
      training: whether the family's training behaviour is wanted.
      image_size: side of square images, or (height, width); None for the dataset's own.
      options: keyword arguments of the family, for example `use_grayscale`.
      seed: first half of each image's seed, for training.
      num_readers: images that are read at the same time; None lets `tf.data` tune it.
      num_preprocessing_threads: images, or batches of a batched family, that are
        preprocessed at the same time; None lets `tf.data` tune it.
      include_index: whether batches also carry "index", the numbers of their examples.

    Raises:
      ValueError: for a number below 1, and without an `image_size` for images that vary in size.
    """

    dataset: dataset_lib.Dataset
    preprocessing: preprocessing_lib.Preprocessing | str
    batch_size: int
    training: bool
    image_size: int | tuple[int, int] | None = None
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    seed: int = 0
    num_readers: int | None = None
    num_preprocessing_threads: int | None = None
    include_index: bool = False

    def __post_init__(self) -> None:
        numbers = {"batch_size": self.batch_size, "num_readers": self.num_readers}
        numbers |= {"num_preprocessing_threads": self.num_preprocessing_threads}
        numbers |= {"image_size": self.image_size if isinstance(self.image_size, int) else None}
        for name, number in numbers.items():
            check_at_least(name, number, 1)
        if self.image_size is None and None in self.dataset.image_shape[:2]:
            raise ValueError(
                f"image_size must be given for dataset {self.dataset.name!r}, whose images vary "
                "in size, got None"
            )

    @property
    def family(self) -> preprocessing_lib.Preprocessing:
        """The preprocessing family itself."""
        if isinstance(self.preprocessing, str):
            return preprocessing_lib.get_preprocessing(self.preprocessing)
        return self.preprocessing

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the images in the batches."""
        if self.image_size is None:
            height, width, _ = self.dataset.image_shape
            return height or 0, width or 0  # never None: checked at construction
        if isinstance(self.image_size, int):
            return self.image_size, self.image_size
        return self.image_size

    def pipeline(self) -> Callable[[Any], Any]:
        """A function from example numbers to batches, both as a `tf.data.Dataset`.

        What it is given has dicts of "index", the numbers of the examples of one batch,
        and "position", their places in the training sequence; both int64 [batch_size],
        or less in the last batch of an evaluation.  What it returns has dicts of
        "image" float32 [n, h, w, c] and "label" int64 [n].

        Images in memory enter the graph here, once for all calls of the function.
        """
        if isinstance(self.dataset.source, sources.ArraySource):
            return self._pipeline_of_arrays(self.dataset.source)
        return self._pipeline_of_encoded(self.dataset.source)

    def _pipeline_of_arrays(self, source: sources.ArraySource) -> Callable[[Any], Any]:
        images, labels = _in_graph(source)

        def make(number: Example) -> Example:
            index = number["index"]
            seeds = self._seeds(number["position"])
            return self._finish(tf.gather(images, index), tf.gather(labels, index), index, seeds)

        def batches(numbers: Any) -> Any:
            if self.family.batched:
                return numbers.map(make, self._calls)
            return self._batched(numbers.unbatch().map(make, self._calls))

        return batches

    def _pipeline_of_encoded(self, source: sources.EncodedSource) -> Callable[[Any], Any]:
        channels = self.dataset.image_shape[-1] or 0
        crop = self._crop
        reader = reading.Reader(
            source=source,
            num_examples=self.dataset.num_examples,
            shape=(None, None, None) if crop else self.dataset.image_shape,
            decode=decoding.Decoder(channels, crop),
            replace=self.training,
        )

        def read(number: Example) -> tuple[Any, ...]:
            seed = self._seeds(number["position"])
            image, label, index, found = reader.in_graph(number["index"], seed)
            image.set_shape([None, None, channels or None])
            return image, label, index, found, seed

        def finish(image: Any, label: Any, index: Any, _: Any, seed: Any) -> Example:
            return self._finish(image, label, index, seed)

        def batches(numbers: Any) -> Any:
            examples = numbers.unbatch().map(read, self.num_readers or tf.data.AUTOTUNE)
            if not self.training:
                examples = examples.filter(lambda *example: example[3])
            return self._batched(examples.map(finish, self._calls))

        return batches

    def _batched(self, examples: Any) -> Any:
        return examples.batch(self.batch_size, drop_remainder=self.training)

    @property
    def _calls(self) -> int:
        return self.num_preprocessing_threads or tf.data.AUTOTUNE

    @property
    def _crop(self) -> Callable[..., Any] | None:
        """What crops while decoding, if that is possible."""
        wanted = self.training and self.options.get("crop_image", True)
        return self.family.crop_encoded if wanted else None

    def _seeds(self, position: Any) -> Any:
        """int64 [2], or [n, 2] for n positions."""
        return tf.stack([tf.zeros_like(position) + self.seed, position], axis=-1)

    def _finish(self, images: Any, labels: Any, index: Any, seeds: Any) -> Example:
        lonely = images.shape.rank == 3 and self.family.batched
        if lonely:
            images, seeds = images[tf.newaxis], seeds[tf.newaxis]
        options = dict(self.options)
        if not self.training:
            images = self.family.evaluate(images, *self.size, **options)
        else:
            if self._crop and isinstance(self.dataset.source, sources.EncodedSource):
                options["crop_image"] = False
            images = self.family.train(images, *self.size, seeds, **options)
        result = {"image": images[0] if lonely else images, "label": labels}
        return result | ({"index": index} if self.include_index else {})


def _in_graph(source: sources.ArraySource) -> tuple[Any, Any]:
    """Tensors of all images, uint8 [n, h, w, c], and labels, int64 [n].

    The arrays enter the graph through a function that runs when the iterator is
    initialized, not as constants: a graph with CIFAR-10 in it would be 150 MB, in
    every checkpoint's copy of it too.
    """
    tensors = []
    for array in source.arrays:
        tensor = tf.numpy_function(lambda array=array: array, [], array.dtype)
        tensor.set_shape(array.shape)
        tensors.append(tensor)
    return tensors[0], tensors[1]
