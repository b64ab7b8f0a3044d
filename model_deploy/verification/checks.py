"""Which ways to train can make a step twice."""

import tensorflow.compat.v1 as tf

from model_deploy import gpus, internals
from model_deploy.deployment import DeployedModel


def check_can_verify(model: DeployedModel) -> None:
    """Checks that a model's steps can be made twice from the same values.

    Args:
      model: what `deploy` returned, with an optimizer.

    Raises:
      ValueError: naming the setting that is in the way, and why.
    """
    config = model.config
    if model.clone_updates:
        raise _refusal("asynchronous clones: others change the values that a clone has read")
    if config is None:
        return
    if config.num_ps_tasks:
        raise _refusal(
            f"num_ps_tasks={config.num_ps_tasks}: replicas change the values on servers between "
            "two makings, or hand in each gradient once; all_reduce can make a step twice"
        )
    if config.global_parts is not None:
        raise _refusal("an elastic run: a worker may leave between two makings")
    on_gpus = not config.clone_on_cpu and gpus.is_gpu(config.clone_device(0))
    if (
        on_gpus
        and tf.config.experimental.list_physical_devices("GPU")
        and not internals.ops_are_deterministic()
    ):
        raise ValueError(
            "verify_every_n_steps must go with deterministic ops on GPUs, which give other bits "
            "each time otherwise: --deterministic, or "
            "tf.config.experimental.enable_op_determinism(), got neither"
        )


def _refusal(what: str) -> ValueError:
    return ValueError(f"verify_every_n_steps must be None with {what}")
