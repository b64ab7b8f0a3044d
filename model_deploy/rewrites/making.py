"""`Rewrite`: makes ops in another form (16 bits, or channels first) than `model_fn` asks for.

A subclass decides for each op when it is made, also in loops and conditions.  An op in the other
form takes converted inputs.  An op that converts its output back gets the name, dtype and shape
that `model_fn` asked for, so `model_fn` notices nothing.  A following op in the same form takes the
value before it was converted back; if all consumers do, the conversion back never runs.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.internals import NewOp


class Form(NamedTuple):
    """How to make one op in the other form.

    Attributes:
      converted: places of the inputs to convert.
      attrs: attributes of the op that replace the given ones.
      inputs: by place of another input a function that returns its replacement.
      num_outputs: how many outputs, from the first on, are in the form; None for all.
      rank: rank of the images, where the form is a layout.
    """

    converted: Sequence[int]
    attrs: Mapping[str, Any]
    inputs: Mapping[int, Callable[[Any], Any]] = {}
    num_outputs: int | None = None
    rank: int = 0


class Rewrite:
    """Makes ops in another form; a subclass says which ops, and how values are converted.

    Attributes:
      name: last part of the names of ops in the form.
    """

    name = ""

    def form_of(self, new: NewOp) -> Form | None:
        """Returns how to make a new op in the form; None to leave it alone."""
        raise NotImplementedError

    def known(self, tensor: Any) -> Any:
        """Returns the value in the form that `tensor` was converted back from, or None."""
        raise NotImplementedError

    def converted(self, tensor: Any, form: Form) -> Any:
        """Converts a tensor to the form."""
        raise NotImplementedError

    def brought_back(self, tensor: Any, form: Form, name: str | None = None) -> Any:
        """Converts a tensor in the form back to what `model_fn` is to see."""
        raise NotImplementedError

    def note(self, result: Any, tensor: Any) -> None:
        """Remembers that `result` is `tensor`, converted back."""

    def around_op(self) -> contextlib.AbstractContextManager[None]:
        """Opens a context in which an op in the form is made."""
        return contextlib.nullcontext()

    def make(self, new: NewOp) -> Any:
        """Makes the op that replaces a new one; returns None to leave the op alone."""
        form = self.form_of(new)
        if form is None or internals.tape_records():
            return None
        inputs = list(new.inputs)
        attrs = {**new.attrs, **form.attrs}
        with tf.name_scope(f"{new.name}/"):
            for place in form.converted:
                inputs[place] = self._in_form(inputs[place], form)
            for place, replace in form.inputs.items():
                inputs[place] = replace(inputs[place])
            if form.num_outputs == 0:
                return new.make(new.name, inputs, attrs)
            with self.around_op():
                op = new.make(f"{new.name}/{self.name}", inputs, attrs)
        return self._standing_for(op, new, form)

    def _in_form(self, tensor: Any, form: Form) -> Any:
        """Returns a tensor in the form: its value before it was converted back, or else converted.

        Inputs of a `tf.custom_gradient` function are always converted.
        """
        before = None if internals.is_custom_gradient_input(tensor) else self.known(tensor)
        return self.converted(tensor, form) if before is None else before

    def _standing_for(self, op: Any, new: NewOp, form: Form) -> Any:
        """Makes an op under the name of the new one, with the outputs of `op` converted back."""
        outputs = list(op.outputs)
        if len(outputs) == 1:
            result = self.brought_back(outputs[0], form, f"{new.name}/")
            self.note(result, outputs[0])
            return result.op
        in_form = outputs[: form.num_outputs]
        with tf.name_scope(f"{new.name}/"):
            back = [self.brought_back(each, form) for each in in_form]
        results = tf.identity_n([*back, *outputs[len(in_form) :]], name=f"{new.name}/")
        for result, tensor in zip(results, in_form, strict=False):
            self.note(result, tensor)
        return results[0].op
