"""`EvalBatches`: evaluation batches with every example exactly once."""

from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

from model_deploy.inputs import preprocessing as preprocessing_lib
from model_deploy.inputs.datasets import dataset as dataset_lib
from model_deploy.inputs.pipelines import batching
from model_deploy.inputs.pipelines.own_examples import ExampleBatching, OwnExamples
from model_deploy.inputs.reading import composites


@tf.autograph.experimental.do_not_convert
def _numbered(index: Any) -> dict[str, Any]:
    return {"index": index, "position": index}


class EvalBatches(Iterator[dict[str, Any]]):
    """Batches of an evaluation: each run of the tensors that `next` returns is the next batch.

    Attributes:
      initializer: the op that (re)starts at the first example; also in
        `tf.GraphKeys.TABLE_INITIALIZERS`.
      num_batches: number of batches, a last partial one included.
    """

    def __init__(self, options: ExampleBatching) -> None:
        num_examples, batch_size = options.dataset.num_examples, options.batch_size
        self.num_batches = -(-num_examples // batch_size)
        numbers = tf.data.Dataset.range(num_examples).batch(
            batch_size, drop_remainder=num_examples % batch_size == 0
        )
        numbers = numbers.map(_numbered)
        batches = options.pipeline()(numbers)
        self._specs = batches.element_spec
        batches = composites.in_parts(batches).prefetch(tf.data.AUTOTUNE)
        iterator = tf.compat.v1.data.make_initializable_iterator(batches)
        self.initializer = iterator.initializer
        tf.compat.v1.add_to_collection(tf.compat.v1.GraphKeys.TABLE_INITIALIZERS, self.initializer)
        self._element = iterator.get_next()

    def __next__(self) -> dict[str, Any]:
        """Returns "image" float32 [n, h, w, c] and "label" int64 [n].

        n is the batch size, or less in the last batch.  Running the tensors after the last batch
        raises `tf.errors.OutOfRangeError`.  Further calls of `next` return the same batch.
        """
        return composites.whole(self._element, self._specs)


def eval_batches(
    dataset: dataset_lib.Dataset | OwnExamples,
    *,
    preprocessing: preprocessing_lib.Preprocessing | str | None = None,
    batch_size: int = 100,
    image_size: int | tuple[int, int] | None = None,
    num_readers: int | None = None,
    num_preprocessing_threads: int | None = None,
    include_index: bool = False,
    preprocessing_options: Mapping[str, Any] | None = None,
    name: str = "eval_batches",
) -> EvalBatches:
    """Builds the input pipeline of an evaluation in the default graph.

    Args:
      dataset: the split to evaluate on, or records or tables of your own.
      preprocessing: a family, or the name of a family or a network; none for those of your own.
      batch_size: examples per batch; the last batch may have fewer.
      image_size: side of the images, or (height, width); by default the dataset's.
      num_readers: number of parallel reads; by default `tf.data` tunes it.
      num_preprocessing_threads: number of parallel calls of the preprocessing; by default as
        `tf.data` decides.
      include_index: adds "index", int64 [n], the numbers of the examples.
      preprocessing_options: keyword arguments for the family.
      name: the name scope.

    Returns:
      An iterator whose `next` returns "image" float32 [n, h, w, c] and "label" int64 [n]; or the
      features of your own examples, each [n, ...].  Its `initializer` is added to
      `TABLE_INITIALIZERS`.

    Raises:
      ValueError: for numbers out of range, and examples that cannot be read.
    """
    options = batching.batching_of(
        dataset,
        batch_size,
        training=False,
        preprocessing=preprocessing,
        of_images={
            "image_size": image_size,
            "options": preprocessing_options or {},
            "num_preprocessing_threads": num_preprocessing_threads,
        },
        num_readers=num_readers,
        include_index=include_index,
    )
    with tf.compat.v1.name_scope(name):
        return EvalBatches(options)
