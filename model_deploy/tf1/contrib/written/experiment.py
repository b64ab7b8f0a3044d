"""`tf.contrib.learn`: `Experiment`, an `Estimator` with its inputs; `RunConfig`; `learn_runner`.

An experiment is run by `train_and_evaluate` of Estimator, which knows what each task of a cluster
does.
"""

# ruff: noqa: PLR0917 - the order of arguments is that of TensorFlow 1
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import estimator as estimator_lib

_SCHEDULES = ("evaluate", "run_std_server", "train", "train_and_evaluate")


class ModeKeys(estimator_lib.ModeKeys):
    """Those of `tf.estimator`; `INFER` is `PREDICT`."""

    INFER = estimator_lib.ModeKeys.PREDICT


class RunConfig(estimator_lib.RunConfig):
    """A `tf.estimator.RunConfig` with settings of sessions among its arguments.

    Args:
      master: must be empty: addresses are those of `TF_CONFIG`.
      num_cores: threads of a session, and of an op; 0 for all cores.
      log_device_placement: whether sessions log the device of each op.
      gpu_memory_fraction: share of a GPU's memory that sessions take.
      tf_random_seed: seed of graphs.
      save_summary_steps: steps between summaries.
      save_checkpoints_secs: seconds between checkpoints; 600, unless steps are given.
      save_checkpoints_steps: steps between checkpoints.
      keep_checkpoint_max: how many checkpoints are kept.
      keep_checkpoint_every_n_hours: hours between checkpoints that are kept for ever.
      log_step_count_steps: steps between lines with the steps per second.
      evaluation_master: must be empty.
      model_dir: folder of the model.
      session_config: a `tf.ConfigProto` in place of one of these settings.

    Raises:
      ValueError: for an address.
    """

    def __init__(
        self,
        master: str | None = None,
        num_cores: int = 0,
        log_device_placement: bool = False,
        gpu_memory_fraction: float = 1,
        tf_random_seed: int | None = None,
        save_summary_steps: int = 100,
        save_checkpoints_secs: float | None = None,
        save_checkpoints_steps: int | None = None,
        keep_checkpoint_max: int = 5,
        keep_checkpoint_every_n_hours: float = 10000,
        log_step_count_steps: int = 100,
        evaluation_master: str = "",
        model_dir: str | None = None,
        session_config: Any = None,
    ) -> None:
        for name, value in {"master": master, "evaluation_master": evaluation_master}.items():
            if value:
                raise ValueError(f"{name} must be empty: TF_CONFIG has it, got {value!r}")
        if save_checkpoints_secs is None and save_checkpoints_steps is None:
            save_checkpoints_secs = 600
        if session_config is None:
            session_config = tf.ConfigProto(
                allow_soft_placement=True,
                log_device_placement=log_device_placement,
                inter_op_parallelism_threads=num_cores,
                intra_op_parallelism_threads=num_cores,
                gpu_options=tf.GPUOptions(per_process_gpu_memory_fraction=gpu_memory_fraction),
            )
        super().__init__(
            model_dir=model_dir,
            tf_random_seed=tf_random_seed,
            save_summary_steps=save_summary_steps,
            save_checkpoints_steps=save_checkpoints_steps,
            save_checkpoints_secs=save_checkpoints_secs,
            session_config=session_config,
            keep_checkpoint_max=keep_checkpoint_max,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            log_step_count_steps=log_step_count_steps,
        )


class Experiment:
    """What is needed to train and evaluate a model.

    Args:
      estimator: a `tf.estimator.Estimator`.
      train_input_fn: its inputs in training.
      eval_input_fn: its inputs in evaluations.
      eval_metrics: must be None: metrics are those of the estimator's `model_fn`.
      train_steps: the global step at which training ends; None for the end of the inputs.
      eval_steps: batches of an evaluation; None for the end of the inputs.
      train_monitors: hooks of training.
      eval_hooks: hooks of evaluations.
      eval_delay_secs: seconds from the start to the first evaluation of an evaluator.
      continuous_eval_throttle_secs: seconds between evaluations.
      min_eval_frequency: steps between evaluations: then each checkpoint is evaluated.
      export_strategies: must be None; `tf.estimator.EvalSpec` has exporters.

    Raises:
      ValueError: naming an argument with another value than it may have.
    """

    def __init__(
        self,
        estimator: Any,
        train_input_fn: Callable[..., Any],
        eval_input_fn: Callable[..., Any],
        eval_metrics: None = None,
        train_steps: int | None = None,
        eval_steps: int | None = 100,
        train_monitors: Sequence[Any] | None = None,
        eval_hooks: Sequence[Any] | None = None,
        eval_delay_secs: float = 120,
        continuous_eval_throttle_secs: float = 60,
        min_eval_frequency: int | None = None,
        *,
        export_strategies: None = None,
    ) -> None:
        if not isinstance(estimator, estimator_lib.Estimator):
            raise ValueError(f"estimator must be a tf.estimator.Estimator, got {estimator!r}")
        for name, value in (
            ("eval_metrics", eval_metrics),
            ("export_strategies", export_strategies),
        ):
            if value is not None:
                raise ValueError(f"{name} must be None: give it to tf.estimator, got {value!r}")
        self.estimator = estimator
        self.train_steps = train_steps
        self.eval_steps = eval_steps
        throttle_secs = 0 if min_eval_frequency else continuous_eval_throttle_secs
        self._train_spec = estimator_lib.TrainSpec(
            train_input_fn, max_steps=train_steps, hooks=train_monitors
        )
        self._eval_spec = estimator_lib.EvalSpec(
            eval_input_fn,
            steps=eval_steps,
            hooks=eval_hooks,
            start_delay_secs=eval_delay_secs,
            throttle_secs=throttle_secs,
        )

    def train(self, delay_secs: float | None = None) -> Any:
        """Trains, in a cluster as the task that this process is.

        Args:
          delay_secs: means nothing: workers wait for the chief.
        """
        del delay_secs
        if self.estimator.config.cluster_spec:
            return self.train_and_evaluate()
        spec = self._train_spec
        return self.estimator.train(spec.input_fn, hooks=spec.hooks, max_steps=spec.max_steps)

    def evaluate(self, delay_secs: float | None = None) -> Any:
        """Evaluates the newest checkpoint; returns the metrics by name.

        Args:
          delay_secs: means nothing.
        """
        del delay_secs
        spec = self._eval_spec
        return self.estimator.evaluate(spec.input_fn, steps=spec.steps, hooks=spec.hooks)

    def train_and_evaluate(self) -> Any:
        """Trains, and evaluates in between and at the end; in a cluster as the task that this is.

        Returns:
          Metrics by name of the last evaluation, and what exporters return; None in a cluster.
        """
        return estimator_lib.train_and_evaluate(self.estimator, self._train_spec, self._eval_spec)

    def run_std_server(self) -> None:
        """Is a parameter server, until the chief ends."""
        self.train_and_evaluate()


def run(
    experiment_fn: Callable[..., Experiment],
    output_dir: str | None = None,
    schedule: str | None = None,
    run_config: Any = None,
    hparams: Any = None,
) -> Any:
    """Makes an experiment and runs it: `tf.contrib.learn.learn_runner.run`.

    Args:
      experiment_fn: gets `run_config` and `hparams`, or without them `output_dir`.
      output_dir: folder of the model, in place of `run_config`.
      schedule: `train`, `evaluate`, `train_and_evaluate` or `run_std_server`; by default what the
        task of this process does.
      run_config: a `tf.estimator.RunConfig` with a `model_dir`.
      hparams: a `tf.contrib.training.HParams`, with `run_config` only.

    Returns:
      What the schedule returns.

    Raises:
      ValueError: naming an argument that is missing, or an unknown schedule.
    """
    if (output_dir is None) == (run_config is None):
        raise ValueError(
            f"one of output_dir and run_config must be given, got {output_dir!r}, {run_config!r}"
        )
    if schedule not in (None, *_SCHEDULES):
        raise ValueError(f"schedule must be one of {', '.join(_SCHEDULES)}, got {schedule!r}")
    if run_config is None:
        experiment = experiment_fn(output_dir)
    else:
        experiment = experiment_fn(run_config, hparams)
    return getattr(experiment, schedule or "train_and_evaluate")()
