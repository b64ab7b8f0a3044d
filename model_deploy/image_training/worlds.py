"""Trains as a worker of an elastic run, which other workers leave and join."""

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Collection
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import elastic, training
from model_deploy.cluster import Cluster
from model_deploy.commands import named_as
from model_deploy.config import DeploymentConfig
from model_deploy.image_training.banner import announce
from model_deploy.image_training.building import build
from model_deploy.image_training.held_out import evaluate_newest, evaluations_of
from model_deploy.image_training.networks import Networks
from model_deploy.image_training.noting import note_settings
from model_deploy.image_training.run import prepare
from model_deploy.image_training.train_options import TrainOptions
from model_deploy.image_training.weights import restore_fn

# Options that elastic runs refuse: those that name a cluster or another way to train, and those
# that do not work while workers come and go.
NOT_ELASTIC = (
    *("master", "cluster_source", "job_name", "task", "task_id", "ps_hosts", "worker_hosts"),
    *("num_ps_tasks", "sync_replicas", "asynchronous", "accumulate_steps", "sync_batch_norm"),
    *("wire_precision", "copies_check_every_n_steps", "export_keras", "replicas_to_aggregate"),
    "verify_every_n_steps",
)


def train_in_worlds(
    options: TrainOptions,
    networks: Networks,
    member: elastic.Member,
    servers: Cluster | None = None,
) -> float | None:
    """Trains as a worker of an elastic run, which other workers leave and join.

    Args:
      options: the options.
      networks: the networks to choose from.
      member: this worker.
      servers: the result of `elastic.servers_of`.

    Returns:
      The test accuracy in the chief of the last world; None in other workers.

    Raises:
      ValueError: for a setting that breaks a rule.
      OSError: if the train_dir cannot be written, or too few workers come.
    """
    first = member.first_world(options.start_timeout)
    options = of_all_workers(options, first.max_workers, servers)
    with named_as(num_replicas="max_workers", worker_replicas="max_workers"):
        # The same workers as in `train_elastic` check the start, but earlier, as errors should be.
        run, classifier = prepare(
            options, networks, checks_start=member.checks_start(first, servers)
        )
    built, noted = itertools.count(), itertools.count()
    with contextlib.ExitStack() as stack:
        # The present chief evaluates, so the evaluator is built when first needed.
        evaluations = functools.cache(lambda: stack.enter_context(evaluations_of(run, classifier)))

        def scores(checkpoint: str) -> dict[str, float]:
            found = evaluations()
            return {} if found is None else found.scores(checkpoint)

        def build_for(config: DeploymentConfig) -> elastic.ElasticModel:
            tf.set_random_seed(options.seed)
            here = run._replace(config=config)
            model, arguments = build(here, classifier)
            if config.replica_id == 0:
                first_time = next(noted) == 0  # an earlier chief may have failed to
                if first_time:
                    resume = training.resume_under_way(options.train_dir, options.resume)
                    training.fitting_checkpoint(options.train_dir, resume)
                arguments["init_fn"] = restore_fn(options, networks)
                if first_time:
                    note_settings(run)
            if next(built) == 0:
                announce(here, model)
            return elastic.ElasticModel(model, arguments)

        result = elastic.train_elastic(
            build_for,
            dataclasses.replace(
                run.config,
                num_replicas=1,
                num_ps_tasks=0,
                all_reduce=servers is None,
                copy_clones=False,
                replicas_to_aggregate=None,
            ),
            options.train_dir,
            member=member,
            servers=servers,
            max_steps=run.max_steps,
            start_timeout=options.start_timeout,
            evaluate=None if run.held_out is None else scores,
            **options.part(training.LoopOptions),
        )
        last = member.world()
        if last is None or last.chief != member.worker:
            return None
        if result.total_loss is None:
            print(f"nothing left to train: {options.train_dir} is at step {result.global_step}")
        found = evaluations()
        return None if found is None else evaluate_newest(run, found)


def of_all_workers(
    options: TrainOptions, max_workers: int, servers: Cluster | None
) -> TrainOptions:
    """Returns the options of the whole run: batch, learning rate and epochs over all workers.

    Args:
      options: the options as given, or those of the whole run, read from `options.yaml`.
      max_workers: maximum number of workers.
      servers: the cluster of the parameter servers; None for all-reduce.

    Raises:
      ValueError: naming an option that elastic runs refuse, and its value.
    """
    num_ps_tasks = 0 if servers is None else len(servers.ps_hosts)
    own: dict[str, Any] = {"worker_replicas": max_workers, "num_ps_tasks": num_ps_tasks}
    if servers is not None:
        own["sync_replicas"] = True
    given = {name for name, value in own.items() if getattr(options, name) == value}
    check_defaults(options, {*NOT_ELASTIC, "worker_replicas"} - given)
    return dataclasses.replace(options, all_reduce=servers is None, **own)


def check_defaults(options: TrainOptions, names: Collection[str]) -> None:
    """Checks that options which elastic runs refuse have their defaults.

    Raises:
      ValueError: naming the first option without its default, the default and the value.
    """
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if field.name in names and value != field.default:
            raise ValueError(
                f"{field.name} must be {field.default!r} for an elastic run, got {value!r}"
            )
