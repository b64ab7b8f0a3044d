"""A member of an elastic run finds its worlds, and says what is wrong with them."""

import os
import time

import pytest

from model_deploy import DeploymentConfig
from model_deploy.cluster import (
    WORKER,
    WORLD_FILE,
    Cluster,
    World,
    asks_for_world,
    ready_file,
    write_world,
)
from model_deploy.elastic import Member, train_elastic
from model_deploy.elastic.member import deployment_in
from model_deploy.processes import waiting_file

pytestmark = pytest.mark.one_mode


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({}, f"{WORLD_FILE} must be set for an elastic run.* got none"),
        ({WORLD_FILE: "x"}, f"{WORKER} must be set for an elastic run"),
        ({WORLD_FILE: "x", WORKER: "-1"}, f"{WORKER} must be a whole number, got '-1'"),
    ],
)
def test_environment(environ, message):
    """A variable that is missing or no number is named."""
    with pytest.raises(ValueError, match=message):
        Member.of(environ)


def test_number():
    """A worker is a whole number."""
    with pytest.raises(ValueError, match="worker must be a whole number, got -1"):
        Member("world.json", -1)


def test_worlds(tmp_path, capsys):
    """A new worker says that it is ready, and waits; a file with a mistake changes nothing."""
    path = tmp_path / "world.json"
    write_world(path, World(1, 2, {0: "a:1"}))
    member = Member(path, 1)
    with pytest.raises(TimeoutError, match=r"got 0.1 s without worker 1 in .*world.json"):
        member.first_world(0.1)
    assert (tmp_path / ready_file("world.json", 1)).exists()
    path.write_text("{}")
    assert member.world() is None
    assert member.world() is None
    assert capsys.readouterr().err.count("the world stays as it was") == 1
    second = World(2, 2, {0: "a:2", 1: "b:2"})
    write_world(path, second)
    assert member.first_world(0.1) == second
    on_time = Member(path, 1)
    assert on_time.first_world(0.1) == second
    assert member.next_world(World(1, 2, {0: "a:1"}), 0.1) == second
    assert member.next_world(second, 0.1) is None


def test_request(tmp_path):
    """It says after which world another is asked for; one from a world that is over is met."""
    path = tmp_path / "world.json"
    member = Member(path, 1)
    assert not asks_for_world(path, 1, 0)
    member.ask()
    assert asks_for_world(path, 1, 7)
    member.ask(World(6, 2, {1: "a:1"}))
    assert [asks_for_world(path, 1, generation) for generation in (5, 6, 7)] == [True, True, False]
    assert not asks_for_world(path, 2, 5)


@pytest.mark.parametrize(
    ("before", "world", "worker", "may"),
    [
        pytest.param((0, 1), (0, 1), 0, True, id="the oldest"),
        pytest.param((0, 1), (0, 1), 1, False, id="not the oldest"),
        pytest.param((0, 1), (1, 2), 1, False, id="the only one that knows the values"),
        pytest.param((0, 1, 2), (1, 2), 1, False, id="where one is missing"),
        pytest.param((0, 1, 2), (1, 2, 3), 1, True, id="where another one came"),
        pytest.param((1, 2), (0, 1, 2), 0, False, id="who was not there"),
    ],
)
def test_who_begins_anew(before, world, worker, may):
    """The oldest worker, where others have its values and nobody is missing."""

    def of(generation, workers):
        return World(generation, 3, {each: f"h:{each + 1}" for each in workers})

    member = Member("world.json", worker)
    assert member.may_begin_anew(of(1, before), of(2, world)) is may


def test_begin(tmp_path):
    """What has begun in an earlier world has begun; nothing has before the first one."""
    member = Member(tmp_path / "world.json", 1)
    first, second = World(1, 2, {1: "a:1"}), World(2, 2, {1: "a:2"})
    assert not member.has_begun(second)
    member.note_begin()
    assert member.has_begun(second)
    assert not member.has_begun(first)
    Member(tmp_path / "gone" / "world.json", 1).note_begin()  # where it may not write


def test_all_wait(tmp_path):
    """All workers of a world wait if each has said so lately, in this world."""
    first, second = World(1, 2, {0: "a:1", 1: "b:1"}), World(2, 2, {0: "a:2", 1: "b:2"})
    path = tmp_path / "world.json"
    one, other = Member(path, 0), Member(path, 1)
    assert not one.all_wait(first)
    assert other.all_wait(first)
    assert not one.all_wait(second)
    assert other.all_wait(second)
    long_ago = time.time() - 60
    os.utime(waiting_file(path, 0), (long_ago, long_ago))
    assert not other.all_wait(second)
    assert not Member(tmp_path / "gone" / "world.json", 0).all_wait(first)


def test_deployment_in_a_world():
    """A deployment has the replicas of the world, and the parts of its worker."""
    world = World(1, 5, {2: "a:1", 4: "b:1"})
    config = deployment_in(world, 4, DeploymentConfig(num_clones=2))
    assert (config.replica_id, config.num_replicas, config.all_reduce) == (1, 2, True)
    assert (config.first_part, config.accumulate_steps, config.global_parts) == (3, 2, 5)
    arguments = config.input_arguments()
    found = [arguments[name] for name in ("first_clone", "num_clones", "global_clones")]
    assert found == [6, 4, 10]
    assert config.global_clones == 10


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_ps_tasks": 1}, "num_ps_tasks must be 0 for an elastic run.* got 1"),
        ({"num_replicas": 2, "all_reduce": True}, "num_replicas must be 1 .* got 2"),
        ({"accumulate_steps": 2}, "accumulate_steps must be 1 .* got 2"),
        ({"sync_batch_norm": True}, "sync_batch_norm must be False with global_parts, got True"),
        ({"copy_clones": True}, "copy_clones must be False with all_reduce=True, got True"),
    ],
)
def test_what_cannot_be_elastic(settings, message):
    """What an elastic run sets itself, or cannot do, is refused by name."""
    with pytest.raises(ValueError, match=message):
        deployment_in(World(1, 2, {0: "a:1"}), 0, DeploymentConfig(**settings))


def test_copies_check(tmp_path):
    """The check of the copies, whose collective ops come after the update, is refused."""
    with pytest.raises(ValueError, match=r"copies_check_every_n_steps must be None .* got 5"):
        train_elastic(
            lambda config: None,
            DeploymentConfig(),
            tmp_path,
            member=Member(tmp_path / "world.json", 0),
            copies_check_every_n_steps=5,
        )


@pytest.mark.parametrize(
    ("worker", "has_servers", "has_begun", "checks"),
    [(0, 0, 0, 1), (1, 0, 0, 1), (0, 1, 0, 1), (1, 1, 0, 0), (0, 0, 1, 0), (0, 1, 1, 0)],
)
def test_who_checks_the_start(tmp_path, worker, has_servers, has_begun, checks):
    """Before a run has begun each worker by all-reduce, and with parameter servers the chief."""
    world = World(2, 2, {0: "a:1", 1: "b:1"})
    member = Member(tmp_path / "world.json", worker)
    servers = Cluster(["a:1", "b:1"], ["c:1"]) if has_servers else None
    if has_begun:
        member.note_begin()
    assert member.checks_start(world, servers) == bool(checks)
