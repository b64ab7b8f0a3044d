"""Synchronizes TensorFlow's fused batch norms: mean and variance over all clones."""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.internals import NewOp
from model_deploy.rewrites.batch_norm.lookup import norm_of_gradient
from model_deploy.rewrites.batch_norm.parts import PartNorms, count_per_mean

TYPES = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
# Names of the gradient functions that are registered below.
_NORMALIZATION = "ModelDeployNormalization"
_FIRST_ALONE = "ModelDeployFirstAlone"


def normalize(part: PartNorms, new: NewOp) -> Any:
    """Replaces a fused batch norm in training by a synchronized one; returns the new op.

    It has the outputs of a fused batch norm on the whole batch: the normalized values, the moving
    or new mean and (unbiased) variance, and the outputs that TensorFlow's gradient would use.
    """
    x, scale, offset, old_mean, old_variance = new.inputs
    settings = {"epsilon": new.attrs["epsilon"].f, "data_format": _data_format(new)}
    with tf.name_scope(f"{new.name}/"):
        count, mean, variance = part.whole_batch(
            new.name, *_local_moments(x, scale, offset, settings)
        )
        with tf.get_default_graph().gradient_override_map({"FusedBatchNormV3": _NORMALIZATION}):
            y = tf.raw_ops.FusedBatchNormV3(
                x=x,
                scale=scale,
                offset=offset,
                mean=mean,
                variance=variance,
                is_training=False,
                **settings,
            )
        unbiased = variance * count / tf.maximum(count - 1, 1)
        share = new.attrs["exponential_avg_factor"].f if "V3" in new.type else 1.0
        outputs = [y[0], _moved(old_mean, mean, share), _moved(old_variance, unbiased, share)]
        outputs += [mean, variance]
        if "V3" in new.type:
            outputs.append(tf.zeros([0]))
    with tf.get_default_graph().gradient_override_map({"IdentityN": _FIRST_ALONE}):
        return tf.identity_n(outputs, name=f"{new.name}/")[0].op


def is_in_training(new: NewOp) -> bool:
    """Whether an op is a fused batch norm with `is_training`."""
    return new.type in TYPES and bool(new.attrs["is_training"].b)


def _data_format(new: NewOp) -> str:
    return new.attrs["data_format"].s.decode()


def _local_moments(
    x: Any, scale: Any, offset: Any, settings: dict[str, Any]
) -> tuple[Any, Any, Any]:
    """Returns this clone's count, mean and sum of squared deviations, by the fast fused kernel."""
    of_clone = tf.raw_ops.FusedBatchNormV3(
        x=x, scale=scale, offset=offset, mean=[], variance=[], is_training=True, **settings
    )
    mean, unbiased = of_clone[1], of_clone[2]
    count = count_per_mean(x, mean)
    return count, mean, unbiased * tf.maximum(count - 1, 1)


def _moved(old: Any, new: Any, share: float) -> Any:
    """Moves `old` towards `new` by the fraction `share`."""
    return new if share == 1 else old + share * (new - old)


@tf.RegisterGradient(_FIRST_ALONE)
def _gradient_of_first(op: Any, gradient: Any, *others: Any) -> list[Any]:
    """Passes on the gradient of the first output alone, the normalized values."""
    del op
    return [gradient, *(None for _ in others)]


@tf.RegisterGradient(_NORMALIZATION)
def _gradient_of_normalization(op: Any, gradient: Any, *others: Any) -> list[Any]:
    """Gradients of x, scale and offset; for scale and offset this clone's term of the sum.

    With s = scale / sqrt(variance + epsilon) and the normalized values z, the gradient of x is
    s (gradient - (sum(gradient) + z sum(gradient z)) / count), with sums over all clones.
    The subtracted term is itself a normalization of x, computed by the same kernel.
    """
    del others
    x, scale, _, mean, variance = op.inputs
    part, place, count = norm_of_gradient(mean)
    data_format = op.get_attr("data_format").decode()
    settings = {"epsilon": op.get_attr("epsilon"), "is_training": False}
    of_x, of_scale, of_offset = _with_given_moments(op, gradient, data_format, settings)
    sums = part.sum_for_gradient(place, tf.concat([of_scale, of_offset], axis=0))
    scale_of_all, offset_of_all = tf.split(sums * (1 / count), 2)
    slope = scale * tf.rsqrt(variance + settings["epsilon"])
    by_moments = tf.raw_ops.FusedBatchNormV3(
        x=x,
        scale=slope * scale_of_all,
        offset=slope * offset_of_all,
        mean=mean,
        variance=variance,
        data_format=data_format,
        **settings,
    )
    return [of_x - by_moments[0], of_scale, of_offset, None, None]


def _with_given_moments(
    op: Any, gradient: Any, data_format: str, settings: dict[str, Any]
) -> tuple[Any, Any, Any]:
    """Returns the gradients of x, scale and offset for constant mean and variance."""
    x, scale, _, mean, variance = op.inputs
    rank = len(data_format)
    back = None
    if data_format.startswith("NC"):  # the kernel takes channels last only
        to_last, back = [0, *range(2, rank), 1], [0, rank - 1, *range(1, rank - 1)]
        gradient, x = tf.transpose(gradient, to_last), tf.transpose(x, to_last)
    of_x, of_scale, of_offset, *_ = tf.raw_ops.FusedBatchNormGradV3(
        y_backprop=gradient,
        x=x,
        scale=scale,
        reserve_space_1=mean,
        reserve_space_2=variance,
        reserve_space_3=[],
        data_format="NHWC" if rank == 4 else "NDHWC",
        **settings,
    )
    if back is not None:
        of_x = tf.transpose(of_x, back)
    return of_x, of_scale, of_offset
