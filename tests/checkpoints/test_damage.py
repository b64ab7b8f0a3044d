"""Damaged checkpoints: named, set aside by their run alone, and the newest good one is taken."""

import re
import shutil

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import file_systems
from model_deploy.checkpoints import (
    BestCheckpoint,
    CheckpointWatch,
    find_checkpoint,
    mark_end,
    with_checkpoint,
)
from model_deploy.checkpoints.__main__ import main
from model_deploy.checkpoints.best_value import best_value
from model_deploy.checkpoints.damage import DamagedCheckpointError, full_damage, quick_damage
from model_deploy.checkpoints.manifest import read_manifest, write_manifest
from tests.checkpoints import random_damage
from tests.checkpoints.damages import damage
from tests.training.halving import run_halving

pytestmark = pytest.mark.one_mode

DATA = "model.ckpt-6.data-00000-of-00001"
INDEX = "model.ckpt-6.index"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run that has saved at steps 2, 4 and 6, where its weight is 1/4, 1/16 and 1/64."""
    folder = tmp_path_factory.mktemp("made")
    run_halving(folder, 6, save_interval_steps=2, keep_checkpoints=3)
    return folder


@pytest.fixture
def run(made, tmp_path):
    """A copy of that run."""
    return shutil.copytree(made, tmp_path / "run")


def _names(folder):
    return sorted(path.name for path in folder.iterdir())


def _weight(checkpoint):
    return tf.train.NewCheckpointReader(checkpoint).get_tensor("weight")


def _checkpoint(folder, step):
    return str(folder / f"model.ckpt-{step}")


def test_a_manifest(run):
    """It has step, sizes and what there is: 2 numbers, the weight and the global step."""
    found = read_manifest(_checkpoint(run, 6))
    assert found.step == 6
    assert found.sizes == {
        name.removeprefix("model.ckpt-6"): (run / name).stat().st_size for name in (DATA, INDEX)
    }
    assert found.holds == {"variables": 2, "values": 2, "slots": 0, "tables": 0}


def test_a_manifest_goes_with_its_checkpoint(run):
    """Of three checkpoints that are kept there are three manifests, of changed and deleted none."""
    run_halving(run, 12, save_interval_steps=2, keep_checkpoints=2)
    steps = {int(path.stem.rpartition("-")[2]) for path in run.glob("*.manifest")}
    assert steps == {2, 4, 6, 10, 12}  # those of the first run are not this run's to delete
    (run / "model.ckpt-2.manifest").write_text("{}")
    for path in run.glob("model.ckpt-2.[!m]*"):
        path.unlink()
    write_manifest(_checkpoint(run, 12), 12)
    assert not (run / "model.ckpt-2.manifest").exists()


# File, damage, whether there is a manifest; what is wrong at once, and in full.
WRONG = [
    (DATA, "flip", True, None, "is damaged in "),
    (DATA, "truncate", True, "bytes instead of", "bytes instead of"),
    (DATA, "remove", True, "is missing", "is missing"),
    (INDEX, "flip", True, "has not the checksum", "has not the checksum"),
    (INDEX, "truncate", True, "bytes instead of", "bytes instead of"),
    (INDEX, "remove", True, "is missing", "is missing"),
    ("model.ckpt-6.manifest", "flip", True, None, None),
    ("model.ckpt-6.manifest", "truncate", True, None, None),
    (DATA, "flip", False, None, "is damaged in "),
    (DATA, "truncate", False, None, "is damaged in "),
    (DATA, "remove", False, "is missing", "is missing"),
    (INDEX, "flip", False, "cannot be read", "cannot be read"),
    (INDEX, "truncate", False, "cannot be read", "cannot be read"),
    (INDEX, "remove", False, "is missing", "is missing"),
]


@pytest.mark.parametrize("case", WRONG, ids=str)
def test_what_is_wrong(run, case):
    """Sizes, and the index' checksum, at once; flipped data in full; without a manifest as well."""
    name, kind, has_manifest, *wrong = case
    if not has_manifest:
        (run / "model.ckpt-6.manifest").unlink()
    damage(run / name, kind)
    for look, expected in zip((quick_damage, full_damage), wrong, strict=True):
        found = look(_checkpoint(run, 6))
        if expected is None:
            assert found is None
        else:
            assert found.file == str(run / name)
            assert expected in found.wrong


@pytest.mark.parametrize("kind", ["flip", "truncate", "remove"])
@pytest.mark.parametrize("name", [DATA, INDEX])
def test_a_run_goes_on_from_the_one_before(run, name, kind, capsys):
    """One line names the file; the damaged one is kept aside; step 8 has the weight 2^-8."""
    damage(run / name, kind)
    left = [each for each in _names(run) if each.startswith("model.ckpt-6")]
    run_halving(run, 8)
    [line] = [each for each in capsys.readouterr().err.splitlines() if "aside" in each]
    assert re.match(
        rf"{run}/{name} .*: kept aside as damaged\.\*, going on from {run}/model\.ckpt-4$", line
    )
    assert {f"damaged.{each}" for each in left} <= set(_names(run))
    assert _weight(_checkpoint(run, 8)) == 2.0**-8


def test_a_second_damage_of_the_same_name(run):
    """Nothing that was set aside is overwritten."""
    for start in ("damaged", "damaged-2"):
        damage(run / INDEX, "flip")
        run_halving(run, 6)
        assert (run / f"{start}.{INDEX}").exists()
        assert quick_damage(_checkpoint(run, 6)) is None


def test_none_is_good(run):
    """A run of which no checkpoint is good is refused, whatever is tried next; nothing changes."""
    for step in (2, 4, 6):
        damage(run / f"model.ckpt-{step}.index", "truncate")
    before = _names(run)
    for _ in range(2):
        with pytest.raises(ValueError, match=rf"must hold a good checkpoint.*{run}/{INDEX} has"):
            run_halving(run, 8)
    assert _names(run) == before


@pytest.mark.parametrize("name", [DATA, INDEX])
def test_a_named_one_is_refused(run, name, tmp_path):
    """Where `resume` names a damaged checkpoint one line names the file, and nothing is renamed."""
    damage(run / name, "flip")
    before = _names(run)
    with pytest.raises(ValueError, match=rf"^resume must be a whole checkpoint, .*{run}/{name} "):
        run_halving(tmp_path / "new", 8, resume=_checkpoint(run, 6))
    assert _names(run) == before


@pytest.mark.parametrize(("name", "kind"), [(DATA, "flip"), (DATA, "remove"), (INDEX, "flip")])
def test_readers_take_the_one_before(run, name, kind, capsys):
    """Who reads a folder takes a good checkpoint, says so once, and renames nothing."""
    damage(run / name, kind)
    before = _names(run)
    for _ in range(2):
        assert with_checkpoint(str(run), _weight) == 1 / 16
    said = capsys.readouterr().err
    assert said.count(f"{run}/{name} ") == 1
    assert said.endswith(f"{run}/model.ckpt-4 is taken\n")
    with pytest.raises(DamagedCheckpointError, match=f"must be a whole checkpoint.*{name}"):
        with_checkpoint(_checkpoint(run, 6), _weight)
    assert _names(run) == before


STATES = {
    "missing": (None, "is missing"),
    "empty": ("", "must name the newest checkpoint"),
    "broken": ('model_checkpoint_path: "model.c', "must list checkpoints"),
    "of two minds": (
        'model_checkpoint_path: "model.ckpt-2"\nall_model_checkpoint_paths: "model.ckpt-6"\n',
        "must list the newest checkpoint last",
    ),
}


@pytest.mark.parametrize("case", STATES)
def test_the_file_that_lists_them(run, case, capsys):
    """Without a good file `checkpoint` they are found by their manifests, said in one line."""
    text, wrong = STATES[case]
    (run / "checkpoint").unlink()
    if text is not None:
        (run / "checkpoint").write_text(text)
    # One that is half written: it has no manifest, as others have.
    shutil.copy(run / INDEX, run / "model.ckpt-9.index")
    assert find_checkpoint(str(run)) == _checkpoint(run, 6)
    run_halving(run, 8)
    said = capsys.readouterr().err
    assert re.search(rf"^{run}/checkpoint {wrong}.*: going on from .*-6$", said, re.MULTILINE)
    assert _weight(_checkpoint(run, 8)) == 2.0**-8
    assert tf.train.latest_checkpoint(str(run)) == _checkpoint(run, 8)


# What a killed save of step 6 leaves: files that are not there or cut short, which step the file
# `checkpoint` names; which step is taken.
KILLED = {
    "before the index": ((INDEX, "model.ckpt-6.manifest"), (), 4, 4),
    "within the index": (("model.ckpt-6.manifest",), (INDEX,), 4, 4),
    "before the list": (("model.ckpt-6.manifest",), (), 4, 4),
    "before the manifest": (("model.ckpt-6.manifest",), (), 6, 6),
    "after all": ((), (), 6, 6),
}


@pytest.mark.parametrize("case", KILLED)
def test_a_kill_leaves_the_last_whole_one(run, case, capsys):
    """At whichever moment of a save a run is killed, the newest listed checkpoint is taken."""
    missing, cut, listed, expected = KILLED[case]
    for name in missing:
        (run / name).unlink()
    for name in cut:
        damage(run / name, "truncate")
    tf.train.update_checkpoint_state(
        str(run), f"model.ckpt-{listed}", [f"model.ckpt-{step}" for step in range(2, listed + 1, 2)]
    )
    assert find_checkpoint(str(run)) == _checkpoint(run, expected)
    run_halving(run, 8)
    assert "aside" not in capsys.readouterr().err
    assert _weight(_checkpoint(run, 8)) == 2.0**-8


def test_checkpoints_of_other_programs(run, capsys):
    """Without manifests a folder is read as ever; without `checkpoint`, too, by index files."""
    for path in run.glob("*.manifest"):
        path.unlink()
    assert find_checkpoint(str(run)) == _checkpoint(run, 6)
    assert capsys.readouterr().err == ""
    (run / "checkpoint").unlink()
    assert find_checkpoint(str(run)) == _checkpoint(run, 6)
    damage(run / DATA, "flip")
    assert with_checkpoint(str(run), _weight) == 1 / 16


def test_the_watch_waits_for_the_next(run, capsys):
    """A damaged checkpoint is left out in one line; it counts for the end of the run."""
    damage(run / INDEX, "flip")
    mark_end(run, 6)
    watch = CheckpointWatch(run, 0.01)
    assert list(watch) == [_checkpoint(run, 2), _checkpoint(run, 4)]
    assert capsys.readouterr().out.startswith(f"not evaluated: {run}/{INDEX} ")
    (run / "run_ended").write_text('{"step": 9, "crc32": "00000000"}')
    assert len(list(CheckpointWatch(run, 0.01))) == 2
    assert f"{run}/run_ended must have values whose crc32" in capsys.readouterr().err


def test_the_best_value_is_known_twice(tmp_path, capsys):
    """It is in `best.json` and in the manifest; of a damaged checkpoint there is none."""
    folder = tmp_path / "best"
    tf.train.get_or_create_global_step()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        BestCheckpoint(str(tmp_path), "accuracy").offer(session, 3, 0.75)
    for kind in ("flip", "remove"):
        damage(folder / "best.json", kind)
        assert best_value(str(folder), "accuracy") == 0.75
    assert capsys.readouterr().err.count(f"{folder}/best.json") == 2
    damage(folder / "model.ckpt-3.index", "flip")
    assert best_value(str(folder), "accuracy") is None


def _listed(folder, capsys):
    """The exit status and the output of the command."""
    try:
        main([str(folder)])
    except SystemExit as error:
        return error.code, capsys.readouterr().out
    return 0, capsys.readouterr().out


def test_the_command_lists(run, capsys):
    """Step, size, content and state of each, by reading all; it changes nothing."""
    status, said = _listed(run, capsys)
    assert status == 0
    assert re.search(r"\nmodel.ckpt-4 +4 +\d+ B +2 variables \(2 values\) .* good\n", said)
    damage(run / DATA, "flip")
    before = _names(run)
    status, said = _listed(run, capsys)
    assert status == 1
    assert re.search(rf"\nmodel.ckpt-6 .* damaged: {DATA} is damaged in ", said)
    assert _names(run) == before
    run_halving(run, 8)
    status, said = _listed(run, capsys)
    assert status == 0
    assert f"kept aside: damaged.{DATA}" in said


def test_another_file_system(run, capsys):
    """The command reads, and runs set aside, where TensorFlow alone can."""
    folder = "ram://damage/run"
    file_systems.upload(str(run), folder, last="checkpoint")
    assert _listed(folder, capsys)[0] == 0
    content = file_systems.read_bytes(f"{folder}/{INDEX}")
    with file_systems.open_file(f"{folder}/{INDEX}", "wb") as file:
        file.write(content[:-1] + bytes([content[-1] ^ 1]))
    assert _listed(folder, capsys)[0] == 1
    run_halving(folder, 8)
    assert f"damaged.{INDEX}" in file_systems.names_in(folder)
    assert _weight(f"{folder}/model.ckpt-8") == 2.0**-8


@pytest.mark.slow
def test_random_damage():
    """Whatever file is damaged: named and survived, or refused; `random_damage` tries thousands."""
    counts, failures = random_damage.run(10, seed=5)
    assert failures == []
    assert counts["survived, named"] >= 4
    assert np.sum(list(counts.values())) == 10
