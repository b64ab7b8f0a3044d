"""Networks trained for a step on two clones, saved, and restored into fresh graphs.

One of those that are the same code with fewer layers or another width stands for its twins, whose
variables and figures, in training too, `test_training.py` and `test_inference.py` compare.
"""

import dataclasses
import inspect
import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy
from model_deploy.classification import losses as classification
from nets import nets_factory
from nets.parts.network import Images
from tests.nets import graphs, reference
from tests.nets.twins import TWINS


class RecordingOptimizer(tf.train.GradientDescentOptimizer):
    """Keeps the gradients that it is asked to apply."""

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """Applies gradients as its base does."""
        self.applied = list(grads_and_vars)
        return super().apply_gradients(self.applied, global_step, name)


@dataclasses.dataclass(frozen=True)
class Deployed:
    """One network after a step on two clones."""

    trainable: list[str]
    gradients_finite: dict[str, bool]
    loss: float
    dropouts: list[str]
    variables: dict[str, np.ndarray]
    checkpoint: str


@pytest.fixture(scope="module")
def deployed(network_name, tmp_path_factory):
    """Builds the training graph on two clones, takes a step, writes a checkpoint.

    The second clone of deep networks is a copy of the first one: that gives the same graph, as
    `test_copying.py` shows, in two thirds of the time.
    """
    checkpoint = str(tmp_path_factory.mktemp("checkpoint") / "model.ckpt")
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(1)
        optimizer = RecordingOptimizer(1e-6)
        copied = is_deep(network_name)
        config = DeploymentConfig(num_clones=2, clone_on_cpu=True, copy_clones=copied)
        model = deploy(config, classify, [network_name], optimizer=optimizer)
        finite = {v.op.name: all_finite(gradient) for gradient, v in optimizer.applied}
        names = [op.name for op in graph.get_operations()]
        saver = tf.train.Saver()  # before the session: what comes later is placed anew, all of it
        with graphs.session(graph) as sess:
            sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            finite, loss = sess.run([finite, model.train_op])
            saver.save(sess, checkpoint, write_meta_graph=False)
            variables = sess.run({v.op.name: v for v in tf.global_variables()})
        return Deployed(
            trainable=[v.op.name for v in tf.trainable_variables()],
            gradients_finite=finite,
            loss=loss,
            dropouts=sorted({m[1] for m in map(re.compile(DROPOUT).match, names) if m}),
            variables=variables,
            checkpoint=checkpoint,
        )


# Number of variables. Less deep is Inception v3, which names a kernel after its size.
DEEP = 400
# The kernel of an auxiliary head that is as large as the feature map, of NASNet and Inception.
HEAD = re.compile(rf"{graphs.WHOLE_MAP.pattern}|.*/AuxLogits/Conv2d_2a(_\d+x\d+)?/weights")
# Networks whose first dense layer is as large as their images.
SIZED = {"cifarnet", "lenet", "mnist_mlp"}
DROPOUT = r"clone_0/(.*?[Dd]ropout[^/]*)/.*[Rr]andom_?[Uu]niform$"


def is_deep(network_name):
    """Whether a network has more than `DEEP` variables, by its reference numbers."""
    return (
        network_name in reference.names() and len(reference.load(network_name)["variables"]) > DEEP
    )


def classify(network_name):
    """Builds a network for training with its classification losses, auxiliary head included."""
    logits, end_points = graphs.build(
        network_name,
        graphs.sample(network_name, smallest=True),
        is_training=True,
        weight_decay=1e-4,
    )
    classification.add_classification_losses(
        logits, graphs.LABELS, auxiliary_logits=end_points.get("AuxLogits")
    )
    return logits


def all_finite(gradient):
    """Whether all values of a dense or sparse gradient are finite, as a tensor."""
    values = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
    return tf.reduce_all(tf.is_finite(values))


def test_every_trainable_variable_has_a_finite_gradient(deployed):
    """With its auxiliary loss, no trainable variable of a network is left out on two clones."""
    assert deployed.trainable
    assert deployed.gradients_finite == dict.fromkeys(deployed.trainable, True)
    assert np.isfinite(deployed.loss)


def test_dropout_is_active_in_training(network_name, deployed):
    """The training graph draws random numbers under the reference's dropout scopes."""
    if network_name not in reference.names():
        pytest.skip("has no reference numbers")
    wanted = reference.load(network_name)["dropout_training"]
    assert deployed.dropouts == sorted(scope for scope, keep in wanted if keep < 1)


def test_checkpoint_restores_into_a_fresh_training_graph(network_name, deployed):
    """A one-clone training graph restores every variable that two clones saved.

    Of deep networks the names and shapes are compared, with those that a one-clone graph has by
    `test_training.py`: to build them once more takes minutes.
    """
    if is_deep(network_name):
        wanted = {**variables_of(network_name), "global_step": []}
        assert without_shape_of_head(shapes_of(deployed)) == without_shape_of_head(wanted)
        return
    with tf.Graph().as_default() as graph:
        tf.train.get_or_create_global_step()
        classify(network_name)
        with graphs.session(graph) as sess:
            tf.train.Saver().restore(sess, deployed.checkpoint)
            restored = sess.run({v.op.name: v for v in tf.global_variables()})
    assert restored.keys() == deployed.variables.keys()
    for name, value in restored.items():
        np.testing.assert_array_equal(value, deployed.variables[name])


def shapes_of(deployed):
    """The shapes of the variables that were saved, by name."""
    return {name: list(value.shape) for name, value in deployed.variables.items()}


def variables_of(network_name):
    """The shapes of the variables of a training graph by the reference, by name."""
    expected = reference.load(network_name)
    left_out = {name for name, _ in expected["non_float32_variables"]}
    return {name: shape for name, shape, *_ in expected["variables"] if name not in left_out}


def without_shape_of_head(shapes):
    """The shapes, but for the kernel of an auxiliary head that covers a whole feature map."""
    return {name: None if HEAD.fullmatch(name) else shape for name, shape in shapes.items()}


@pytest.fixture(scope="module")
def evaluated(network_name, deployed):
    """Variables and logits of the evaluation graph, from the checkpoint.

    It is for the smallest input, unless that has other variables than the one of the training.
    """
    with tf.Graph().as_default() as graph:
        sized = network_name in SIZED
        images = graphs.sample(network_name) if sized else smallest_input(network_name)
        logits, _ = graphs.build(network_name, images)
        with graphs.session(graph) as sess:
            tf.train.Saver().restore(sess, deployed.checkpoint)
            return sess.run([{v.op.name: v for v in tf.global_variables()}, logits])


def smallest_input(network_name):
    """Two images of the smallest size that the network takes, or texts."""
    function = nets_factory.get_network(network_name).function
    sample = graphs.sample(network_name, smallest=True)
    if not isinstance(function.inputs, Images):
        return sample
    defaults = {p.name: p.default for p in inspect.signature(function).parameters.values()}
    side = function.inputs.smallest_for(defaults)
    batch, *frames, _, _, channels = sample.shape.as_list()
    return tf.constant(reference.images([batch, *frames, side, side, channels]))


def test_checkpoint_restores_into_the_evaluation_graph(network_name, evaluated, deployed):
    """The evaluation graph finds all of its variables in the checkpoint, and runs with them."""
    restored, logits = evaluated
    for name, value in restored.items():
        np.testing.assert_array_equal(value, deployed.variables[name])
    assert np.isfinite(logits).all()


def test_smallest_input(network_name, evaluated):
    """Images of the smallest size are enough for logits."""
    _, logits = evaluated
    if network_name in SIZED:
        logits, _ = graphs.build(network_name, smallest_input(network_name))
    assert logits.shape == (2, 10)


@pytest.mark.parametrize(("network", "twin"), TWINS.items(), ids=list(TWINS))
def test_smallest_input_of_twins(network, twin):
    """The same code takes images as small."""
    assert smallest_input(network).shape == smallest_input(twin).shape
