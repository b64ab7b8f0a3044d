"""`follow`: the evaluator of a cluster, which evaluates the checkpoints of the run as they appear.

It knows the others by the folder of the run alone, so it may be started and lost at any time, and
so may they.
"""

import dataclasses
import os
import time

from model_deploy import file_systems, training
from model_deploy.commands import OPTIONS_FILE
from model_deploy.evaluation import has_evaluation
from model_deploy.image_training.eval_options import EvalOptions
from model_deploy.image_training.evaluating import evaluate_each, split_of
from model_deploy.image_training.networks import Networks
from model_deploy.image_training.train_options import TrainOptions

# Between two looks at the folder.
LOOK_SECS = 1.0


def follow(options: TrainOptions, networks: Networks) -> float | None:
    """Evaluates each checkpoint of the run in the train_dir, until the run has ended.

    It waits for a chief that is away for as long as that takes.  What an evaluator before it has
    evaluated it leaves out.

    Args:
      options: the settings of the run, as its workers get them.
      networks: those to choose from.

    Returns:
      The accuracy at the last checkpoint; None if there was none left to evaluate.

    Raises:
      ValueError: for a setting that breaks a rule, or a dataset without another split.
      TimeoutError: if no run is in the train_dir within `start_timeout`.
      OSError: if the results cannot be written.
    """
    if options.all_reduce:
        print("all_reduce is ignored: it is for workers, and this is the evaluator", flush=True)
    wait_for_run(options.train_dir, options.start_timeout)
    own = options_of_evaluator(options)
    split = split_of(own).split
    own = dataclasses.replace(own, eval_dir=os.path.join(options.train_dir, f"eval_{split}"))
    watch = training.CheckpointWatch(
        options.train_dir,
        LOOK_SECS,
        last_step=options.max_number_of_steps,
        start_secs=options.start_timeout,
    )
    fresh = (path for path in watch if not has_evaluation(own.eval_dir or "", path))
    found = evaluate_each(own, networks, fresh, is_watch=True)
    print(f"stopped: {watch.reason}", flush=True)
    return None if found is None else found.accuracy


def options_of_evaluator(options: TrainOptions) -> EvalOptions:
    """The settings of the evaluation of a run: the network, the dataset, the folder."""
    shared = {field.name for field in dataclasses.fields(EvalOptions)}
    shared &= {field.name for field in dataclasses.fields(options)}
    shared -= set(EvalOptions.not_reused) - {"clone_on_cpu"}  # the process is the same one here
    return EvalOptions(**{name: getattr(options, name) for name in shared})


def wait_for_run(train_dir: str, timeout: float) -> None:
    """Returns when a chief has left its settings in the folder.

    Raises:
      TimeoutError: if none has in `timeout` seconds.
    """
    path = os.path.join(train_dir, OPTIONS_FILE)
    end = time.monotonic() + timeout
    if not file_systems.is_file(path):
        print(f"waiting for the chief to write {path}", flush=True)
    while not file_systems.is_file(path):
        if time.monotonic() >= end:
            raise TimeoutError(
                f"start_timeout must be long enough for the chief to write {path}, got "
                f"{timeout:g} s; the evaluator and the chief need one train_dir"
            )
        time.sleep(LOOK_SECS)
