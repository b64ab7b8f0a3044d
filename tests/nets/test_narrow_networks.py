"""Narrow networks of each architecture: trained in 16 bits, of any size of images, with drops."""

import inspect
import re
import types

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy
from nets import nets_factory
from nets.parts.dense_head import DenseHead
from tests import harness
from tests.nets import graphs, reference
from tests.nets.few_blocks import MISSING

pytestmark = pytest.mark.one_mode

_QUICK = ("cifarnet", "lenet", "mnist_mlp", "resnet_9_small", "text_lstm")
_BOTH = (*_QUICK, "mobilenet_v3_small")
_BFLOAT16 = (
    *("alexnet_v2", "i3d", "inception_resnet_v2", "inception_v1", "inception_v2", "inception_v4"),
    *("mobilenet_edgetpu", "mobilenet_v3_small_minimalistic", "overfeat", "pnasnet_mobile"),
    "resnet_v1_50",
)
_FLOAT16 = (
    *("inception_v3", "mobilenet_v1", "mobilenet_v2", "nasnet_mobile", "resnet_v2_50", "s3dg"),
    "vgg_a",
)
CASES = [
    *((name, precision) for name in _BOTH for precision in ("bfloat16", "float16")),
    *((name, "bfloat16") for name in _BFLOAT16),
    *((name, "float16") for name in _FLOAT16),
]
# Networks whose graphs TensorFlow rewrites, as it does by default: for others that takes longer
# than their steps, and is of the same kinds of layers.
_REWRITTEN = (*_BOTH, "resnet_v2_50")
# A kernel of an auxiliary head, as large as the map up to 5 x 5.
_KERNEL_OF_MAP = re.compile(r"(?<=AuxLogits/)Conv2d_2a_\dx\d")
_DROPOUT = re.compile(r"(.*?[Dd]ropout[^/]*)/.*[Rr]andom_?[Uu]niform$")


@pytest.fixture(scope="module")
def narrow_layers():
    """Dense layers have few channels: in 16 bits they do the same as with thousands."""
    dense = DenseHead.dense

    def narrow(head, net, width, **keywords):
        return dense(head, net, min(width, 64), **keywords)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DenseHead, "dense", narrow)
        yield


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(case, marks=[] if case[0] in _QUICK else pytest.mark.slow, id="-".join(case))
        for case in CASES
    ],
)
def trained(request, few_blocks, narrow_layers):
    """A narrow network after a step in 16 bits."""
    return _trained(*request.param)


def _trained(name, precision):
    parameters = inspect.signature(nets_factory.get_network(name).function).parameters
    wanted = {"spatial_squeeze": False, "global_pool": True, "depth_multiplier": 0.5}
    keywords = {key: value for key, value in wanted.items() if key in parameters}
    wider = 32 if "global_pool" in keywords else 0
    found = types.SimpleNamespace(name=name, keywords=keywords)

    def model_fn():
        others = {v.op.name for v in tf.global_variables()}
        inputs = graphs.sample(name, 64, wider, **keywords)
        found.logits, _ = graphs.build(name, inputs, 10, is_training=True, **keywords)
        found.losses = tf.losses.get_regularization_losses()
        found.sizes = {
            v.op.name: v.shape.num_elements()
            for v in tf.global_variables()
            if v.op.name not in others
        }
        logits = tf.reshape(found.logits, [2, 10])
        tf.losses.sparse_softmax_cross_entropy(graphs.LABELS, logits)

    # With a larger scale gradients may not fit into float16, and the step is left out.
    config = DeploymentConfig(clone_on_cpu=True, precision=precision, loss_scale=1.0)
    with tf.Graph().as_default() as graph:
        model = deploy(config, model_fn, optimizer=harness.sgd(1e-3))
        found.graph, found.variables = graph, {v.op.name: v for v in tf.trainable_variables()}
        vectors = {key: v for key, v in found.variables.items() if v.shape.rank == 1}
        with tf.Session() if name in _REWRITTEN else graphs.session(graph) as session:
            harness.start(session)
            found.before = session.run(vectors)
            found.loss = session.run(model.train_op)
            found.after = session.run(found.variables)
    return found


def test_each_architecture_trains(trained):
    """A step of each architecture in 16 bits has a finite loss, and changes variables."""
    assert np.isfinite(trained.loss)
    assert all(np.all(np.isfinite(value)) for value in trained.after.values())
    assert any(np.any(value != trained.after[key]) for key, value in trained.before.items())


def test_pooling_and_dropout(trained):
    """`global_pool=True` makes one row of logits of an image of any size, `spatial_squeeze=False`
    keeps its height and width; the reference's dropouts are drawn at random, and with weight decay
    0 nothing is regularized.
    """
    squeezed = "spatial_squeeze" not in trained.keywords
    assert trained.logits.shape.as_list() == ([2, 10] if squeezed else [2, 1, 1, 10])
    assert trained.losses == []
    if trained.name in reference.names():
        matches = [_DROPOUT.match(op.name) for op in trained.graph.get_operations()]
        wanted = reference.load(trained.name)["dropout_training"]
        found = {match[1] for match in matches if match}
        assert found == {scope for scope, keep in wanted if keep < 1}


def test_depth(trained):
    """Half as deep, a network has smaller variables of the same names."""
    if "depth_multiplier" not in trained.keywords:
        pytest.skip("it has one depth")
    found = {_KERNEL_OF_MAP.sub("Conv2d_2a_5x5", name): n for name, n in trained.sizes.items()}
    wanted = {
        name: np.prod(shape)
        for name, shape, *_ in reference.load(trained.name)["variables"]
        if not MISSING.search(name)
    }
    assert found.keys() == wanted.keys()
    assert sum(found.values()) < 0.5 * sum(wanted.values())
