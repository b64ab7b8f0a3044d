"""MNIST on workers that come and go: all-reduce that ends with the weights of the undisturbed run.

    python -m model_deploy.launch --min_workers=1 --max_workers=4 --log_dir=elastic_logs -- \
        python examples/elastic_mnist.py --train_dir=elastic_run

starts four workers on this machine.  Kill one: the others go on, and take its share of each batch.
`kill -USR1` the launcher, and it starts one more, which joins them.

`--data_dir` is a folder with the files of MNIST; without it the images are scikit-learn's digits.
"""

import dataclasses
import sys
from collections.abc import Sequence

from model_deploy.commands import without_tensorflow_notices

with without_tensorflow_notices():
    import tensorflow.compat.v1 as tf

    from model_deploy import DeploymentConfig, deploy, elastic, inputs, training
    from model_deploy.cluster import end_process
    from model_deploy.commands import option, run_command
    from nets import nets_factory


@dataclasses.dataclass(frozen=True)
class ElasticOptions(training.LoopOptions):
    """The settings of a run, beside those of the loop; each is a flag."""

    train_dir: str = option("elastic_run", "folder of checkpoints and summaries")
    data_dir: str | None = option(None, "folder with MNIST; default: digits, without files")
    batch_size: int = option(16, "images per share and step", minimum=1)
    max_steps: int = option(2000, "step at which the run ends", minimum=1)
    learning_rate: float = option(0.05, "learning rate", above=0)
    weight_decay: float = option(0.0005, "weight of the L2 loss", minimum=0)
    log_every_n_steps: int = option(100, "steps from one line to the next", minimum=1)
    start_timeout: float = option(300.0, "seconds to wait for other workers", above=0)


def run_worker(options: ElasticOptions) -> None:
    """Trains as one worker, to the end of the run."""
    config = DeploymentConfig(clone_on_cpu=not tf.config.list_physical_devices("GPU"))
    result = elastic.train_elastic(
        lambda config: build(options, config),
        config,
        options.train_dir,
        max_steps=options.max_steps,
        start_timeout=options.start_timeout,
        **options.part(training.LoopOptions),
    )
    print(f"worker ended after step {result.global_step}, loss {result.total_loss}")


def build(options: ElasticOptions, config: DeploymentConfig) -> elastic.ElasticModel:
    """Builds inputs and model for the part that this worker has in a world."""
    tf.set_random_seed(1)
    step = tf.train.get_or_create_global_step()
    batches = inputs.train_batches(
        inputs.get_dataset("mnist" if options.data_dir else "digits", "train", options.data_dir),
        preprocessing="lenet",
        batch_size=options.batch_size,
        position=step,
        **config.input_arguments(),
    )

    def model_fn() -> None:
        network = nets_factory.get_network_fn("mnist_mlp", 10, options.weight_decay, True)
        batch = next(batches)
        logits, _ = network(batch["image"])
        tf.losses.sparse_softmax_cross_entropy(batch["label"], logits)

    optimizer = tf.train.MomentumOptimizer(options.learning_rate, 0.9)
    model = deploy(config, model_fn, optimizer=optimizer)
    images = options.batch_size * config.global_clones
    return elastic.ElasticModel(model, {"images_per_step": images})


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns its exit code."""
    return run_command(argv, ElasticOptions, run_worker, __doc__)


if __name__ == "__main__":
    end_process(main(sys.argv))
