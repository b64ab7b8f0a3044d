"""`TrainBatches`: training batches for the clones of one replica, with a restorable position."""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from model_deploy.checks import check_at_least
from model_deploy.inputs import preprocessing as preprocessing_lib
from model_deploy.inputs.augmentation import Augmentation, Mixing
from model_deploy.inputs.datasets import dataset as dataset_lib
from model_deploy.inputs.order.epochs import Order
from model_deploy.inputs.order.shards import Shard, example_numbers
from model_deploy.inputs.pipelines import batching, holding, staging, waiting
from model_deploy.inputs.pipelines.own_examples import ExampleBatching, OwnExamples
from model_deploy.inputs.reading import chunks, composites
from model_deploy.updating import note_replica_counts


class TrainBatches(Iterator[dict[str, Any]]):
    """The batches of one replica: each call of `next` returns the batch of the next clone.

    Attributes:
      initializer: the op that (re)starts the pipeline at the position; also in
        `tf.GraphKeys.TABLE_INITIALIZERS`.
      num_batches_per_epoch: number of steps per epoch.
      num_examples_per_epoch: examples per epoch, over all replicas.
      position: int64 [], the number of steps made, read by `initializer`.
      wait_secs: float64 [], the seconds that this step waited for its batches; fetch it together
        with the train op.

    Raises:
      ValueError: if the number of `clone_devices` is not `num_clones`.
    """

    def __init__(
        self,
        options: ExampleBatching,
        shard: Shard,
        order: Order,
        *,
        position: Any,
        num_epochs: int | None,
        clone_devices: Sequence[str] | None,
        inputs_device: str = "",
    ) -> None:
        if clone_devices is not None and len(clone_devices) != shard.num_clones:
            raise ValueError(
                f"clone_devices must be {shard.num_clones}, one per clone, got {len(clone_devices)}"
            )
        own_position = None
        if position is None:
            own_position = _own_position(shard.num_shards)
            position = own_position.read_value()[shard.shard_index]
        if hasattr(position, "read_value"):
            position = position.read_value()
        self.position = tf.cast(tf.convert_to_tensor(position), tf.int64, name="start")
        self.num_batches_per_epoch = order.steps_per_epoch
        self.num_examples_per_epoch = order.examples_per_epoch
        self._shard = shard
        self._given = 0
        on_gpus = any(map(staging.is_apart, clone_devices or ()))
        sharing = 1 if on_gpus else shard.num_clones
        pipeline = _pipeline(options, shard, sharing)

        def iterator(first_clone: int, num_clones: int, device: str | None) -> Any:
            numbers = example_numbers(
                order,
                shard,
                first_clone,
                num_clones,
                start=self.position,
                num_epochs=num_epochs,
                num_following=pipeline.num_following,
            )
            batches = pipeline.make(numbers)
            self._specs = batches.element_spec
            batches = composites.in_parts(batches)
            if device is not None and staging.is_apart(device):
                return staging.staged_iterator(batches, device, inputs_device)
            batches = batches.prefetch(num_clones + 1)
            return tf.compat.v1.data.make_initializable_iterator(batches)

        if on_gpus:
            # One pipeline per device, to which batches are copied during the previous step.
            iterators = [iterator(clone, 1, each) for clone, each in enumerate(clone_devices or ())]
            takers = iterators
        else:
            # One pipeline for all clones holds less than one per clone.
            iterators = [iterator(0, shard.num_clones, None)]
            takers = iterators * shard.num_clones
        self._how_much = functools.partial(
            _held, pipeline, order, shard, sharing, iterators[0].element_spec
        )
        holding.note(self)
        self.initializer = tf.group(*[each.initializer for each in iterators], name="initializer")
        tf.compat.v1.add_to_collection(tf.compat.v1.GraphKeys.TABLE_INITIALIZERS, self.initializer)
        self._elements, self.wait_secs = waiting.timed(takers)
        self._advance = self.wait_secs
        if own_position is not None:
            one = tf.IndexedSlices(tf.ones([1], tf.int64), tf.constant([shard.shard_index]))
            with tf.control_dependencies([self.wait_secs]):  # counts only steps that got data
                self._advance = own_position.scatter_add(one)

    @functools.cached_property
    def held(self) -> holding.Held:
        """The largest memory that the pipelines hold."""
        return self._how_much()

    def __next__(self) -> dict[str, Any]:
        """Returns a clone's "image" float32 [batch_size, h, w, c] and "label" int64 [batch_size].

        With mixup or cutmix, "label" is float32 [batch_size, classes].

        Fetching any clone's batch advances the batches of all clones by one step, so that they stay
        disjoint.

        Raises:
          ValueError: if every clone has its batch already.
        """
        if self._given == self._shard.num_clones:
            raise ValueError(
                f"num_clones must be the number of calls of next(), "
                f"got {self._shard.num_clones} and one more call"
            )
        element = self._elements[self._given]
        self._given += 1
        with tf.control_dependencies([self._advance]):
            return composites.whole(element, self._specs)


def train_batches(
    dataset: dataset_lib.Dataset | OwnExamples,
    *,
    preprocessing: preprocessing_lib.Preprocessing | str | None = None,
    batch_size: int = 32,
    num_clones: int = 1,
    num_shards: int = 1,
    shard_index: int = 0,
    seed: int = 0,
    shuffle: bool = True,
    image_size: int | tuple[int, int] | None = None,
    position: Any = None,
    num_epochs: int | None = None,
    shuffle_block: int | None = None,
    fast_decode: bool = False,
    num_readers: int | None = None,
    num_preprocessing_threads: int | None = None,
    clone_devices: Sequence[str] | None = None,
    inputs_device: str = "",
    variables_device: Any = "",
    include_index: bool = False,
    preprocessing_options: Mapping[str, Any] | None = None,
    augmentation: Augmentation | None = None,
    name: str = "train_batches",
    first_clone: int = 0,
    global_clones: int | None = None,
) -> TrainBatches:
    """Builds the input pipeline of one replica in the default graph.

    Over all clones and replicas an epoch has each example at most once, and all examples but a
    remainder that fills no global batch, which rotates (see `order.epochs`).  The examples of a
    step depend only on the arguments and the position; how a global batch is divided over clones
    and replicas changes neither examples nor augmentation.

    Args:
      dataset: a training split, or records or tables of your own.
      preprocessing: a family, or the name of a family or a network; none for those of your own.
      batch_size: examples per clone per step.
      num_clones: number of clones of this replica; `next` is called once for each.
      num_shards: number of replicas that share the dataset.
      shard_index: number of this replica.
      seed: chooses the order of the examples and their augmentation.
      shuffle: False keeps the order of the dataset.
      image_size: side of the images, or (height, width); by default the dataset's.
      position: the number of steps made: an integer, tensor or variable that is read when the
        iterator is initialized, such as the global step for synchronous training.  By default
        the pipeline counts its own steps, in an int64 [num_shards] variable that is saved (added
        to `GLOBAL_VARIABLES`).
      num_epochs: number of epochs; by default endless.
      shuffle_block: number of neighbours in a file to read together, for slow storage; see
        `order.epochs`.
      fast_decode: whether to reduce JPEGs by 2, 4 or 8 while decoding, if the crop is larger than
        the final image by as much; see docs/inputs.md.
      num_readers: number of parallel reads; by default the number of cores, or more for files on
        other machines.
      num_preprocessing_threads: number of parallel calls of the preprocessing; by default as
        `tf.data` decides.
      clone_devices: one device per clone; batches are prefetched to GPUs.
      inputs_device: device of the pipeline; by default that of the caller.
      variables_device: device, or device function, of the variable that counts steps, which
        outlives this process on a parameter server.
      include_index: adds "index", int64 [batch_size], the numbers of the examples.
      preprocessing_options: keyword arguments for the family.
      augmentation: RandAugment, random erasing, mixup and cutmix; by default none.
      name: the name scope.
      first_clone: number of this replica's first clone among the `global_clones`.
      global_clones: clones of all replicas, if replicas have different numbers of clones;
        `num_shards` must then be 1, and `position` the global step.

    Returns:
      An iterator over the batches of the clones: "image" float32 [batch_size, h, w, c] and "label"
      int64 [batch_size], or with mixup or cutmix class probabilities, float32 [batch_size,
      num_classes]; or the features of your own examples, each of shape [batch_size, ...], lists of
      ids as `tf.RaggedTensor`s [batch_size, None].
      Its `initializer` is added to `TABLE_INITIALIZERS`, so `slim.learning.train`, `Supervisor` and
      monitored sessions run it after restoring a checkpoint; in a plain session run
      `tf.compat.v1.tables_initializer()` after initializing the variables.

    Raises:
      ValueError: for numbers out of range, a global batch larger than the dataset, and examples
        that cannot be read; for augmentation of your own records, augmentation that the family
        does not support, and mixing in a global batch of one example.
    """
    augmentation = augmentation or Augmentation()
    shard = Shard(num_shards, shard_index, num_clones, batch_size, first_clone, global_clones)
    if global_clones is not None and position is None:
        # A step that is given up has taken its batch, so a count of batches would be one ahead.
        raise ValueError("position must be the global step with global_clones, got None")
    order = Order(dataset.num_examples, shard.global_batch_size, seed, shuffle, shuffle_block)
    check_at_least("num_epochs", num_epochs, 1)
    if augmentation.mixes and shard.global_batch_size == 1:
        raise ValueError("global batch must be at least 2 examples for mixup and cutmix, got 1")
    if isinstance(dataset, OwnExamples):
        dataset.check_order(order)
        if augmentation != Augmentation():
            raise ValueError(
                f"augmentation must be None for records of your own, got {augmentation}"
            )
    options = batching.batching_of(
        dataset,
        batch_size,
        training=True,
        preprocessing=preprocessing,
        of_images={
            "image_size": image_size,
            "options": preprocessing_options or {},
            "num_preprocessing_threads": num_preprocessing_threads,
            "fast_decode": fast_decode,
            "augmentation": augmentation,
        },
        seed=seed,
        num_readers=num_readers,
        include_index=include_index,
        in_windows=order.steps_per_window > 1,
    )
    with (
        tf.compat.v1.device(inputs_device),
        tf.compat.v1.device(variables_device),
        tf.compat.v1.variable_scope(None, default_name=name),
    ):
        return TrainBatches(
            options,
            shard,
            order,
            position=position,
            num_epochs=num_epochs,
            clone_devices=clone_devices,
            inputs_device=inputs_device,
        )


class _Pipeline(NamedTuple):
    """A pipeline that makes the batches of some clones.

    Attributes:
      make: function from a `tf.data.Dataset` of numbers to one of clones' batches.
      options: the batching of its examples.
      work: examples in preparation.
      num_following: number of further examples that it takes, after those of its clones in the
        global batch.
    """

    make: Callable[[Any], Any]
    options: ExampleBatching
    work: holding.Work
    num_following: int = 0


def _pipeline(options: ExampleBatching, shard: Shard, num_clones: int) -> _Pipeline:
    """Returns the pipeline of some clones, which mixes examples if asked for.

    Args:
      options: how examples become batches.
      shard: the part of this replica.
      num_clones: the clones that share a pipeline.
    """
    if not isinstance(options, batching.Batching) or not options.augmentation.mixes:
        return _Pipeline(options.pipeline(), options, options.work)
    count = num_clones * shard.batch_size
    # A whole global batch contains all partners.
    num_following = 0 if count == shard.global_batch_size else 1
    pieces_options = dataclasses.replace(options, batch_size=count + num_following)
    pieces = pieces_options.pipeline()
    mixing = Mixing(
        options.augmentation.mixup,
        options.augmentation.cutmix,
        options.dataset.num_classes,
        count,
    )
    mix = tf.autograph.experimental.do_not_convert(mixing.mix)

    def batches(numbers: Any) -> Any:
        mixed = pieces(numbers).map(mix, tf.data.AUTOTUNE)
        return mixed if num_clones == 1 else mixed.rebatch(shard.batch_size, drop_remainder=True)

    work = pieces_options.work
    # Pieces that wait, and pieces that are being mixed.
    mixed = (1 + chunks.usable_cores()) * pieces_options.batch_size
    work = work._replace(examples=work.examples + mixed)
    return _Pipeline(batches, pieces_options, work, num_following)


def _held(
    pipeline: _Pipeline, order: Order, shard: Shard, num_clones: int, batch_spec: Any
) -> holding.Held:
    """Returns the largest memory of all pipelines, each of `num_clones` clones; see `held_by`."""
    options = pipeline.options
    per_step = num_clones * shard.batch_size + pipeline.num_following
    window = per_step * order.steps_per_window
    one = holding.held_by(
        holding.with_windows(pipeline.work, window if options.decodes_windows else 0),
        batch_spec,
        shard.batch_size,
        num_clones,
        tables=options.tables,
        num_examples=order.examples_per_epoch,
        window=window if options.reads_windows else 0,
        cached_bytes=options.cached_bytes,
    )
    return one.times(shard.num_clones // num_clones)


def _own_position(num_shards: int) -> Any:
    # All replicas have the whole vector, so that any of them can save all positions.
    position = tf.compat.v1.get_variable(
        "position",
        [num_shards],
        tf.int64,
        initializer=tf.compat.v1.zeros_initializer(),
        trainable=False,
        use_resource=True,
    )
    note_replica_counts(position)
    return position
