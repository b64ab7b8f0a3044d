"""How the chief begins: its folder, the checkpoint that it goes on from, and what writes others."""

import os
import tempfile
from collections.abc import Callable
from typing import Any

from model_deploy import file_systems
from model_deploy.checkpoints import (
    CheckpointWriter,
    GoodCheckpoints,
    Source,
    changes_since,
    check_fits,
    clear_end,
    describe_counts,
    fitting_checkpoint,
    merge,
    report_unfinished,
)
from model_deploy.commands import replaced_file
from model_deploy.embeddings import moved_variables
from model_deploy.training.loop_options import LoopOptions
from model_deploy.training.replicas.joining import Place
from model_deploy.training.session import Start


def chief_start(
    start: Start,
    folder: str,
    options: LoopOptions,
    init_fn: Callable[[Any], None] | None,
    place: Place,
    *,
    num_replicas: int,
) -> Start:
    """Returns how the chief gets its variables, after checking its files.

    Args:
      start: how another process would.
      folder: folder of the run; made if missing.
      options: the settings.
      init_fn: see `Start`.
      place: this process's, in its cluster.
      num_replicas: number of replicas that make steps by themselves; 1 for steps made together.

    Raises:
      ValueError: if the checkpoint is of another model, or none is good.
      OSError: if the folder cannot be written.
    """
    check_writable(folder)
    report_unfinished(folder)
    checkpoint = fitting_checkpoint(folder, options.resume)
    if checkpoint is not None:
        checkpoint = _with_changes(folder, checkpoint, options)
        for line in describe_counts(checkpoint):
            print(line, flush=True)
    clear_end(folder)
    device = f"{place.cluster.own.device}/device:CPU:0" if place.cluster else ""
    writer = CheckpointWriter(
        folder,
        options.keep_checkpoints,
        device,
        by_servers=options.checkpoints_by_servers,
        increments=options.checkpoint_increments,
        num_replicas=num_replicas,
        in_background=options.save_in_background,
        saved=place.saved,
    )
    source = Source(folder, checkpoint, options.resume)
    return start._replace(is_chief=True, writer=writer, source=source, init_fn=init_fn)


def _with_changes(folder: str, checkpoint: str, options: LoopOptions) -> str:
    """Returns the checkpoint to start from, merged with later changes if the run writes none."""
    if options.resume != "auto":
        return checkpoint

    def merged(whole: str) -> str:
        check_fits(whole)
        changes = changes_since(whole)
        if changes is None or (options.checkpoint_increments and not moved_variables(whole)):
            return whole
        path = merge(whole, changes)
        print(f"{path} is {whole} with the changes of {changes.path}", flush=True)
        return path

    return GoodCheckpoints(folder, is_own=True).use(merged, checkpoint)


def check_writable(train_dir: str | os.PathLike[str]) -> None:
    """Makes the folder if needed and checks that files can be written.

    Raises:
      OSError: naming the folder, if it cannot be made or written to.
    """
    try:
        file_systems.make_folders(train_dir)
        if file_systems.is_local(train_dir):
            with tempfile.TemporaryFile(dir=train_dir):
                pass
        else:
            with replaced_file(os.path.join(train_dir, ".writable")) as file:
                file.write("\n")
    except OSError as error:
        raise OSError(
            f"train_dir must be a folder that can be written, got {train_dir}: {error}"
        ) from error
