"""Discriminator and generator train in turn, on clones, and the picture is written."""

import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from examples import dcgan as script
from model_deploy import DeploymentConfig
from model_deploy.deployment import session_config

LINE = r"step {}/3  discriminator loss [\d.]+  generator loss [\d.]+\n"


@pytest.mark.slow
@pytest.mark.one_mode
def test_a_run(tmp_path, capsys):
    """Both losses are shown, the picture has 8 x 8 images, and a run goes on where it ended."""
    flags = {"train_dir": tmp_path, "batch_size": 4, "depth": 2, "num_clones": 2}
    flags |= {"max_steps": 3, "log_every_n_steps": 2}
    words = ["dcgan", *(f"--{name}={value}" for name, value in flags.items())]
    last = rf"samples at step 3: {re.escape(str(tmp_path / 'samples.png'))}\n"
    for steps in ((2, 3), ()):
        assert script.main(words) == 0
        lines = "".join(LINE.format(step) for step in steps)
        assert re.fullmatch(lines + last, capsys.readouterr().out)
    assert (tmp_path / "model.ckpt-6.index").exists()  # updates of both
    with tf.Session() as session:
        image = session.run(tf.io.decode_png((tmp_path / "samples.png").read_bytes()))
    assert image.shape == (256, 256, 1)
    assert image.std() > 0


def updated(num_clones):
    """The trained variables at the start, and after an update of each player, of 4 images."""
    rng = np.random.RandomState(1)
    whole_images = rng.uniform(-1, 1, [4, script.SIDE, script.SIDE, 1]).astype(np.float32)
    whole_noise = rng.normal(size=[2, 4, 5]).astype(np.float32)  # for each player
    images = iter(np.split(whole_images, num_clones))
    noise = (part for player in whole_noise for part in np.split(player, num_clones))
    config = DeploymentConfig(num_clones, clone_on_cpu=True)
    with tf.Graph().as_default(), tf.Session(config=session_config(config)) as session:
        models = script.build(
            script.GanOptions(depth=2, noise_size=5),
            config,
            lambda: tf.constant(next(images)),
            lambda: tf.constant(next(noise)),
            [tf.train.GradientDescentOptimizer(0.1) for _ in range(2)],
            is_training=False,
        )
        session.run(tf.global_variables_initializer())
        trained = {variable.op.name: variable for variable in tf.trainable_variables()}
        for variable in trained.values():
            variable.load(rng.normal(0, 0.2, variable.shape.as_list()), session)
        states = [session.run(trained)]
        for model in models:
            session.run(model.train_op)
            states.append(session.run(trained))
    return states


@pytest.mark.slow
def test_two_clones_are_one_with_the_whole_batch():
    """Without batch statistics both players' updates are the same; each changes its own network."""
    one, two = updated(1), updated(2)
    for number, player in ((1, "Discriminator/"), (2, "Generator/")):
        for name, before in one[number - 1].items():
            after = one[number][name]
            assert np.array_equal(before, after) != name.startswith(player), name
            np.testing.assert_allclose(
                two[number][name] - before, after - before, rtol=1e-3, atol=1e-6, err_msg=name
            )
