"""How options update the variables: the way to train, and the clones in an update."""

from model_deploy.classification.deployment_options import DeploymentOptions
from model_deploy.config import DeploymentConfig
from model_deploy.ways import Way, way_for


def way_to_train(options: DeploymentOptions) -> str:
    """Returns in a few words how the variables are updated."""
    return str(_way_of(options))


def clones_in_update(options: DeploymentOptions, num_clones: int) -> int:
    """Returns how many clones, of all replicas, contribute to one update of the variables."""
    return _way_of(options, num_clones).clones_in_update


def _way_of(options: DeploymentOptions, num_clones: int = 1) -> Way:
    """Returns the way to train of the options, with parameter servers where it can have them."""
    config = DeploymentConfig(
        num_clones=num_clones,
        num_replicas=options.worker_replicas,
        num_ps_tasks=0 if options.all_reduce else 1,
        all_reduce=options.all_reduce,
        asynchronous=options.asynchronous,
        replicas_to_aggregate=options.num_aggregated,
        local_steps=options.local_steps,
    )
    return way_for(config)
