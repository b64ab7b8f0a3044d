"""Networks with one defect each: the comparison that all networks pass finds every one."""

import functools
from collections.abc import Callable
from typing import Any

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets import cifarnet, inception_resnet_v2, mobilenet_v1, resnet_utils, resnet_v1
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


def keywords(**changes: Any) -> Defect:
    """Builds the network with other keywords."""
    return lambda patch: changes


def percent_more(right: Any, *arguments: Any, **keywords: Any) -> Any:
    """Returns 1 percent more than the right function does."""
    return 1.01 * right(*arguments, **keywords)


def scaled(right: Any) -> Callable[..., Any]:
    """Returns the layer with its output 1 percent too large."""
    return functools.partial(percent_more, right)


def steeper(right: Any) -> Callable[..., Any]:
    """Returns the layer with gradients 1 percent too large, and the right output."""

    def altered(*arguments, **keywords):
        net = right(*arguments, **keywords)
        return net + 0.01 * (net - tf.stop_gradient(net))

    return altered


def without(name: str) -> Callable[..., Any]:
    """Returns what makes a layer one with None for a keyword."""
    return lambda right: lambda *arguments, **others: right(*arguments, **{**others, name: None})


def average(right: Any) -> Callable[..., Any]:
    """Returns the average pooling in place of the other one."""
    return slim.avg_pool2d


def a_pixel_off(right: Any) -> Callable[..., Any]:
    """Returns the 5 x 5 convolution padded by one pixel more before, and one less behind."""

    def convolution(net, *arguments, **keywords):
        padded = tf.pad(net, [[0, 0], [3, 1], [3, 1], [0, 0]])
        return right(padded, *arguments, padding="VALID", **keywords)

    return convolution


def padded_by_the_kernel_alone(right: Any, *arguments: Any, **keywords: Any) -> Any:
    """Builds MobileNet v1 with explicit padding, which differs where a size is even."""
    return right(*arguments, use_explicit_padding=True, **keywords)


def stride_a_layer_early(patch: pytest.MonkeyPatch) -> None:
    """Swaps the strides of two layers of MobileNet v1."""
    defs = list(mobilenet_v1.MOBILENETV1_CONV_DEFS)
    defs[1], defs[2] = defs[1]._replace(stride=2), defs[2]._replace(stride=1)
    patch.setattr(mobilenet_v1, "MOBILENETV1_CONV_DEFS", defs)


def stride_in_the_first_unit(right: Any, *arguments: Any) -> Any:
    """Builds a ResNet block with the stride where the paper, not TF-Slim, has it."""
    block = right(*arguments)
    return block._replace(args=block.args[::-1])


def normalized_too_much(right: Any, net: Any, name: str) -> Any:
    """Normalizes with the sum of the squares in place of their mean."""
    return tf.nn.lrn(net, depth_radius=4, bias=1.0, alpha=0.001, beta=0.75, name=name)


def mobilenet(**scope: Any) -> Defect:
    """Builds MobileNet v1 with another setting of its arg scope."""
    return keywords(scope_keywords=scope, dropout_keep_prob=1.0)


QUICK = [
    ("lenet", "logits", "conv a pixel off", layer("conv2d", "conv1", a_pixel_off)),
    ("lenet", "logits", "average pool", layer("max_pool2d", "pool2", average)),
    ("lenet", "logits", "no ReLU", layer("conv2d", "conv2", without("activation_fn"))),
    ("cifarnet", "logits", "sum of squares", replaced(cifarnet, "_normalize", normalized_too_much)),
    ("cifarnet", "cross_entropy", "1 percent", layer("fully_connected", "fc4", scaled)),
    ("cifarnet", "gradient_norms", "steeper", layer("conv2d", "conv2", steeper)),
    ("mobilenet_v1_025", "logits", "stride moved", stride_a_layer_early),
    (
        "mobilenet_v1_025",
        "gradient_norms",
        "explicit padding",
        replaced(mobilenet_v1, "mobilenet_v1_base", padded_by_the_kernel_alone),
    ),
    ("mobilenet_v1_025", "logits", "epsilon", mobilenet(batch_norm_epsilon=1e-5)),
    ("mobilenet_v1_025", "moving_statistics", "decay", mobilenet(batch_norm_decay=0.999)),
]
SLOW = [
    ("vgg_a", "gradient_norms", "1 percent", layer("conv2d", "conv1_1", scaled)),
    # These amplify noise most. What is left of the logits says little: their bound is a third.
    (
        "resnet_v1_200",
        "moving_statistics",
        "stride moved",
        replaced(resnet_utils, "block", stride_in_the_first_unit),
    ),
    (
        "resnet_v1_200",
        "moving_statistics",
        "1 percent",
        replaced(resnet_v1, "subsample", percent_more),
    ),
    (
        "inception_resnet_v2",
        "moving_statistics",
        "1 percent",
        replaced(
            inception_resnet_v2,
            "_residual",
            lambda right, mixed, scale, activation_fn: right(mixed, 1.01 * scale, activation_fn),
        ),
    ),
]


def _cases() -> list[Any]:
    return [
        pytest.param(name, kind, defect, marks=marks, id=f"{name}-{words}".replace(" ", "-"))
        for cases, marks in ((QUICK, []), (SLOW, [pytest.mark.slow]))
        for name, kind, words, defect in cases
    ]


@pytest.mark.parametrize(("name", "kind", "defect"), _cases())
def test_defect_is_found(monkeypatch, name, kind, defect):
    """A figure of a network with a defect is further from the reference than its bound."""
    with Step(name, **(defect(monkeypatch) or {})) as step:
        assert kind in comparison.wrong(name, step.run())
