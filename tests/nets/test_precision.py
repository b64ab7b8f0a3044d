"""Networks of each architecture, trained in 16 bits."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy
from nets.parts.dense_head import DenseHead
from tests import harness
from tests.nets import graphs

_MARKS = [pytest.mark.slow, pytest.mark.one_mode]
_SLOW = (
    *("alexnet_v2", "i3d", "inception_resnet_v2", "inception_v1", "inception_v2", "inception_v3"),
    *("inception_v4", "mobilenet_edgetpu_075", "mobilenet_v1_025", "mobilenet_v2_035"),
    *("mobilenet_v3_small", "mobilenet_v3_small_minimalistic", "nasnet_cifar", "overfeat"),
    *("pnasnet_mobile", "resnet_v1_50", "resnet_v2_50", "s3dg", "vgg_a"),
)
# Networks whose layers are those of others, which train in float16, too.
_ONCE = (
    *("i3d", "inception_resnet_v2", "inception_v1", "inception_v2", "inception_v3"),
    *("inception_v4", "mobilenet_edgetpu_075", "mobilenet_v3_small_minimalistic", "overfeat"),
    *("pnasnet_mobile", "resnet_v1_50"),
)
# Networks whose graphs TensorFlow rewrites, as it does by default: for others that takes longer
# than their steps, and is of the same kinds of layers.
_REWRITTEN = (
    *("cifarnet", "lenet", "mobilenet_v3_small", "mnist_mlp", "resnet_9_small", "resnet_v2_50"),
    "text_lstm",
)
NETWORKS = [
    *("cifarnet", "lenet", "mnist_mlp", "resnet_9_small", "text_lstm"),
    *(pytest.param(name, marks=_MARKS) for name in _SLOW),
]


@pytest.fixture
def narrow_layers(monkeypatch):
    """Dense layers have few channels: in 16 bits they do the same as with thousands."""
    dense = DenseHead.dense

    def narrow(head, net, width, **keywords):
        return dense(head, net, min(width, 64), **keywords)

    monkeypatch.setattr(DenseHead, "dense", narrow)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.usefixtures("few_blocks", "narrow_layers")
def test_each_architecture_trains(name, precision):
    """A step of each architecture in 16 bits has a finite loss, and changes variables."""
    if name in _ONCE and precision == "float16":
        pytest.skip("its layers are those of other networks")
    narrow = graphs.narrow(name)

    def model_fn():
        logits, _ = graphs.build(name, graphs.sample(name, 64), 10, is_training=True, **narrow)
        tf.losses.sparse_softmax_cross_entropy(graphs.LABELS, logits)

    # With a larger scale gradients may not fit into float16, and the step is left out.
    config = DeploymentConfig(clone_on_cpu=True, precision=precision, loss_scale=1.0)
    model = deploy(config, model_fn, optimizer=harness.sgd(1e-3))
    variables = {v.op.name: v for v in tf.trainable_variables()}
    vectors = {key: v for key, v in variables.items() if v.shape.rank == 1}
    rewritten = name in _REWRITTEN
    with tf.Session() if rewritten else graphs.session(tf.get_default_graph()) as session:
        harness.start(session)
        before = session.run(vectors)
        assert np.isfinite(session.run(model.train_op))
        after = session.run(variables)
    assert all(np.all(np.isfinite(value)) for value in after.values())
    assert any(np.any(value != after[key]) for key, value in before.items())
