"""MNIST on parameter servers and workers: asynchronous training by several processes.

    python -m model_deploy.launch --num_workers=2 --num_ps=1 -- \
        python examples/mnist_distributed.py --train_dir=mnist_run

starts three processes on this machine.  On several machines, start one process for each host of
`--ps_hosts` and `--worker_hosts`, with its `--job_name` and its `--task_id`.

The parameter servers hold the variables.  Each worker takes batches of its own, computes
gradients and updates the variables, without waiting for the others.  Worker 0, the chief, also
initializes the variables and writes checkpoints and summaries.

`--data_dir` is a folder with the files of MNIST; without it the images are scikit-learn's digits.
"""

import dataclasses
import math
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from train_image_classifier import prepare_tensorflow, without_tensorflow_notices

with without_tensorflow_notices():
    import tensorflow.compat.v1 as tf

    from model_deploy import DeployedModel, DeploymentConfig, deploy, inputs, training
    from model_deploy import cluster as cluster_lib
    from model_deploy.command_line import run_command
    from model_deploy.options import option
    from nets import nets_factory

LOG_STEPS = 100  # local steps from one line to the next
SAVE_SECS = 60  # from one checkpoint, with summaries, to the next


@dataclasses.dataclass(frozen=True)
class MnistOptions(cluster_lib.ClusterOptions):
    """The settings of a run, beside those of the cluster; each is a flag."""

    train_dir: str = option("mnist_run", "folder of the chief's checkpoints and summaries")
    data_dir: str | None = option(None, "folder with MNIST; default: digits, without files")
    batch_size: int = option(32, "images per worker and step", minimum=1)
    max_steps: int = option(2000, "global step at which all workers end", minimum=1)
    learning_rate: float = option(0.05, "learning rate at the start", above=0)
    epochs_per_decay: float = option(10.0, "epochs after which it falls by 5%", above=0)
    weight_decay: float = option(0.0005, "weight of the L2 loss", minimum=0)


def run_task(options: MnistOptions) -> None:
    """Does the part of this process."""
    cluster, note = cluster_lib.resolve(options, os.environ)
    if cluster is None:
        raise ValueError(f"worker_hosts must be given, or TF_CONFIG, got {options.worker_hosts!r}")
    print(note)
    config = cluster_lib.session_config(cluster)  # who sees whom
    server = cluster_lib.start_server(cluster, config)
    if cluster.job_name == "ps":
        cluster_lib.serve_until_done(server, cluster, config, start_timeout=options.start_timeout)
        return
    cluster_lib.wait_for_tasks(cluster_lib.tasks_needed(cluster), options.start_timeout)
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        model = build(options, cluster)
        with tf.control_dependencies([model.train_op]):
            step = tf.train.get_global_step().read_value()  # after the update
        end_ops = cluster_lib.build_end_ops(cluster)
        saver = tf.train.Saver()
        with open_session(options, cluster, server, config, saver) as session:
            run_steps(session, model, step, options, saver if cluster.is_chief else None)
            cluster_lib.signal_done(session, end_ops, cluster)
    if cluster.is_chief:
        found = training.evaluate(predict, lambda: test_batches(options), options.train_dir)
        print(f"test accuracy at step {found.global_step}: {found.accuracy:.4f}")


def build(options: MnistOptions, cluster: cluster_lib.Cluster) -> DeployedModel:
    """Builds this worker's graph: variables on the parameter servers, the rest on the worker."""
    config = DeploymentConfig(
        clone_on_cpu=not tf.config.list_physical_devices("GPU"),
        replica_id=cluster.task_id,
        num_replicas=len(cluster.workers),
        num_ps_tasks=len(cluster.ps),
    )
    dataset = get_dataset(options, "train")
    with tf.device(config.variables_device()):
        step = tf.train.get_or_create_global_step()
    with tf.device(config.inputs_device()), tf.device(config.variables_device()):
        batches = inputs.train_batches(
            dataset,
            preprocessing="lenet",
            batch_size=options.batch_size,
            num_shards=config.num_replicas,
            shard_index=config.replica_id,
        )
    with tf.device(config.optimizer_device()):
        # Every worker counts its steps in the global step, so that a step is one batch.
        decay_steps = math.ceil(
            options.epochs_per_decay * dataset.num_examples / options.batch_size
        )
        rate = tf.train.exponential_decay(options.learning_rate, step, decay_steps, 0.95, True)
        optimizer = tf.train.GradientDescentOptimizer(rate)

    def model_fn() -> None:
        network = nets_factory.get_network_fn("mnist_mlp", 10, options.weight_decay, True)
        batch = next(batches)
        logits, _ = network(batch["image"])
        tf.losses.sparse_softmax_cross_entropy(batch["label"], logits)

    return deploy(config, model_fn, optimizer=optimizer)


def open_session(
    options: MnistOptions, cluster: cluster_lib.Cluster, server: Any, config: Any, saver: Any
) -> Any:
    """A session on this worker's server, once the variables are initialized or restored."""
    manager = tf.train.SessionManager(
        local_init_op=tf.group(tf.local_variables_initializer(), tf.tables_initializer()),
        ready_op=tf.report_uninitialized_variables(),
        ready_for_local_init_op=tf.report_uninitialized_variables(tf.global_variables()),
        recovery_wait_secs=0.2,
    )
    if not cluster.is_chief:
        return manager.wait_for_session(server.target, config, options.start_timeout)
    return manager.prepare_session(
        server.target,
        init_op=tf.global_variables_initializer(),
        saver=saver,
        checkpoint_dir=options.train_dir,
        config=config,
    )


def run_steps(
    session: Any, model: DeployedModel, step: Any, options: MnistOptions, saver: Any
) -> None:
    """Makes this worker's steps, until all workers together have reached the last one.

    Args:
      session: where to run.
      model: what `deploy` returned.
      step: the global step after an update, a scalar.
      options: the settings.
      saver: the chief's, which then also writes summaries; None in other workers.
    """
    path = os.path.join(options.train_dir, "model.ckpt")
    local_step = logged = 0
    global_step = session.run(tf.train.get_global_step())
    began = saved = time.monotonic()
    while global_step < options.max_steps:
        loss, global_step = cluster_lib.run_unless_refused(
            lambda: session.run([model.train_op, step])
        )
        local_step += 1
        now = time.monotonic()
        is_last = global_step >= options.max_steps
        if local_step % LOG_STEPS == 0 or is_last:
            secs = (now - began) / (local_step - logged)
            print(
                f"local step {local_step}, global step {global_step}, loss {loss:.4f}, "
                f"{secs:.4f} sec/batch"
            )
            began, logged = now, local_step
        if saver is not None and (is_last or now - saved > SAVE_SECS):
            saver.save(session, path, global_step)
            with tf.summary.FileWriter(options.train_dir, session.graph) as writer:
                writer.add_summary(session.run(model.summary_op), global_step)
            saved = now


def test_batches(options: MnistOptions) -> Any:
    """The test images, batch by batch."""
    return next(inputs.eval_batches(get_dataset(options, "test"), preprocessing="lenet"))


def predict(batch: Any) -> tuple[Any, Any]:
    """Logits and labels of a batch."""
    logits, _ = nets_factory.get_network_fn("mnist_mlp", 10)(batch["image"])
    return logits, batch["label"]


def get_dataset(options: MnistOptions, split: str) -> inputs.Dataset:
    """MNIST from its files, or else digits."""
    return inputs.get_dataset("mnist" if options.data_dir else "digits", split, options.data_dir)


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns its exit code."""
    prepare_tensorflow()
    return run_command(argv, MnistOptions, run_task, __doc__)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
