"""The file of a world: what is written is read, and mistakes in it are named."""

import json

import pytest

from model_deploy.cluster import Cluster, World, begun_file, read_world, ready_file, write_world

pytestmark = pytest.mark.one_mode


def test_written_and_read(tmp_path):
    """A world comes out of its file as it went in, its workers in the order of their numbers."""
    world = World(3, 8, {7: "b:2", 2: "a:1"})
    write_world(tmp_path / "world.json", world)
    assert read_world(tmp_path / "world.json") == world
    assert list(world.workers) == [2, 7]
    assert world.chief == 2
    assert world.cluster(7).task_id == 1
    assert world.cluster(2).is_chief
    assert ready_file("a/world.json", 3) == "a/world.json.ready-3"
    assert begun_file("a/world.json") == "a/world.json.begun"


@pytest.mark.parametrize("max_workers", [1, 2, 3, 5, 8])
def test_parts_cover_the_batch(max_workers):
    """Each share has one worker, ranges follow each other, and sizes differ by at most one."""
    for count in range(1, max_workers + 1):
        world = World(1, max_workers, {3 * i: f"h:{i + 1}" for i in range(count)})
        parts = [world.parts_of(worker) for worker in world.workers]
        assert [share for each in parts for share in each] == list(range(max_workers))
        sizes = [len(each) for each in parts]
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        pytest.param({"version": 2}, "version must be 1, got 2", id="version"),
        pytest.param({"generation": 0}, "generation must be at least 1, got 0", id="generation"),
        pytest.param({"generation": "1"}, "generation must be an integer, got '1'", id="text"),
        pytest.param({"max_workers": 1}, "from 1 to max_workers=1, got 2", id="too many"),
        pytest.param({"workers": {}}, "from 1 to max_workers=4, got 0", id="none"),
        pytest.param({"workers": ["a:1"]}, r"addresses by number, got \['a:1'\]", id="list"),
        pytest.param({"workers": {"x": "a:1"}}, "whole numbers as names, got 'x'", id="name"),
        pytest.param({"workers": {"0": "a"}}, "must be host:port.* got 'a'", id="address"),
        pytest.param({"workers": {"0": "a:1", "1": "a:1"}}, "must differ from", id="twice"),
        pytest.param({"more": 1}, "must have the fields version, .* got {", id="field"),
    ],
)
def test_mistakes(values, message, tmp_path):
    """A world that cannot be says in which file, which field, and what was there."""
    good = {"version": 1, "generation": 1, "max_workers": 4, "workers": {"0": "a:1", "1": "b:1"}}
    path = tmp_path / "world.json"
    path.write_text(json.dumps(good | values))
    with pytest.raises(ValueError, match=f"world.json: .*{message}"):
        read_world(path)


def test_broken_file(tmp_path):
    """Half of a file is no world."""
    path = tmp_path / "world.json"
    path.write_text('{"version": 1,')
    with pytest.raises(ValueError, match=r"world.json: a world must be JSON .* got '\{\"version"):
        read_world(path)


@pytest.mark.parametrize(
    ("workers", "message"),
    [
        (
            {0: "a:1", 1: "x:1"},
            "workers must have addresses of worker_hosts with .*, a:1, b:1, got x:1",
        ),
        ({0: "b:1", 1: "a:1"}, "workers must have worker 1 at its own address, b:1, got a:1"),
    ],
)
def test_addresses_of_servers(workers, message):
    """With parameter servers a worker has one of the addresses that these know, its own."""
    with pytest.raises(ValueError, match=message):
        World(1, 2, workers).cluster(1, Cluster(("a:1", "b:1"), ("c:1",), task_id=1))
