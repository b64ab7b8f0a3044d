"""`Rewrite`: an op is made in another form, and its outputs stand under the name asked for.

A rule decides upon each op when it is made, also in loops and conditions.  An op in the other form
(16 bits, or channels first) takes its inputs in that form; what brings its outputs back stands for
it, under its name, with its types and shapes: so `model_fn` sees nothing of the form.  The next op
in the form takes a value from before it was brought back; if all do, nobody runs the way back.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.internals import NewOp


class Form(NamedTuple):
    """How one op is made in the other form.

    Attributes:
      converted: places of the inputs that are taken in the form.
      attrs: what replaces attributes of the op.
      inputs: what replaces other inputs, by place.
      num_outputs: how many of its first outputs are in the form; None for all.
      rank: that of the images, where the form is an order of axes.
    """

    converted: Sequence[int]
    attrs: Mapping[str, Any]
    inputs: Mapping[int, Callable[[Any], Any]] = {}
    num_outputs: int | None = None
    rank: int = 0


class Rewrite:
    """Makes ops in another form; a subclass says which, how, and what a value is in it.

    Attributes:
      name: the last part of the names of ops in the form.
    """

    name = ""

    def form_of(self, new: NewOp) -> Form | None:
        """How a new op is made in the form; None for one that stays as it is."""
        raise NotImplementedError

    def known(self, tensor: Any) -> Any:
        """The value in the form that a tensor was brought back from; None if it was not."""
        raise NotImplementedError

    def converted(self, tensor: Any, form: Form) -> Any:
        """A tensor in the form."""
        raise NotImplementedError

    def brought_back(self, tensor: Any, form: Form, name: str | None = None) -> Any:
        """A tensor in the form as `model_fn` is to see it."""
        raise NotImplementedError

    def note(self, result: Any, tensor: Any) -> None:
        """Is told that `result` is `tensor`, brought back."""

    def around_op(self) -> contextlib.AbstractContextManager[None]:
        """A `with` block in which the op in the form is made."""
        return contextlib.nullcontext()

    def make(self, new: NewOp) -> Any:
        """The op that takes the place of a new one; None if that is to stay as it is."""
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
        """A tensor in the form: from before it was brought back, or converted.

        What the function of a custom gradient was given is always converted.
        """
        before = None if internals.is_custom_gradient_input(tensor) else self.known(tensor)
        return self.converted(tensor, form) if before is None else before

    def _standing_for(self, op: Any, new: NewOp, form: Form) -> Any:
        """An op under the name of the new one, with the outputs of `op` brought back."""
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
