"""DCGAN, pix2pix and CycleGAN: layers, variables, upsampling, bad input, gradients, clones."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, create_clones, optimize_clones, slim
from nets import cyclegan, dcgan, pix2pix

BLOCKS = [pix2pix.Block(4, 0.0), pix2pix.Block(6, 0.5), pix2pix.Block(8, 0.0)]


def noise(*shape):
    """Numbers between -1 and 1, the same ones each time."""
    return tf.constant(np.random.RandomState(1).uniform(-1, 1, shape), tf.float32)


def pix2pix_network(function, *args, **keywords):
    """Builds one of pix2pix's networks in its arg scope."""
    with slim.arg_scope(pix2pix.pix2pix_arg_scope()):
        return function(*args, **keywords)


# Network -> how it is built, shapes of its end points, number of trained parameters: for a
# convolution kernel * kernel * from * to, and a bias, or `beta`, or `gamma` and `beta`.
NETWORKS = {
    "discriminator": (
        lambda: dcgan.discriminator(noise(2, 8, 8, 3), depth=4),
        {
            "conv1": [2, 4, 4, 4],
            "conv2": [2, 2, 2, 8],
            "conv3": [2, 1, 1, 16],
            "logits": [2, 1],
        },
        (16 * 3 * 4 + 4) + (16 * 4 * 8 + 8) + (16 * 8 * 16 + 16) + (16 + 1),
    ),
    "generator": (
        lambda: dcgan.generator(noise(2, 5), depth=4, final_size=16, num_outputs=1),
        {
            "deconv1": [2, 4, 4, 16],
            "deconv2": [2, 8, 8, 8],
            "deconv3": [2, 16, 16, 4],
            "logits": [2, 16, 16, 1],
        },
        (16 * 5 * 16 + 16) + (16 * 16 * 8 + 8) + (16 * 8 * 4 + 4) + (4 + 1),
    ),
    "pix2pix_generator": (
        lambda: pix2pix_network(pix2pix.pix2pix_generator, noise(2, 16, 8, 3), 1, BLOCKS),
        {
            "encoder0": [2, 8, 4, 4],
            "encoder1": [2, 4, 2, 6],
            "encoder2": [2, 2, 1, 8],
            "decoder0": [2, 4, 2, 8],
            "decoder1": [2, 8, 4, 6],
            "decoder2": [2, 16, 8, 4],
            "logits": [2, 16, 8, 1],
            "predictions": [2, 16, 8, 1],
        },
        (16 * 3 * 4 + 4)
        + (16 * 4 * 6 + 12)
        + (16 * 6 * 8 + 8)
        + (16 * 8 * 8 + 16)
        + (16 * (8 + 6) * 6 + 12)
        + (16 * (6 + 4) * 4 + 8)
        + (16 * 4 + 1),
    ),
    "pix2pix_discriminator": (
        lambda: pix2pix_network(pix2pix.pix2pix_discriminator, noise(2, 16, 16, 3), [4, 6, 8]),
        {
            # Of 16 + 4 rows stay (20 - 4) / 2 + 1 = 9, of 13 stay 5, and with stride 1 6 and 7.
            "conv0": [2, 9, 9, 4],
            "conv1": [2, 5, 5, 6],
            "conv2": [2, 6, 6, 8],
            "logits": [2, 7, 7, 1],
            "predictions": [2, 7, 7, 1],
        },
        (16 * 3 * 4 + 4) + (16 * 4 * 6 + 12) + (16 * 6 * 8 + 16) + (16 * 8 + 1),
    ),
    "cyclegan": (
        lambda: cyclegan.cyclegan_generator_resnet(
            noise(2, 16, 8, 3), num_resnet_blocks=2, num_filters=4
        ),
        {
            "encoder_0": [2, 16, 8, 4],
            "encoder_1": [2, 8, 4, 8],
            "encoder_2": [2, 4, 2, 16],
            "resnet_block_0": [2, 4, 2, 16],
            "resnet_block_1": [2, 4, 2, 16],
            "decoder1": [2, 8, 4, 8],
            "decoder2": [2, 16, 8, 4],
            "logits": [2, 16, 8, 3],
            "predictions": [2, 16, 8, 3],
        },
        (49 * 3 * 4 + 8)
        + (9 * 4 * 8 + 16)
        + (9 * 8 * 16 + 32)
        + 4 * (9 * 16 * 16 + 32)
        + (9 * 16 * 8 + 8)
        + (9 * 8 * 4 + 4)
        + (49 * 4 * 3 + 3),
    ),
}


# Some variables, by TF-Slim's names.
VARIABLES = {
    "discriminator": {"Discriminator/conv1/biases": [4], "Discriminator/Conv/biases": [1]},
    "generator": {"Generator/deconv1/BatchNorm/beta": [16], "Generator/logits/biases": [1]},
    "pix2pix_generator": {
        "encoder/Conv/biases": [4],
        "encoder/Conv_1/InstanceNorm/gamma": [6],
        "decoder/Conv_2/weights": [4, 4, 10, 4],
        "output/Conv/biases": [1],
    },
    "pix2pix_discriminator": {"conv1/InstanceNorm/beta": [6], "conv3/biases": [1]},
    "cyclegan": {
        "input/Conv/weights": [7, 7, 3, 4],
        "encoder/Conv_1/InstanceNorm/beta": [16],
        "residual_blocks/block_1/Conv_1/weights": [3, 3, 16, 16],
        "decoder/decoder1/upconv/Conv2d_transpose/biases": [8],
        "output/Conv/biases": [3],
    },
}


@pytest.mark.parametrize("name", NETWORKS)
def test_layers(name):
    """End points in order with their shapes, trained parameters, some by TF-Slim's names, and
    gradients that reach all.
    """
    build, shapes, parameters = NETWORKS[name]
    out, end_points = build()
    assert {key: point.shape.as_list() for key, point in end_points.items()} == shapes
    assert list(end_points) == list(shapes)
    trained = tf.trainable_variables()
    assert sum(v.shape.num_elements() for v in trained) == parameters
    found = {v.op.name: v.shape.as_list() for v in trained}
    assert {key: found.get(key) for key in VARIABLES[name]} == VARIABLES[name]
    gradients = tf.gradients(tf.reduce_sum(tf.square(out - 0.5)), trained)
    assert None not in gradients
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert all(np.isfinite(each).all() for each in session.run(gradients))


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("function", "methods"),
    [
        (pix2pix.upsample, ["nn_upsample_conv", "conv2d_transpose"]),
        (
            cyclegan.cyclegan_upsample,
            ["nn_upsample_conv", "bilinear_upsample_conv", "conv2d_transpose"],
        ),
    ],
)
def test_upsampling(function, methods):
    """Each method doubles height and width; another one is refused."""
    for method in methods:
        with tf.Graph().as_default(), tf.Session() as session:
            made = function(noise(1, 4, 6, 2), 3, [2, 2], method=method)
            session.run(tf.global_variables_initializer())
            assert session.run(made).shape == (1, 8, 12, 3)
    with pytest.raises(ValueError, match=r"method must be one of .*, got 'cubic'"):
        function(noise(1, 4, 6, 2), 3, [2, 2], method="cubic")


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: dcgan.discriminator(noise(1, 12, 12, 3)), "power of 2, got 12"),
        (lambda: dcgan.discriminator(noise(1, 8, 16, 3)), "equal to its width, got shape"),
        (lambda: dcgan.discriminator(noise(8, 8, 3)), "inputs must have rank 4"),
        (lambda: dcgan.generator(noise(1, 4), final_size=12), "final_size must be a power of 2"),
        (lambda: dcgan.generator(noise(1, 4), final_size=4), "at least 8, got 4"),
        (lambda: dcgan.generator(noise(1, 4, 1)), "inputs must have rank 2"),
        (lambda: pix2pix.pix2pix_generator(noise(1, 64, 64, 3), 3), "multiples of 128, got shape"),
        (lambda: pix2pix.pix2pix_generator(noise(8, 8, 3), 3), "net must have rank 4"),
        (lambda: pix2pix.pix2pix_discriminator(noise(8, 8, 3), [4]), "net must have rank 4"),
        (lambda: pix2pix.pix2pix_discriminator(noise(1, 8, 8, 3), []), "at least 1 number"),
        (lambda: cyclegan.cyclegan_generator_resnet(noise(1, 8, 6, 3)), "multiples of 4"),
        (lambda: cyclegan.cyclegan_generator_resnet(noise(8, 8, 3)), "images must have rank 4"),
        (
            lambda: cyclegan.cyclegan_generator_resnet(tf.placeholder(tf.float32, [1, 8, 8, None])),
            "known number of channels",
        ),
    ],
)
def test_bad_input(build, message):
    """Images, noise or sizes that a network cannot take are named."""
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.slow
def test_clones():
    """Two clones on half batches have the gradients of one clone on the whole batch."""

    def gradients(num_clones):
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(1)
            parts = iter(tf.split(noise(4, 16, 16, 3), num_clones))

            def model_fn():
                made, _ = cyclegan.cyclegan_generator_resnet(
                    next(parts), num_resnet_blocks=1, num_filters=2
                )
                tf.losses.mean_squared_error(tf.ones_like(made), made)

            config = DeploymentConfig(num_clones=num_clones, clone_on_cpu=True)
            clones = create_clones(config, model_fn)
            _, pairs = optimize_clones(clones, tf.train.GradientDescentOptimizer(0.1))
            session.run(tf.global_variables_initializer())
            rng = np.random.RandomState(2)
            for v in tf.trainable_variables():
                v.load(rng.normal(0, 0.2, v.shape.as_list()), session)
            return session.run({v.op.name: g for g, v in pairs})

    one, two = gradients(1), gradients(2)
    assert one.keys() == two.keys()
    assert one
    for key in one:
        np.testing.assert_allclose(two[key], one[key], rtol=1e-3, atol=1e-6, err_msg=key)
