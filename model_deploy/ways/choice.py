"""`way_for`: the one place that chooses how a deployment is trained."""

from model_deploy.config import DeploymentConfig
from model_deploy.ways.all_reduce import AllReduce
from model_deploy.ways.each_clone import EachClone
from model_deploy.ways.local_steps import LocalSteps
from model_deploy.ways.low_rank import LowRank
from model_deploy.ways.synchronous import Synchronous
from model_deploy.ways.together import Together
from model_deploy.ways.way import Way


def way_for(config: DeploymentConfig) -> Way:
    """Creates the way to train that a config asks for.

    >>> str(way_for(DeploymentConfig(num_clones=2, asynchronous=True)))
    'asynchronous: an update of each clone'
    """
    if config.local_steps is not None:
        return LocalSteps(config)
    if config.gradient_rank is not None:
        return LowRank(config)
    if config.all_reduce:
        return AllReduce(config)
    if config.asynchronous:
        return EachClone(config)
    return Together(config) if config.num_aggregated is None else Synchronous(config)
