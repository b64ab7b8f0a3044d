"""`train_elastic`: trains in one world after another, until the last step."""

import dataclasses
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.checkpoints import (
    CheckpointWriter,
    checkpoint_to_resume,
    resume_under_way,
)
from model_deploy.checks import check_whole
from model_deploy.cluster import Cluster, World, is_given_up, is_refusal
from model_deploy.commands import REFUSED, line_of
from model_deploy.config import DeploymentConfig
from model_deploy.deployment import DeployedModel
from model_deploy.elastic import heap
from model_deploy.elastic.keeping import Kept, is_lost, kept_on, servers_of
from model_deploy.elastic.member import Member, deployment_in
from model_deploy.elastic.memory import CreatedHook
from model_deploy.elastic.watch import WorldChanged, WorldWatch
from model_deploy.hooks import add_session_hook
from model_deploy.training import Ledger, LoopOptions, Place, TrainResult, say, train
from model_deploy.updating import note_gate

# Seconds within which a new world must come for a step's error to count as the old world's end.
_LATE_SECS = 10.0
# After how many worlds a process has enough of their servers.  Each worker that ends for that makes
# two worlds for all others: they may not be the reason why the next one ends.
_WORLDS, _WORLDS_PER_WORKER = 8, 4
# Seconds that the launcher has to notice a loss by itself, before a worker asks for a new world.
_ASK_SECS = 1.0


class ElasticModel(NamedTuple):
    """A model for one world, and further arguments of `train`.

    Attributes:
      model: what `deploy` returned, with an optimizer.
      arguments: keyword arguments of `training.train` made in the model's graph, such as
        `learning_rate`, `wait_secs`, `images_per_step` and `hooks`.
    """

    model: DeployedModel
    arguments: Mapping[str, Any] = {}


Build = Callable[[DeploymentConfig], ElasticModel]


def train_elastic(
    build: Build,
    config: DeploymentConfig,
    train_dir: str | os.PathLike[str],
    *,
    member: Member | None = None,
    servers: Cluster | None = None,
    max_steps: int | None = None,
    start_timeout: float = 300.0,
    worlds_per_process: int | None = None,
    evaluate: Callable[[str], Mapping[str, float]] | None = None,
    **settings: Any,
) -> TrainResult:
    """Trains on changing workers, to the same weights as an undisturbed run.

    A world is a period with the same workers, written in the *world file*.  A global batch has
    `max_workers` shares, each a batch of every clone; the workers of a world divide the shares and
    take theirs one after the other.  When the world file changes, each process ends or gives up its
    step, keeps the variables in memory, builds the model for the new world in a new graph, and
    continues from the values of the worker with the most steps.

    So it is by all-reduce.  Where `TF_CONFIG` lists parameter servers, workers are synchronous
    replicas, the servers keep the variables, and in a parameter server this function serves until
    the run has ended.

    `resume` says where the run begins.  Each worker (with parameter servers the chief) checks it
    before building a model, unless the run has begun already; later worlds, and workers that join,
    continue from the run's own checkpoints.

    Args:
      build: called in a new graph for each world with this process's deployment; builds inputs
        and, by `deploy`, the model.  A step's result must depend on global step, share and seeds
        only, see docs/elastic.md.
      config: the deployment of a single process.
      train_dir: folder of checkpoints and other files, shared by all workers; the worker with the
        lowest number in the world writes the files.
      member: this worker; by default from the environment variables.
      servers: the result of `servers_of`; by default from the environment variables.
      max_steps: number of the last step.
      start_timeout: seconds to wait for the first world, for the other workers of a world to
        start, and for a new world after a worker is lost.
      worlds_per_process: by all-reduce, after how many worlds a worker ends for a new process, as
        TensorFlow cannot end the server of a world, with some 40 MiB and 100 threads; by default 8,
        and 4 for each of `max_workers`.
      evaluate: as for `training.train`.
      **settings: fields of `LoopOptions`.

    Returns:
      A `TrainResult`; in a worker that leaves the run, of its last step.

    Raises:
      ValueError: as `training.train`; for a setting that elastic runs do not support.
      TimeoutError: if no world with this worker came, or workers of a world did not start.
      ConnectionError: if a worker or parameter server was lost and there was no new world.
      SystemExit: with 0, in a parameter server, once the run has ended; with 75 in a worker that is
        to be started anew, as a new one.
    """
    if worlds_per_process is not None:
        check_whole("worlds_per_process", worlds_per_process, 1)
    options = LoopOptions(**settings)
    for name in ("copies_check_every_n_steps", "verify_every_n_steps"):
        if getattr(options, name):
            raise ValueError(
                f"{name} must be None for an elastic run, got {getattr(options, name)}"
            )
    kept = kept_on(servers or servers_of(os.environ))
    member = member or Member.of(os.environ)
    ledger, saved = Ledger(), list[str]()
    ledger.spend("start")
    world = member.first_world(start_timeout)
    while True:
        ledger.spend("waiting")
        one = _OneWorld(
            member, world, kept, options, start_timeout=start_timeout, ledger=ledger, saved=saved
        )
        if member.worker not in world.workers:
            say(f"worker {member.worker} leaves: world {world.generation} is without it")
            return TrainResult(kept.step or 0, None)
        shares = world.parts_of(member.worker)
        after = "" if kept.step is None else f", after step {kept.step}"
        say(
            f"world {world.generation}: worker {member.worker} is one of {len(world.workers)} and "
            f"takes {len(shares)} of {world.max_workers} shares{after}"
        )
        result = one.train(build, config, train_dir, max_steps=max_steps, evaluate=evaluate)
        if result is not None:
            return result
        following = one.next_world()
        one.end_if_worn(following, worlds_per_process)
        world = following


class _OneWorld:
    """The part of a run that this process makes in one world."""

    def __init__(
        self,
        member: Member,
        world: World,
        kept: Kept,
        options: LoopOptions,
        *,
        start_timeout: float,
        ledger: Ledger,
        saved: list[str],
    ) -> None:
        self._member = member
        self._world = world
        self._kept = kept
        self._options = options
        self._start_timeout = start_timeout
        self._ledger, self._saved = ledger, saved
        self._error: Exception | None = None
        self._graph = tf.Graph()
        self._place: Place | None = None  # once all members have begun

    def train(
        self,
        build: Build,
        config: DeploymentConfig,
        train_dir: str | os.PathLike[str],
        **arguments: Any,
    ) -> TrainResult | None:
        """Trains to the end of the run; returns None if the world ends first."""
        kept, worker = self._kept, self._member.worker
        cluster = self._world.cluster(worker, kept.servers)
        # A worker that knows a step has trained in this run: the checkpoints are its own.
        if kept.step is None and self._member.checks_start(self._world, kept.servers):
            checkpoint_to_resume(os.fspath(train_dir), self._options.resume)
        watch = WorldWatch(
            self._world,
            cluster,
            self._member.world,
            all_wait=lambda: self._member.all_wait(self._world),
            stall_timeout=self._options.stall_timeout,
            report=say,
        )
        with self._graph.as_default(), watch, heap.giving_back() as begin:
            here = deployment_in(self._world, worker, config, kept.servers)
            kept.prepare(self._world, here)

            def opened(session: Any) -> None:
                watch.opened(session)
                kept.memory.put_into(session)

            add_session_hook(CreatedHook(opened))
            note_gate(watch.gate)
            built = build(here)
            add_session_hook(CreatedHook(lambda _: self._agreed(watch, cluster)))
            add_session_hook(CreatedHook(lambda _: begin()))
            place = kept.place(_config_of(built.model), cluster)
            try:
                return train(
                    built.model,
                    train_dir,
                    place=place._replace(
                        start_timeout=self._start_timeout,
                        watch=watch,
                        ledger=self._ledger,
                        saved=self._saved,
                    ),
                    **arguments,
                    **built.arguments,
                    **self._options_to_go_on(train_dir, cluster).part(LoopOptions),
                )
            except SystemExit:
                if watch.has_given_up and place.is_chief and not watch.give_up():
                    self._save(train_dir, place)
                raise
            except (ConnectionError, tf.errors.OpError, RuntimeError) as error:
                # The update itself failed, not a step before it: only parameter servers survive
                # that.
                if watch.give_up() and kept.servers is None:
                    raise
                self._error = error
            if watch.started:
                self._place = place
        return None

    def _options_to_go_on(self, train_dir: str | os.PathLike[str], cluster: Cluster) -> LoopOptions:
        """Returns the options for this world; only the chief restores a checkpoint."""
        if not cluster.is_chief:
            return self._options
        resume = resume_under_way(os.fspath(train_dir), self._options.resume)
        return dataclasses.replace(self._options, resume=resume)

    def _agreed(self, watch: WorldWatch, cluster: Cluster) -> None:
        """Notes that all workers have the same values; only then may checkpoints be written."""
        if cluster.is_chief:
            self._member.note_begin()
        watch.agreed()

    def _save(self, train_dir: str | os.PathLike[str], place: Place) -> None:
        """Saves the variables that the server still has, after a step was given up."""
        with tf.Session(place.master, config=place.session_config) as session:
            step = int(session.run(tf.train.get_global_step()))
            keep = self._options.keep_checkpoints
            writer = CheckpointWriter(os.fspath(train_dir), keep, saved=self._saved)
            writer.try_to_save(session, step)

    def next_world(self) -> World:
        """Returns the next world; raises the error that ended this one if none comes."""
        error = self._error
        timeout = self._start_timeout if is_lost(error) else _LATE_SECS
        # The launcher notices a loss, but never a refusal.
        ask_secs = 0.0 if is_refusal(error) else _ASK_SECS
        found = self._member.next_world(self._world, ask_secs)
        if found is None:
            self._ask_after(error)
            found = self._member.next_world(self._world, timeout)
        if found is not None:
            if self._place is not None:
                with self._graph.as_default():
                    is_next_chief = found.chief == self._member.worker
                    self._kept.leave(self._place, is_next_chief=is_next_chief)
            internals.forget_custom_gradients(self._graph)
            return found
        if isinstance(error, ConnectionError) and not isinstance(error, WorldChanged):
            raise ConnectionError(
                f"start_timeout must be long enough for a world without workers that are lost, got "
                f"{timeout:g} s: {error}"
            ) from error
        raise error or RuntimeError("the world has ended without an error")

    def end_if_worn(self, following: World, most: int | None) -> None:
        """Ends this process for a new one, if it has the servers of too many worlds.

        Raises:
          SystemExit: with 75, `EX_TEMPFAIL`, so that a new worker is started.
        """
        past = self._kept.past_worlds
        most = most or _WORLDS + _WORLDS_PER_WORKER * self._world.max_workers
        others_have_the_values = self._place is not None
        if past < most or not others_have_the_values:
            return
        if self._member.may_begin_anew(self._world, following):
            say(
                f"worker {self._member.worker} ends for a new process: this one has the TensorFlow "
                f"servers of {past} worlds"
            )
            raise SystemExit(REFUSED)

    def _ask_after(self, error: Exception | None) -> None:
        """Asks for another world after an error that only this worker may know of."""
        if error is None or isinstance(error, WorldChanged) or not self._kept.asks_after(error):
            return
        reason = line_of(error)
        if is_refusal(error):
            reason = "TensorFlow has refused its part of a step"
        elif is_given_up(error):
            reason = "another worker has given up its part of a step"
        say(f"worker {self._member.worker} asks for another world: {reason}")
        self._member.ask(self._world)


def _config_of(model: DeployedModel) -> DeploymentConfig:
    """Returns the config of a built model, which must be one of an elastic run."""
    if model.config is None or model.config.global_parts is None:
        raise ValueError(
            "build must deploy its model for the configuration that it was given, got a model "
            f"of {model.config}"
        )
    return model.config
