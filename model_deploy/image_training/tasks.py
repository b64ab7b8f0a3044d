"""`train_task`: trains or serves as the environment describes this process's task."""

from collections.abc import Mapping

from model_deploy import elastic, training
from model_deploy.cluster import WORLD_FILE
from model_deploy.commands import named_as
from model_deploy.image_training.first_checks import in_cluster
from model_deploy.image_training.following import follow
from model_deploy.image_training.networks import Networks
from model_deploy.image_training.train_options import TrainOptions
from model_deploy.image_training.training_run import train
from model_deploy.image_training.worlds import train_in_worlds


def train_task(
    options: TrainOptions, networks: Networks, environ: Mapping[str, str]
) -> float | None:
    """Trains, or serves as a parameter server, in the cluster that the environment describes.

    Args:
      options: the options.
      networks: the networks to choose from.
      environ: environment variables: `TF_CONFIG`, or those of SLURM or of the launcher; without
        any of these the process trains by itself.

    Returns:
      The result of `train`; for an evaluator the accuracy at the last checkpoint.

    Raises:
      ValueError: for a setting that breaks a rule.
      OSError: if the train_dir cannot be written, or other tasks are missing.
      SystemExit: in a parameter server, once the run has ended.
    """
    if environ.get(WORLD_FILE):
        servers = elastic.servers_of(environ)
        return train_in_worlds(options, networks, elastic.Member.of(environ), servers)
    place = training.join_cluster(
        environ,
        options,
        task=options.task,
        master=options.master,
        num_ps_tasks=options.num_ps_tasks,
    )
    if place.is_evaluator:
        return follow(options, networks)
    options, flags = in_cluster(options, place.cluster)
    with named_as(**flags):
        return train(options, networks, place)
