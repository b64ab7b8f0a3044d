"""`computing_in_layout`: convolutions, and what lies between them, with the channels in front.

Each op is decided upon when it is made.  One with channels first takes its images transposed, and a
transposition back stands for it, under its name and of its shape: so `model_fn` sees the channels
last everywhere.  The next such op takes what is before that transposition; if all do, nobody runs
it.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.internals import NewOp
from model_deploy.rewrites.layouts.axes import to_first, to_last
from model_deploy.rewrites.layouts.op_types import Plan, plan, plan_between


@contextlib.contextmanager
def computing_in_layout(data_format: str) -> Iterator[None]:
    """Makes the ops of a `with` block with channels first, if that is asked for.

    Such are convolutions, pools and fused batch norms of images [batch, height, width, channels]
    and videos; and what follows them of elementwise arithmetic, biases, padding, concatenation,
    reductions.  Variables have the shapes that they have, and so does every tensor that `model_fn`
    sees.  What a `tf.GradientTape` records stays as it is.

    Args:
      data_format: of `settings.DATA_FORMATS`; with another one than `NCHW` all stays as it is.
    """
    if data_format != "NCHW":
        yield
        return
    with internals.making_ops_by(_ChannelsFirst().make):
        yield


class _ChannelsFirst:
    """Makes ops with channels first that were about to be made with channels last."""

    def __init__(self) -> None:
        # By the reference of a tensor with channels last: the one that it is a transposition of.
        self._first: dict[Any, Any] = {}

    def make(self, new: NewOp) -> Any:
        """The op that takes the place of a new one; None if that is to stay as it is."""
        planned = plan(new)
        if planned is None:
            planned = plan_between(new)
            if planned is None or not any(self._is_known(new.inputs[i]) for i in planned.images):
                return None
        if internals.tape_records():
            return None
        inputs = list(new.inputs)
        with tf.name_scope(f"{new.name}/"):
            for place in planned.images:
                inputs[place] = self._with_channels_first(inputs[place], planned.rank)
            for place, replace in planned.inputs.items():
                inputs[place] = replace(inputs[place])
        if not planned.num_images:
            return new.make(new.name, inputs, {**new.attrs, **planned.attrs})
        op = new.make(f"{new.name}/channels_first", inputs, {**new.attrs, **planned.attrs})
        return self._standing_for(op, new, planned)

    def _is_known(self, tensor: Any) -> bool:
        return tensor.ref() in self._first

    def _with_channels_first(self, tensor: Any, rank: int) -> Any:
        known = self._first.get(tensor.ref())
        return tf.transpose(tensor, to_first(rank)) if known is None else known

    def _standing_for(self, op: Any, new: NewOp, planned: Plan) -> Any:
        """An op under the name of the new one, whose images have their channels last."""
        outputs = list(op.outputs)
        back = to_last(planned.rank)
        if len(outputs) == 1:
            result = tf.transpose(outputs[0], back, name=f"{new.name}/")
            self._first[result.ref()] = outputs[0]
            return result.op
        with tf.name_scope(f"{new.name}/"):
            images = [tf.transpose(each, back) for each in outputs[: planned.num_images]]
        results = tf.identity_n([*images, *outputs[planned.num_images :]], name=f"{new.name}/")
        for result, first in zip(results, outputs[: planned.num_images], strict=False):
            self._first[result.ref()] = first
        return results[0].op
