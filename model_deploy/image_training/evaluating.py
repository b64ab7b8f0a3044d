"""`evaluate`: evaluates one checkpoint, or each one as it appears, and writes the results."""

import dataclasses
import os
from collections.abc import Iterable, Iterator

import tensorflow.compat.v1 as tf

from model_deploy import file_systems, inputs, training
from model_deploy.commands import named_as
from model_deploy.image_training.eval_options import EvalOptions
from model_deploy.image_training.networks import Networks


def evaluate(options: EvalOptions, networks: Networks) -> training.Evaluation:
    """Evaluates the checkpoints that the options name; writes and prints the results.

    Args:
      options: the options.
      networks: the networks that `options.model_name` chooses from.

    Returns:
      The last evaluation.

    Raises:
      ValueError: for an invalid option, or if there is no checkpoint.
      OSError: if the results cannot be written.
    """
    checkpoints = checkpoints_of(options)
    is_watch = options.eval_interval_secs is not None
    found = evaluate_each(options, networks, checkpoints, is_watch=is_watch)
    reason = getattr(checkpoints, "reason", "")
    if found is None:
        raise ValueError(f"at least one checkpoint must appear, got none: {reason}")
    if reason:
        print(f"stopped: {reason}")
    return found


def evaluate_each(
    options: EvalOptions, networks: Networks, checkpoints: Iterable[str], *, is_watch: bool
) -> training.Evaluation | None:
    """Evaluates checkpoints, writes and prints the results; returns the last evaluation, if any."""
    dataset = split_of(options)
    eval_dir = options.eval_dir or default_eval_dir(options, dataset.split)
    if options.eval_image_size is not None:
        options = dataclasses.replace(options, train_image_size=options.eval_image_size)
    classifier = training.Classifier.of(options, dataset, networks.get_network_fn)
    found = None
    with named_as(train_image_size=options.size_flag):
        built = build_evaluator(options, classifier, dataset)
    with (
        built as evaluator,
        build_writer(options, dataset, eval_dir) as writer,
    ):
        for found in evaluations(evaluator, checkpoints, is_watch=is_watch):
            writer.write(found)
            print(f"{line_of(found, dataset.split)}; results in {eval_dir}", flush=True)
    return found


def checkpoints_of(options: EvalOptions) -> Iterable[str]:
    """Returns the checkpoint to evaluate, or a watch that yields checkpoints as they appear.

    Raises:
      ValueError: if there is no checkpoint, or no folder to watch.
    """
    if options.eval_interval_secs is None:
        with named_as(checkpoint_path=options.source_flag):
            training.find_checkpoint(options.source)  # there is one
            return [options.source]  # if the newest one cannot be read, the one before it
    if not file_systems.is_folder(options.source):
        raise ValueError(
            f"{options.source_flag} must be a folder with eval_interval_secs="
            f"{options.eval_interval_secs:g}, got {options.source}"
        )
    return training.CheckpointWatch(
        options.source,
        options.eval_interval_secs,
        timeout_secs=options.eval_timeout_secs,
        last_step=options.max_number_of_steps,
    )


def split_of(options: EvalOptions) -> inputs.Dataset:
    """Returns the split to evaluate on."""
    if options.dataset_split_name is None:
        return training.get_evaluation_dataset(options)
    return training.get_dataset(options, options.dataset_split_name)


def default_eval_dir(options: EvalOptions, split: str) -> str:
    """Returns `eval_<split>` in the train_dir, or else in the folder of the checkpoint."""
    folder = options.train_dir or options.checkpoint_path or ""
    if not file_systems.is_folder(folder):
        folder = os.path.dirname(folder)
    return os.path.join(folder, f"eval_{split}")


def build_writer(
    options: EvalOptions, dataset: inputs.Dataset, eval_dir: str
) -> training.EvaluationWriter:
    """Returns the writer of the results."""
    facts = {
        "model": options.model_name,
        "dataset": dataset.name,
        "split": dataset.split,
        "moving_averages": options.moving_average_decay is not None,
        "mirrored": options.eval_mirrored,
    }
    class_names = dataset.class_names[options.labels_offset :]
    return training.EvaluationWriter(eval_dir, class_names, facts)


def build_evaluator(
    options: EvalOptions, classifier: training.Classifier, dataset: inputs.Dataset
) -> training.Evaluator:
    """Returns the evaluator, on the visible GPUs or else on the CPU.

    Raises:
      ValueError: if there are fewer GPUs than clones.
    """
    num_gpus = len(tf.config.list_physical_devices("GPU"))
    on_cpu = options.clone_on_cpu or num_gpus == 0
    clones = training.DeploymentOptions(
        num_clones=options.num_clones or (1 if on_cpu else num_gpus), clone_on_cpu=on_cpu
    )
    config = training.deployment_config(clones, num_gpus)
    return classifier.evaluator(
        dataset,
        config,
        batch_size=options.batch_size,
        max_num_batches=options.max_num_batches,
        master=options.master,
    )


def evaluations(
    evaluator: training.Evaluator, checkpoints: Iterable[str], *, is_watch: bool = False
) -> Iterator[training.Evaluation]:
    """Evaluates one checkpoint after another; skips those that the run has deleted meanwhile.

    Of those that a watch yields damaged ones are skipped, too: it waits for the next.
    """
    for path in checkpoints:
        try:
            found = evaluator.evaluate(path)
        except (ValueError, tf.errors.OpError) as error:
            is_damaged = isinstance(error, training.DamagedCheckpointError)
            if file_systems.is_folder(path) or (
                training.is_checkpoint(path) and not (is_watch and is_damaged)
            ):
                raise
            wrong = str(error) if training.is_checkpoint(path) else f"{path} has been deleted"
            print(f"not evaluated: {wrong}", flush=True)
            continue
        yield found


def line_of(found: training.Evaluation, split: str) -> str:
    """Returns one line with the main scores of an evaluation."""
    return (
        f"{split} at step {found.global_step}: accuracy {found.accuracy:.4f}, "
        f"recall at 5 {found.recall_at_5:.4f}, total loss {found.total_loss:.4f} "
        f"({found.examples} images in {found.seconds:.1f} s)"
    )
