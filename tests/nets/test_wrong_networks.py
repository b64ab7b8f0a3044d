"""Networks with one defect each: the comparison that all networks pass finds every one."""

import functools
from collections.abc import Callable
from typing import Any

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets import mobilenet_v1, resnet_utils
from tests.nets import comparison
from tests.nets.training_step import Step

# Changes the parts that a network is built of, or returns other keywords for it.
Defect = Callable[[pytest.MonkeyPatch], dict[str, Any] | None]


def layer(function: str, scope: str, make: Callable[..., Any]) -> Defect:
    """Makes the slim layers of this scope what `make` makes of the layer's function."""

    def defect(patch: pytest.MonkeyPatch) -> None:
        right = getattr(slim, function)

        @functools.wraps(right)  # so that arg scopes know it
        def altered(*arguments, **keywords):
            chosen = make(right) if keywords.get("scope") == scope else right
            return chosen(*arguments, **keywords)

        patch.setattr(slim, function, altered)

    return defect


def replaced(module: Any, name: str, wrong: Callable[..., Any]) -> Defect:
    """Calls `wrong` with the right function of this name and its arguments in its place."""
    return lambda patch: patch.setattr(
        module, name, functools.partial(wrong, getattr(module, name))
    )


def scaled(right: Any) -> Callable[..., Any]:
    """Returns the layer with its output 1 percent too large."""
    return lambda *arguments, **keywords: 1.01 * right(*arguments, **keywords)


def steeper(right: Any) -> Callable[..., Any]:
    """Returns the layer with gradients 1 percent too large, and the right output."""

    def altered(*arguments, **keywords):
        net = right(*arguments, **keywords)
        return net + 0.01 * (net - tf.stop_gradient(net))

    return altered


def a_pixel_off(right: Any) -> Callable[..., Any]:
    """Returns the 5 x 5 convolution padded by one pixel more before, and one less behind."""

    def convolution(net, *arguments, **keywords):
        padded = tf.pad(net, [[0, 0], [3, 1], [3, 1], [0, 0]])
        return right(padded, *arguments, padding="VALID", **keywords)

    return convolution


def padded_by_the_kernel_alone(right: Any, *arguments: Any, **keywords: Any) -> Any:
    """Builds MobileNet v1 with explicit padding, which differs where a size is even."""
    return right(*arguments, use_explicit_padding=True, **keywords)


def stride_in_the_first_unit(right: Any, *arguments: Any) -> Any:
    """Builds a ResNet block with the stride where the paper, not TF-Slim, has it."""
    block = right(*arguments)
    return block._replace(args=block.args[::-1])


def with_slower_averages(patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Builds MobileNet v1 with another decay."""
    return {"scope_keywords": {"batch_norm_decay": 0.999}, "dropout_keep_prob": 1.0}


QUICK = [
    ("lenet", "logits", "conv a pixel off", layer("conv2d", "conv1", a_pixel_off)),
    ("cifarnet", "cross_entropy", "1 percent", layer("fully_connected", "fc4", scaled)),
    ("cifarnet", "gradient_norms", "steeper", layer("conv2d", "conv2", steeper)),
    (
        "mobilenet_v1_025",
        "gradient_norms",
        "explicit padding",
        replaced(mobilenet_v1, "mobilenet_v1_base", padded_by_the_kernel_alone),
    ),
    ("mobilenet_v1_025", "moving_statistics", "decay", with_slower_averages),
]
DEEP = (
    "resnet_v1_50",
    "moving_statistics",
    "stride moved",
    replaced(resnet_utils, "block", stride_in_the_first_unit),
)


@pytest.mark.parametrize(
    ("name", "kind", "defect"),
    [
        pytest.param(name, kind, defect, marks=marks, id=f"{name}-{words}".replace(" ", "-"))
        for cases, marks in ((QUICK, []), ([DEEP], [pytest.mark.slow]))
        for name, kind, words, defect in cases
    ],
)
def test_defect_is_found(monkeypatch, name, kind, defect):
    """A figure of a network with a defect is further from the reference than its bound."""
    with Step(name, **(defect(monkeypatch) or {})) as step:
        assert kind in comparison.wrong(name, step.run())
