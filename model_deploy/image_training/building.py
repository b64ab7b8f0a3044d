"""Builds the graph of a run: batches, optimizer and clones."""

import functools
from collections.abc import Iterator
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import inputs, training
from model_deploy.deployment import DeployedModel, batches_taken, deploy
from model_deploy.image_training.run import PlannedRun
from model_deploy.randomness import random_by_step
from model_deploy.ways import way_for


def build(run: PlannedRun, classifier: training.Classifier) -> tuple[DeployedModel, dict[str, Any]]:
    """Builds inputs, optimizer and clones in the default graph.

    Returns:
      The model, and the arguments by which `model_deploy.train` shows its steps.
    """
    options = run.options
    with tf.device(run.config.variables_device()):
        global_step = tf.train.get_or_create_global_step()
    batches, wait_secs = build_inputs(run, classifier)
    with tf.device(run.config.optimizer_device()):
        rate = training.build_learning_rate(
            options,
            global_step,
            run.steps_per_epoch,
            max_steps=run.max_steps,
            update_batch_size=run.update_batch_size,
        )
        optimizer = training.build_optimizer(rate, options)
        summaries = [tf.summary.scalar("learning_rate", rate, collections=[])]
    update_ops = []
    if options.moving_average_decay is not None:
        update_ops = [training.moving_average_update(options.moving_average_decay, global_step)]
    model = deploy(
        run.config,
        random_by_step(
            functools.partial(classifier.add_losses, shows_accuracy=run.config.is_alone)
        ),
        [batches],
        optimizer=optimizer,
        update_ops=update_ops,
        summaries=summaries,
        clip_norm=options.clip_norm,
        variables_to_train=lambda: training.variables_to_train(options.trainable_scopes),
    )
    return model, {
        "learning_rate": rate,
        "wait_secs": wait_secs,
        "images_per_step": run.images_per_step,
    }


def build_inputs(run: PlannedRun, classifier: training.Classifier) -> tuple[Iterator[Any], Any]:
    """Builds the batches of all clones; one pipeline per clone if they are asynchronous.

    Returns:
      An iterator over batches, and the seconds that a step has waited for them: a scalar tensor, or
      one for each asynchronous clone.
    """
    options = run.options
    parts = [run.config.input_arguments()]
    if options.asynchronous:
        parts = run.config.input_arguments_of_clones()
    # Batches follow the global step if all replicas make the same steps; else each counts its own.
    is_alone = run.config.num_replicas == 1 and not run.config.asynchronous
    follow_step = is_alone or way_for(run.config).is_synchronous
    augmentation = inputs.Augmentation(**options.part(inputs.Augmentation))
    pipelines = [
        classifier.train_batches(
            run.dataset,
            batch_size=run.batch_size,
            seed=options.seed,
            shuffle_block=options.shuffle_block,
            fast_decode=options.fast_decode,
            augmentation=augmentation,
            position=batches_taken(run.config) if follow_step else None,
            **arguments,
        )
        for arguments in parts
    ]
    if not options.asynchronous:
        return pipelines[0], pipelines[0].wait_secs
    counts = [arguments["num_clones"] for arguments in parts]
    batches = (
        next(each) for each, count in zip(pipelines, counts, strict=True) for _ in range(count)
    )
    return batches, [each.wait_secs for each in pipelines]
