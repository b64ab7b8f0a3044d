"""Classifiers of `nets`, deployed on GPUs, in a process of their own."""

import contextlib
import io
import tempfile
from typing import Any

import tensorflow as tf

import model_deploy
from benchmarks.child import Requests
from benchmarks.gpu_work import LEARNING_RATE, NUM_CLASSES, GpuWork, measure, rates
from benchmarks.loops import Clock
from model_deploy import gpus, inputs, training
from model_deploy.hooks import session_hooks
from nets import nets_factory

tf1 = tf.compat.v1


def serve(requests: Requests, **arguments: Any) -> None:
    """Trains what a `GpuWork` of these arguments says; answers its rate and memory."""
    work = GpuWork(**arguments)
    tf1.disable_eager_execution()
    tf1.set_random_seed(1)
    config = config_of(work)
    model = deploy(work, config)
    requests.serve(lambda: _train(work, model) if work.by_train else _bare(work, model))


def config_of(work: GpuWork) -> model_deploy.DeploymentConfig:
    """The deployment of `work`."""
    return model_deploy.DeploymentConfig(
        num_clones=work.num_clones,
        clone_on_cpu=work.on_cpu,
        precision="float32" if work.in_float32 else work.precision,
        tf32=work.precision == "tf32",
        xla=work.compiled,
        # On CPUs nothing but `all_reduce` is there to choose.
        aggregate_on=None if work.on_cpu and work.aggregate_on == "gpu" else work.aggregate_on,
    )


def deploy(work: GpuWork, config: model_deploy.DeploymentConfig) -> model_deploy.DeployedModel:
    """The model in the default graph."""
    with tf1.device(config.optimizer_device()):
        tf1.train.get_or_create_global_step()
    batches = None if work.data_dir is None else _photographs(work, config)
    network = nets_factory.get_network_fn(work.network, NUM_CLASSES, is_training=True)
    keywords = {"create_aux_logits": False} if work.network == "inception_v3" else {}

    def model_fn() -> None:
        if batches is None:
            images, labels = _constant(work)
        else:
            batch = next(batches)
            images, labels = batch["image"], batch["label"]
        logits, _ = network(images, **keywords)
        tf1.losses.sparse_softmax_cross_entropy(labels, logits)

    optimizer = tf1.train.GradientDescentOptimizer(LEARNING_RATE)
    return model_deploy.deploy(config, model_fn, optimizer=optimizer)


def _constant(work: GpuWork) -> tuple[Any, Any]:
    """A batch that each clone computes anew: it costs nothing to bring to a GPU."""
    shape = [work.batch_size, work.image_size, work.image_size, 3]
    # An op of a seed would cost time, and a constant be folded with what is made of it.
    number = tf1.train.get_global_step().read_value()
    images = tf.fill(shape, tf.cast(number % 2, tf.float32) + 0.5)
    return images, tf.zeros([work.batch_size], tf.int64)


def _photographs(work: GpuWork, config: model_deploy.DeploymentConfig) -> Any:
    return inputs.train_batches(
        inputs.get_dataset("tfrecord", "train", work.data_dir),
        preprocessing="inception",
        image_size=work.image_size,
        batch_size=work.batch_size,
        position=tf1.train.get_global_step(),
        **config.input_arguments(),
    )


def _bare(work: GpuWork, model: Any) -> dict[str, float]:
    """Steps in a bare loop over the train op, whose value is the loss."""
    assert model.config is not None
    gpus.use_tf32(model.config)
    proto = training.session_config(model.config)
    with tf1.Session(config=proto) as session:
        session.run(tf1.global_variables_initializer())
        session.run(tf1.local_variables_initializer())  # copies, which start from these
        session.run(tf1.tables_initializer())
        for hook in session_hooks():  # of all-reduce, which starts all clones alike
            hook.after_create_session(session, None)
        return measure(session.make_callable(model.train_op), work)


def _train(work: GpuWork, model: Any) -> dict[str, float]:
    clock = Clock(work.warm_up, work.steps)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
        model_deploy.train(
            model,
            folder,
            max_steps=clock.num_steps,
            images_per_step=work.images_per_step,
            hooks=[clock],
        )
    return rates(clock.steps_per_sec, work)
