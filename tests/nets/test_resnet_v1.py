"""What only ResNet v1 has: activations before the stride, and thinner blocks."""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets import resnet_v1
from tests.nets import reference
from tests.nets.values import evaluate, images


def build(**keywords):
    """Builds ResNet-50, very thin, for features of a small image."""
    keywords = {"depth_multiplier": 0.05, "global_pool": False, **keywords}
    with slim.arg_scope(resnet_v1.resnet_arg_scope()):
        return resnet_v1.resnet_v1_50(images(1, 65, 65, 3), is_training=False, **keywords)


@pytest.mark.slow
def test_store_non_strided_activations():
    """Blocks then end before their stride: a finer map that, subsampled, gives equal features."""
    plain, plain_points = build()
    kept, kept_points = build(store_non_strided_activations=True, reuse=True)
    block = "resnet_v1_50{}/block{}"
    plain_sizes = [plain_points[block.format("", n)].shape[1] for n in (1, 2, 3, 4)]
    kept_sizes = [kept_points[f"resnet_v1_50/block{n}"].shape[1] for n in (1, 2, 3, 4)]
    assert plain_sizes == [9, 5, 3, 3]
    assert kept_sizes == [17, 9, 5, 3]
    plain, kept = evaluate([plain, kept])
    assert reference.relative_difference(kept, plain) < 1e-5


@pytest.mark.slow
def test_min_base_depth():
    """A bottleneck is no thinner than `min_base_depth`: 64 * 0.05 = 3 would be."""
    _, end_points = build(depth_multiplier=0.05, min_base_depth=8)
    widths = [end_points[f"resnet_v1_50/block{n}"].shape[-1] for n in (1, 4)]
    assert widths == [4 * 8, 4 * int(512 * 0.05)]


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        *(
            ({"depth_multiplier": bad}, "depth_multiplier must be a number of at least 0, got")
            for bad in (-0.5, float("nan"), float("inf"), "1")
        ),
        ({"min_base_depth": 0}, "min_base_depth must be .* at least 1, got 0"),
    ],
)
def test_bad_depths(keywords, message):
    """A multiplier that is not a number of at least 0, and no channels, are named."""
    with pytest.raises(ValueError, match=f"^{message}"):
        resnet_v1.resnet_v1_50(tf.zeros([1, 32, 32, 3]), **keywords)
