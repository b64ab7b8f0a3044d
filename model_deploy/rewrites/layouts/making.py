"""`computing_in_layout`: makes convolutions, and the ops between them, with channels first."""

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.internals import NewOp
from model_deploy.rewrites.layouts.axes import to_first, to_last
from model_deploy.rewrites.layouts.op_types import form_between, form_of
from model_deploy.rewrites.making import Form, Rewrite


@contextlib.contextmanager
def computing_in_layout(data_format: str) -> Iterator[None]:
    """Makes the ops of a `with` block with channels first, if `data_format` is `NCHW`.

    These are convolutions, pools and fused batch norms of images [batch, height, width, channels]
    and videos, and between them elementwise ops, biases, padding, concatenation and reductions.
    Variables, and the tensors that `model_fn` sees, keep their shapes.  Ops that a
    `tf.GradientTape` records are not changed.

    Args:
      data_format: one of `settings.DATA_FORMATS`; with any but `NCHW` nothing is changed.
    """
    if data_format != "NCHW":
        yield
        return
    with internals.making_ops_by(_ChannelsFirst().make):
        yield


class _ChannelsFirst(Rewrite):
    """Makes ops with channels first in place of ops with channels last."""

    name = "channels_first"

    def __init__(self) -> None:
        # Reference of a transposed tensor, channels last -> the tensor with channels first.
        self._first: dict[Any, Any] = {}

    def form_of(self, new: NewOp) -> Form | None:
        form = form_of(new)
        if form is not None:
            return form
        form = form_between(new)
        if form is None or all(self.known(new.inputs[i]) is None for i in form.converted):
            return None
        return form

    def known(self, tensor: Any) -> Any:
        return self._first.get(tensor.ref())

    def converted(self, tensor: Any, form: Form) -> Any:
        return tf.transpose(tensor, to_first(form.rank))

    def brought_back(self, tensor: Any, form: Form, name: str | None = None) -> Any:
        return tf.transpose(tensor, to_last(form.rank), name=name)

    def note(self, result: Any, tensor: Any) -> None:
        self._first[result.ref()] = tensor
