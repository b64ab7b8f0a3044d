"""DCGAN: two networks that train against each other, each on several clones.

    python examples/dcgan.py --train_dir=dcgan_run --max_steps=600

The generator makes digits of noise, and the discriminator tells them from real ones.  Each has a
deployment and an optimizer of its own, in one graph: both deployments build both networks on the
same variables, and `variables_to_train` names those of one.  A step is an update of the
discriminator, then one of the generator.  At the end `samples.png` shows what the generator makes.
"""

import dataclasses
import functools
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

from model_deploy.commands import without_tensorflow_notices

with without_tensorflow_notices():
    import tensorflow.compat.v1 as tf

    from model_deploy import DeployedModel, DeploymentConfig, deploy, inputs
    from model_deploy.commands import Options, option, replaced_file, run_command
    from model_deploy.deployment import session_config
    from nets import dcgan

SIDE = 32  # height and width of the images
COLUMNS = 8  # of the picture, which has as many rows


@dataclasses.dataclass(frozen=True)
class GanOptions(Options):
    """The settings of a run; each is a flag."""

    train_dir: str = option("dcgan_run", "folder for checkpoints and samples.png")
    num_clones: int | None = option(None, "default: one for each GPU, or 2", minimum=1)
    batch_size: int = option(32, "images per clone and update", minimum=1)
    max_steps: int = option(600, "number of the last step", minimum=1)
    learning_rate: float = option(0.001, "learning rate of both", above=0)
    depth: int = option(8, "channels at the images", minimum=1)
    noise_size: int = option(32, "numbers of which an image is made", minimum=1)
    log_every_n_steps: int = option(100, "steps between lines", minimum=1)


def build(
    options: GanOptions,
    config: DeploymentConfig,
    next_images: Callable[[], Any],
    next_noise: Callable[[], Any],
    optimizers: Sequence[Any],
    *,
    is_training: bool = True,
) -> tuple[DeployedModel, DeployedModel]:
    """Builds the deployments of discriminator and generator; each clone takes batches of its own.

    Without `is_training` no batch norm uses its batch.
    """

    def generated() -> Any:
        return generate(options, next_noise(), is_training)

    def judged(images: Any) -> Any:
        return dcgan.discriminator(images, options.depth, is_training)[0]

    def add_loss(logits: Any, label: float) -> None:
        tf.losses.sigmoid_cross_entropy(tf.fill([tf.shape(logits)[0], 1], label), logits)

    def discriminator_fn() -> None:
        add_loss(judged(next_images()), 1.0)
        add_loss(judged(generated()), 0.0)

    def generator_fn() -> None:
        add_loss(judged(generated()), 1.0)  # it gains where the discriminator is wrong

    players = ((discriminator_fn, "Discriminator/"), (generator_fn, "Generator/"))
    models = []
    for (model_fn, scope), optimizer in zip(players, optimizers, strict=True):
        # The networks of the second deployment have the variables of the first one.
        with tf.variable_scope("", reuse=tf.AUTO_REUSE):
            models.append(
                deploy(
                    config,
                    model_fn,
                    optimizer=optimizer,
                    variables_to_train=functools.partial(tf.trainable_variables, scope),
                )
            )
    return models[0], models[1]


def generate(options: GanOptions, noise: Any, is_training: bool) -> Any:
    """Images [batch, SIDE, SIDE, 1] from -1 to 1, of noise [batch, noise_size]."""
    logits, _ = dcgan.generator(noise, options.depth, SIDE, 1, is_training)
    return tf.tanh(logits)


def picture(options: GanOptions) -> Any:
    """A PNG of samples side by side, of the same noise each time: a string scalar."""
    noise = tf.random.stateless_normal([COLUMNS**2, options.noise_size], seed=[1, 2])
    with tf.variable_scope("", reuse=True):
        samples = generate(options, noise, is_training=True)  # statistics of these
    rows = tf.reshape(samples, [COLUMNS, COLUMNS, SIDE, SIDE])
    canvas = tf.reshape(tf.transpose(rows, [0, 2, 1, 3]), [COLUMNS * SIDE, COLUMNS * SIDE, 1])
    return tf.io.encode_png(tf.saturate_cast(127.5 * (canvas + 1), tf.uint8))


def train(options: GanOptions, models: Sequence[DeployedModel], png: Any, proto: Any) -> None:
    """Updates discriminator and generator in turn, and writes the picture."""
    updates = [model.train_op for model in models]
    steps = tf.train.get_global_step() // len(updates)  # it counts the updates of both
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=options.train_dir, config=proto, log_step_count_steps=None
    ) as session:
        for step in range(session.run(steps) + 1, options.max_steps + 1):
            losses = [session.run(update) for update in updates]
            if step % options.log_every_n_steps == 0 or step == options.max_steps:
                print(
                    f"step {step}/{options.max_steps}"
                    f"  discriminator loss {losses[0]:.4f}  generator loss {losses[1]:.4f}"
                )
        content = session.run(png)
    path = pathlib.Path(options.train_dir) / "samples.png"
    with replaced_file(path, "wb") as file:
        file.write(content)
    print(f"samples at step {options.max_steps}: {path}")


def run(options: GanOptions) -> None:
    """Trains from the newest checkpoint on, and draws samples."""
    num_gpus = len(tf.config.list_physical_devices("GPU"))
    num_clones = options.num_clones or num_gpus or 2
    config = DeploymentConfig(num_clones, clone_on_cpu=num_gpus < num_clones)
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        with tf.device(config.inputs_device()):
            batches = inputs.train_batches(
                inputs.get_dataset("digits", "train"),
                preprocessing="lenet",
                image_size=SIDE,
                batch_size=options.batch_size,
                num_clones=num_clones,
            )
        # The first momentum is that of section 4 of the paper.
        optimizers = [tf.train.AdamOptimizer(options.learning_rate, beta1=0.5) for _ in range(2)]
        models = build(
            options,
            config,
            lambda: next(batches)["image"],
            lambda: tf.random.normal([options.batch_size, options.noise_size]),
            optimizers,
        )
        train(options, models, picture(options), session_config(config))


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns its exit code."""
    return run_command(argv, GanOptions, run, __doc__)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
