"""`train`: a training run of one process, or one task of a cluster, from start to final score."""

import tensorflow.compat.v1 as tf

from model_deploy import training
from model_deploy.image_training.banner import announce
from model_deploy.image_training.building import build
from model_deploy.image_training.held_out import Evaluations, evaluate_newest, evaluations_of
from model_deploy.image_training.networks import Networks
from model_deploy.image_training.noting import note_settings
from model_deploy.image_training.run import PlannedRun, prepare
from model_deploy.image_training.train_options import TrainOptions
from model_deploy.image_training.weights import export_keras, restore_fn
from model_deploy.trackers import check_names, send_model


def train(
    options: TrainOptions, networks: Networks, place: training.Place | None = None
) -> float | None:
    """Trains an image classifier and evaluates it; prints progress and results.

    Args:
      options: the options.
      networks: the networks that `options.model_name` chooses from.
      place: the place of this process in its cluster; by default it trains alone.

    Returns:
      The accuracy on the test split, or else the validation split; None without such a split, and
      in workers other than the chief.

    Raises:
      ValueError: for a setting that breaks a rule.
      OSError: if the train_dir cannot be written.
    """
    run, classifier = prepare(options, networks, checks_start=options.task == 0)
    with evaluations_of(run, classifier) as evaluations:
        place = place or training.Place(options.master)
        result = train_model(run, networks, classifier, evaluations, place)
        if result.total_loss is None:
            print(f"nothing left to train: {options.train_dir} is at step {result.global_step}")
        return None if evaluations is None else evaluate_newest(run, evaluations)


def train_model(
    run: PlannedRun,
    networks: Networks,
    classifier: training.Classifier,
    evaluations: Evaluations | None,
    place: training.Place,
) -> training.TrainResult:
    """Builds the graph and makes all steps."""
    options = run.options
    is_chief = options.task == 0
    with tf.Graph().as_default():
        tf.set_random_seed(options.seed)
        model, shown = build(run, classifier)
        if is_chief:
            training.fitting_checkpoint(options.train_dir, options.resume)
        announce(run, model)
        init_fn = restore_fn(options, networks) if is_chief else None
        if is_chief:
            note_settings(run)
        result = training.train(
            model,
            options.train_dir,
            max_steps=run.max_steps,
            is_chief=is_chief,
            place=place,
            init_fn=init_fn,
            evaluate=None if evaluations is None else evaluations.scores,
            **shown,
            **options.part(training.LoopOptions),
        )
        if is_chief and options.export_keras is not None:
            export_keras(options, networks, options.export_keras)
            if options.tracker is not None:
                send_model(options.train_dir, check_names(options.tracker), options.export_keras)
        return result
