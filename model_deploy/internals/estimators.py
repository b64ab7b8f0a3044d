"""The names of `tensorflow_estimator` 2.15 that are not public; it was the last release."""

import copy
import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any

# `TF_CONFIG` as a dict.
_Settings = Mapping[str, Any]


# Attribute of a `RunConfig`: the strategy that was taken from it.
_TAKEN = "_strategy_that_was_taken"


class EstimatorState:
    """What an `Estimator` keeps of its settings.

    Args:
      estimator: the `Estimator`.
    """

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator

    @property
    def model_fn(self) -> Any:
        """The `model_fn`, which takes features and, as its signature says, more."""
        return self._estimator._model_fn

    @model_fn.setter
    def model_fn(self, model_fn: Any) -> None:
        self._estimator._model_fn = model_fn

    def model_fn_of_clones(self) -> Any:
        """The `model_fn`, whose calls in one training all find what the first of them finds.

        Otherwise a `TPUEstimator` takes all but the first for those of an export.  What it notes is
        there until `forget_inputs`.
        """
        estimator, model_fn = self._estimator, self.model_fn
        if not self._notes_inputs:
            return model_fn

        @functools.wraps(model_fn)
        def called_again(*args: Any, **kwargs: Any) -> Any:
            noted = estimator._is_input_fn_invoked
            spec = model_fn(*args, **kwargs)
            if kwargs["mode"] == "train":
                estimator._is_input_fn_invoked = noted
            return spec

        return called_again

    def forget_inputs(self) -> None:
        """Ends a training: the next call of `model_fn` without inputs is that of an export."""
        if self._notes_inputs:
            self._estimator._is_input_fn_invoked = None

    @property
    def _notes_inputs(self) -> bool:
        return hasattr(self._estimator, "_augment_model_fn")  # of `TPUEstimator`, before its notes

    @property
    def session_config(self) -> Any:
        """The `tf.ConfigProto` of its sessions, or None."""
        return self._estimator._session_config

    @session_config.setter
    def session_config(self, proto: Any) -> None:
        self._estimator._session_config = proto

    def set_device_fn(self, device_fn: Any) -> None:
        """Sets the device function of its graphs; None for none."""
        self._estimator._device_fn = device_fn

    def take_strategy(self) -> Any:
        """Its `train_distribute`; from then on it trains as without one.

        So says its `config`, too, a copy: hooks that stop early ask there for strategies.  Another
        estimator that is made with this copy, as some do within theirs, has the same strategy.
        """
        config = copy.copy(self._estimator._config)
        found = self._estimator._train_distribution or vars(config).get(_TAKEN)
        vars(config)[_TAKEN] = found
        config._train_distribute = None
        self._estimator._config = config
        self._estimator._train_distribution = None
        return found

    def set_strategy(self, strategy: Any) -> None:
        """Sets its `train_distribute`."""
        self._estimator._train_distribution = strategy
        self._estimator._config._train_distribute = strategy


def replace_training(
    kind: Any,
    after_init: Callable[[Any], None],
    around_training: Callable[[Any, Callable[[], Any]], Any],
) -> None:
    """Lets all estimators do more.  Overrides `Estimator._train_model`.

    Args:
      kind: the class `Estimator`.
      after_init: is called with each estimator once it is made.
      around_training: is called with an estimator, and with what trains it, in its place.
    """
    init, train_model = kind.__init__, kind._train_model

    @functools.wraps(init)
    def new_init(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        after_init(self)

    @functools.wraps(train_model)
    def new_train_model(self: Any, *args: Any) -> Any:
        return around_training(self, lambda: train_model(self, *args))

    kind.__init__, kind._train_model = new_init, new_train_model


def replace_tasks(
    training: Any,
    start_server: Callable[[Any], Any],
    serve: Callable[[Any], None],
    around_training: Callable[[Any, Callable[[], Any]], Any],
) -> None:
    """Lets `train_and_evaluate` start and end tasks of clusters in another way.

    The evaluator ends once it has evaluated the last step: Estimator's waits for its next turn, ten
    minutes by default, to find that there is nothing more.

    Overrides `_TrainingExecutor._start_std_server`, `_TrainingExecutor.run_ps`,
    `_TrainingExecutor._start_distributed_training` and
    `_TrainingExecutor._start_continuous_evaluation`.

    Args:
      training: the module that has it.
      start_server: is called with the estimator to start the server of a worker.
      serve: is called with the estimator to be a parameter server.
      around_training: is called with the estimator, and with what trains it, in its place.
    """
    executor = training._TrainingExecutor
    start = executor._start_distributed_training
    executor._start_std_server = lambda self, config: start_server(self.estimator)
    executor.run_ps = lambda self: serve(self.estimator)
    executor._start_distributed_training = lambda self, **settings: around_training(
        self.estimator, lambda: start(self, **settings)
    )
    evaluate = executor._start_continuous_evaluation

    def evaluate_to_the_end(self: Any) -> None:
        listener, max_steps = self._continuous_eval_listener, self._train_spec.max_steps
        goes_on = listener.after_eval
        listener.after_eval = lambda result: (
            goes_on(result) and not (max_steps and _step_of(result) >= max_steps)
        )
        evaluate(self)

    executor._start_continuous_evaluation = evaluate_to_the_end


def _step_of(result: Any) -> int:
    """The step of an evaluation; 0 where there was no new checkpoint."""
    return int((result.metrics or {}).get("global_step", 0))


def change_tf_config(kind: Any, change: Callable[[_Settings], _Settings]) -> None:
    """Lets each `RunConfig` read a changed `TF_CONFIG`.

    Overrides `RunConfig._init_distributed_setting_from_environment_var`.

    Args:
      kind: the class `RunConfig`.
      change: makes the `TF_CONFIG` to read of the one in the environment.
    """
    read = kind._init_distributed_setting_from_environment_var
    kind._init_distributed_setting_from_environment_var = lambda self, settings: read(
        self, change(settings)
    )


def read_tf_config(run_config: Any, settings: _Settings) -> None:
    """Lets a `RunConfig` with `train_distribute` read `TF_CONFIG`, as others do.

    Wraps `RunConfig._init_distributed_setting_from_environment_var` and
    `RunConfig._maybe_overwrite_session_config_for_distributed_training`; sets what says that there
    is no coordinator.
    """
    run_config._init_distributed_setting_from_environment_var(settings)
    run_config._maybe_overwrite_session_config_for_distributed_training()
    run_config._distribute_coordinator_mode = None


def old_head(kind: str, *settings: Any) -> Any:
    """A head that takes optimizers of `tf.train`, which the public classes of heads refuse.

    Wraps `head._binary_logistic_head_with_sigmoid_cross_entropy_loss`,
    `head._multi_class_head_with_softmax_cross_entropy_loss` and `head._regression_head`.

    Args:
      kind: "binary", "multi class" or "regression".
      *settings: as for `tf.estimator.BinaryClassHead`, `MultiClassHead` or `RegressionHead`.
    """
    heads = importlib.import_module("tensorflow_estimator.python.estimator.canned.head")
    makers = {
        "binary": heads._binary_logistic_head_with_sigmoid_cross_entropy_loss,
        "multi class": heads._multi_class_head_with_softmax_cross_entropy_loss,
        "regression": heads._regression_head,
    }
    return makers[kind](*settings)
