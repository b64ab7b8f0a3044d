"""`Batching`: turns numbers of examples into batches of preprocessed images."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from model_deploy.checks import check_at_least
from model_deploy.commands import named_as
from model_deploy.inputs import preprocessing as preprocessing_lib
from model_deploy.inputs.augmentation import Augmentation
from model_deploy.inputs.datasets import dataset as dataset_lib
from model_deploy.inputs.files import raw_images, records
from model_deploy.inputs.order.randomness import uniform_per_image
from model_deploy.inputs.pipelines import holding
from model_deploy.inputs.pipelines.own_examples import ExampleBatching, OwnExamples
from model_deploy.inputs.reading import chunks, decoding, sources
from model_deploy.inputs.reading.reader import Reader

Example = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Batching:
    """The settings with which a dataset's examples become batches.

    Attributes:
      dataset: the dataset.
      preprocessing: the preprocessing family, or the name of a family or network.
      batch_size: examples per batch.
      training: whether to preprocess for training.
      image_size: side of square images, or (height, width); None for the dataset's own.
      options: keyword arguments of the family, such as `use_grayscale`.
      seed: first half of each image's seed, for training.
      num_readers: number of parallel reads; None lets `tf.data` tune it.
      num_preprocessing_threads: number of images, or batches of a batched family, preprocessed in
        parallel; None lets `tf.data` decide.
      include_index: whether batches have "index", the numbers of their examples.
      in_windows: whether numbers come in windows of several steps, whose neighbours are to be read
        together.
      fast_decode: whether to reduce a much too large JPEG while it is decoded.
      augmentation: augmentation on top of the family's.  If it mixes examples, batches have
        "seed", int64 [n, 2].

    Raises:
      ValueError: for a number below 1, a missing `image_size` for images that vary in size, and
        RandAugment with a family that does not support it.
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
    in_windows: bool = False
    fast_decode: bool = False
    augmentation: Augmentation = dataclasses.field(default_factory=Augmentation)
    cached_bytes = 0
    decodes_windows = False

    def __post_init__(self) -> None:
        numbers = {"batch_size": self.batch_size, "num_readers": self.num_readers}
        numbers |= {"num_preprocessing_threads": self.num_preprocessing_threads}
        numbers |= {"image_size": self.image_size if isinstance(self.image_size, int) else None}
        for name, number in numbers.items():
            check_at_least(name, number, 1)
        if self.fast_decode and self.family.crop_encoded is None:
            raise ValueError(
                "fast_decode must come with a preprocessing that cuts a part out while it decodes, "
                f"such as inception, got True with {self.family.name!r}"
            )
        if self.augmentation.randaugment_layers and not self.family.takes_extra_augment:
            raise ValueError(
                "randaugment_layers must be 0 for a preprocessing without takes_extra_augment, "
                f"got {self.augmentation.randaugment_layers} with {self.family.name!r}"
            )
        if self.augmentation.crop_padding is not None and not self.family.takes_padding:
            raise ValueError(
                "crop_padding must be None for a preprocessing without takes_padding, "
                f"got {self.augmentation.crop_padding} with {self.family.name!r}"
            )
        if self.image_size is None and None in self.dataset.image_shape[:2]:
            raise ValueError(
                f"image_size must be given for dataset {self.dataset.name!r}, whose images vary "
                "in size, got None"
            )

    @property
    def family(self) -> preprocessing_lib.Preprocessing:
        """The preprocessing family."""
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
        """Returns a function from a `tf.data.Dataset` of example numbers to one of batches.

        Its input has dicts of "index", the numbers of the examples of one or several batches, and
        "position", their places in the training sequence; both int64 [n * batch_size], or less
        in the last batch of an evaluation.  Its result has dicts of "image" float32 [n, h, w, c]
        and "label" int64 [n].

        Images in memory enter the graph here, once for all calls of the function.
        """
        source = self.dataset.source
        if isinstance(source, sources.ArraySource):
            return self._pipeline_of_arrays()
        if isinstance(source, sources.GraphSource):
            return self._pipeline_of_graph(source)
        return self._pipeline_of_encoded(source)

    def _pipeline_of_arrays(self) -> Callable[[Any], Any]:
        images, labels = chunks.in_graph(self.tables)

        def make(number: Example) -> Example:
            index = number["index"]
            image, label = tf.gather(images, index), tf.gather(labels, index)
            return self._finish(number | {"image": image, "label": label})

        make = self._plain(make)

        def batches(numbers: Any) -> Any:
            if self.family.batched:
                if self.training:
                    numbers = numbers.rebatch(self.batch_size, drop_remainder=True)
                return numbers.map(make, self._parallel_calls)
            numbers = self._with_draws(numbers)
            return self._batched(numbers.unbatch().map(make, self._parallel_calls))

        return batches

    def _pipeline_of_encoded(self, source: sources.EncodedSource) -> Callable[[Any], Any]:
        read = self._by_python(source)

        def batches(numbers: Any) -> Any:
            numbers = self._with_draws(numbers).unbatch()
            examples = read(numbers, self.num_readers or tf.data.AUTOTUNE)
            return self._finished(
                self._batched(examples.map(self._prepare_one, self._parallel_calls))
            )

        return batches

    def _pipeline_of_graph(self, source: sources.GraphSource) -> Callable[[Any], Any]:
        tables = chunks.in_graph(self.tables)
        by_python = self._by_python(source)
        prepare_one = self._prepare_one

        def read(number: Example, stored: Any = None) -> Example:
            return prepare_one(self._by_ops(source, tables, number, stored))

        def read_again(numbers: Any) -> Any:
            return by_python(numbers, None).map(prepare_one)

        readers, size = self._chunks_of(source)
        of_records: dict[str, Any] = {}
        if isinstance(source, records.RecordFiles):
            at_once = chunks.records_at_once(
                self.tables[-1], size, readers, is_local=source.is_local
            )
            of_records = {"record_tables": tables, "at_once": at_once}
        reading_chunks = chunks.Chunks(
            self._plain(read),
            read_again,
            size,
            readers,
            in_windows=self.reads_windows,
            autograph=self._is_of_user,
            **of_records,
        )

        def batches(numbers: Any) -> Any:
            examples = reading_chunks.examples(self._with_draws(numbers))
            return self._finished(examples.rebatch(self.batch_size, drop_remainder=self.training))

        return batches

    @property
    def _prepare_one(self) -> Callable[[Example], Example]:
        """What is done with an example before it is part of a batch."""
        return self._plain(self._cropped if self._finishes_batches else self._finish)

    def _finished(self, batches: Any) -> Any:
        """Preprocesses a `tf.data.Dataset` of batches, if that was not done with examples."""
        if not self._finishes_batches:
            return batches
        return batches.map(self._plain(self._finish), self._parallel_calls)

    @property
    def _finishes_batches(self) -> bool:
        """Whether images are preprocessed as whole batches, for which they must have one size."""
        return self.family.batched and (self._crops_one or None not in self.dataset.image_shape)

    @property
    def _crops_one(self) -> bool:
        """Whether images vary in size until a batched family's `crop` has each of them."""
        height, width, channels = self.dataset.image_shape
        varies = None in (height, width) and channels is not None
        return varies and self.family.batched and self.family.crop is not None

    def _chunks_of(self, source: sources.GraphSource) -> tuple[int, int]:
        """Returns how many chunks are read in parallel, and the number of examples in each."""
        pixels = self.size[0] * self.size[1] * (self.dataset.image_shape[-1] or 3)
        readers = self.num_readers or chunks.default_readers(source.is_local)
        return readers, chunks.chunk_size(pixels * tf.float32.size, self.batch_size, readers)

    @functools.cached_property
    def tables(self) -> Sequence[np.ndarray]:
        """The arrays to put into the graph, of any shapes."""
        source = self.dataset.source
        if isinstance(source, sources.ArraySource):
            return source.arrays
        return source.tables() if isinstance(source, sources.GraphSource) else []

    @property
    def reads_windows(self) -> bool:
        """Whether neighbours in a window are read together, as TFRecords can be."""
        return self.in_windows and isinstance(self.dataset.source, records.RecordFiles)

    @property
    def work(self) -> holding.Work:
        """The largest number of examples that are in preparation at the same time."""
        source = self.dataset.source
        calls = self.num_preprocessing_threads or chunks.usable_cores()
        in_batches = calls * self.batch_size
        if isinstance(source, sources.GraphSource):
            readers, size = self._chunks_of(source)
            examples = holding.in_chunks(readers, size)
            return holding.Work(examples + (in_batches if self._finishes_batches else 0), readers)
        if isinstance(source, sources.ArraySource):
            return holding.Work(in_batches if self.family.batched else calls, 0)
        readers = self.num_readers or chunks.usable_cores()
        examples = readers + calls + (in_batches if self._finishes_batches else 0)
        return holding.Work(examples, readers)

    def _by_ops(
        self, source: sources.GraphSource, tables: Any, number: Example, stored: Any
    ) -> Example:
        """Decodes an example by TensorFlow's ops alone; reads it first, if not done yet."""
        channels = self.dataset.image_shape[-1] or 0
        index = number["index"]
        if stored is None:
            stored = number["stored"] if "stored" in number else source.read_in_graph(tables, index)
        contents, label = source.parse_in_graph(tables, stored, index)
        if self._crop:
            image = self._crop(contents, self._seeds(number["position"]), channels)
            image = tf.ensure_shape(image, [None, None, channels or None])
        else:
            image = decoding.whole_image(channels, raw_images.shape_of(source))(contents)
            image = tf.ensure_shape(image, self.dataset.image_shape)
        return {"image": image, "label": label, "index": index, **_of_place(number)}

    def _by_python(self, source: sources.EncodedSource) -> Callable[[Any, int | None], Any]:
        """Returns a function (numbers, parallel calls) to decoded examples, by Python."""
        channels = self.dataset.image_shape[-1] or 0
        shape = (None, None, channels or None) if self._crop else self.dataset.image_shape
        reader = Reader(
            source=source,
            num_examples=self.dataset.num_examples,
            shape=(None, None, None) if self._crop else self.dataset.image_shape,
            decode=decoding.Decoder(channels, self._crop, raw_images.shape_of(source)),
            replace=self.training,
        )

        plain = tf.autograph.experimental.do_not_convert

        def read(number: Example) -> tuple[Example, Any]:
            seed = self._seeds(number["position"])
            image, label, index, found = reader.in_graph(number["index"], seed)
            image.set_shape(shape)
            example = {"image": image, "label": label, "index": index}
            return example | _of_place(number), found

        def examples(numbers: Any, calls: int | None) -> Any:
            found = numbers.map(plain(read), calls)
            if not self.training:
                found = found.filter(plain(lambda _, is_found: is_found))
            return found.map(plain(lambda example, _: example))

        return examples

    def _plain(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Excludes a function from AutoGraph, unless it calls functions that users registered."""
        return function if self._is_of_user else tf.autograph.experimental.do_not_convert(function)

    @property
    def _is_of_user(self) -> bool:
        """Whether a user registered the preprocessing family."""
        family = self.family.train if self.training else self.family.evaluate
        return not str(getattr(family, "__module__", "")).startswith("model_deploy.")

    def _batched(self, examples: Any) -> Any:
        return examples.batch(self.batch_size, drop_remainder=self.training)

    @property
    def _parallel_calls(self) -> int:
        """How many calls of the preprocessing run in parallel, for `tf.data`."""
        return self.num_preprocessing_threads or tf.data.AUTOTUNE

    @property
    def _crop(self) -> Callable[..., Any] | None:
        """A function that crops an image while decoding it; None if that is not possible."""
        source = self.dataset.source
        if isinstance(source, sources.ArraySource) or raw_images.shape_of(source):
            return None  # there is nothing to decode
        wanted = self.training and self.options.get("crop_image", True)
        crop = self.family.crop_encoded if wanted else None
        if crop is not None and self.fast_decode:
            return functools.partial(crop, smallest=self.size)
        return crop

    @property
    def _num_draws(self) -> int:
        """How many random numbers each example brings for the family."""
        alone = self._crops_one or not self.family.batched
        return self.family.num_draws if self.training and alone else 0

    def _with_draws(self, numbers: Any) -> Any:
        """Adds "draws", float32 [n, number of draws], to a `tf.data.Dataset` of numbers."""
        count = self._num_draws

        def draw(number: Example) -> Example:
            return number | {"draws": uniform_per_image(self._seeds(number["position"]), count)}

        return numbers.map(tf.autograph.experimental.do_not_convert(draw)) if count else numbers

    def _seeds(self, position: Any) -> Any:
        """Returns the seeds of positions: int64 [2], or [n, 2] for n positions."""
        return tf.stack([tf.zeros_like(position) + self.seed, position], axis=-1)

    def _cropped(self, example: Example) -> Example:
        """Gives an example's image its final size, if images vary in size."""
        crop = self.family.crop
        if crop is None or not self._crops_one:
            return example
        with named_as(padding="crop_padding"):
            image = crop(example["image"], *self.size, **self._options_of_crop(example))
        shape = [*self.size, self.dataset.image_shape[-1]]
        if not image.shape.is_compatible_with(shape):
            raise ValueError(
                f"crop of preprocessing {self.family.name!r} must return {shape}, got {image.shape}"
            )
        used = {"image": tf.ensure_shape(image, shape)}
        return used | {key: each for key, each in example.items() if key not in ("image", "draws")}

    def _options_of_crop(self, example: Example) -> Example:
        """The keyword arguments of a random crop: random numbers that wait for it, and padding."""
        options = {"draws": example["draws"]} if "draws" in example else {}
        if self.training and self.augmentation.crop_padding is not None:
            options["padding"] = self.augmentation.crop_padding
        return options

    def _finish(self, example: Example) -> Example:
        """Preprocesses an example, or a batch of a batched family; keeps only wanted entries."""
        images, seeds = example["image"], self._seeds(example["position"])
        lonely = images.shape.rank == 3 and self.family.batched
        if lonely:
            images, seeds = images[tf.newaxis], seeds[tf.newaxis]
        options = dict(self.options)
        if not self.training:
            images = self.family.evaluate(images, *self.size, **options)
        else:
            if self._crop or self._crops_one:
                options["crop_image"] = False
            extra = self.augmentation.before_normalization(seeds)
            if extra is not None:
                options["extra_augment"] = extra
            options |= self._options_of_crop(example)
            with named_as(padding="crop_padding"):
                images = self.family.train(images, *self.size, seeds, **options)
            images = self.augmentation.after_normalization(images, seeds)
        result = {"image": images[0] if lonely else images, "label": example["label"]}
        if self.augmentation.mixes:
            result["seed"] = self._seeds(example["position"])
        return result | ({"index": example["index"]} if self.include_index else {})


def _of_place(number: Example) -> Example:
    """What an example takes from its place in the training sequence, however it is read."""
    return {key: number[key] for key in ("position", "draws") if key in number}


def batching_of(
    dataset: dataset_lib.Dataset | OwnExamples,
    batch_size: int,
    *,
    training: bool,
    preprocessing: preprocessing_lib.Preprocessing | str | None,
    of_images: Mapping[str, Any],
    **settings: Any,
) -> ExampleBatching:
    """Returns the batching for a dataset of images, or for a user's own examples.

    Args:
      dataset: images, or a user's examples.
      batch_size: examples per batch.
      training: whether the batches are for training.
      preprocessing: the preprocessing of images.
      of_images: fields that only `Batching` has.
      **settings: fields that all batchings share.

    Raises:
      ValueError: for images without `preprocessing`; as the batchings.
    """
    if isinstance(dataset, OwnExamples):
        return dataset.batching(batch_size, training, **settings)
    if preprocessing is None:
        raise ValueError("preprocessing must be given for a dataset of images, got None")
    return Batching(dataset, preprocessing, batch_size, training, **of_images, **settings)
