"""Files of this machine and of remote storage are found alike."""

import fnmatch

import pytest

from model_deploy import file_systems

pytestmark = pytest.mark.one_mode


@pytest.mark.parametrize("scheme", ["", "ram:/"])
def test_paths_starting_with(scheme, tmp_path):
    """All files and folders are found whose paths start so, whatever is special to patterns."""
    folder = f"{scheme}{tmp_path}/a[b]"
    file_systems.make_folders(f"{folder}/run-1.parts")
    for name in ("run-1", "run-1.index", "run-10", "run-2", "run"):
        with file_systems.open_file(f"{folder}/{name}", "w") as file:
            file.write("x")
    assert file_systems.paths_starting_with(f"{folder}/run-1") == [
        f"{folder}/{name}" for name in ("run-1", "run-1.index", "run-1.parts", "run-10")
    ]
    assert file_systems.paths_starting_with(f"{scheme}{tmp_path}/none/run") == []


def test_paths_are_not_kept(tmp_path, monkeypatch):
    """A search for paths keeps no pattern in memory, for a run has thousands of checkpoints."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.ckpt-7.index").touch()
    assert file_systems.paths_starting_with("model.ckpt-7.") == ["model.ckpt-7.index"]
    before = fnmatch._compile_pattern.cache_info().currsize
    for step in range(100):
        file_systems.paths_starting_with(f"{tmp_path}/model.ckpt-{step}.")
    assert fnmatch._compile_pattern.cache_info().currsize == before  # where `glob` keeps patterns
