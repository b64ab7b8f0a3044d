"""`saved_at_the_end`: the last step of a run is saved, however the run ends."""

import contextlib
from collections.abc import Callable, Iterator

from model_deploy.checkpoints import (
    CheckpointWriter,
    NotSavedError,
    is_lost_connection,
    step_of,
)
from model_deploy.commands import tell
from model_deploy.training.steps.course import Course
from model_deploy.training.steps.report import NonFiniteLoss, StepReport
from model_deploy.verification import CorruptionError


@contextlib.contextmanager
def saved_at_the_end(
    writer: CheckpointWriter | None,
    course: Course,
    wait_secs: float,
    describe: Callable[[StepReport], str],
    give_up: Callable[[], None],
    *,
    may_save: Callable[[int], bool] = lambda step: True,
) -> Iterator[None]:
    """Saves the last step behind a `with` block, unless the variables are lost.

    Args:
      writer: the chief's writer of checkpoints; None in other workers.
      course: has the session and the last step.
      wait_secs: seconds to wait until the checkpoint can be written.
      describe: returns one line about a step whose numbers are not finite.
      give_up: called if the last step cannot be saved.
      may_save: says of a step whether what a checkpoint needs of it is there.

    Raises:
      FloatingPointError: for a step whose numbers are not finite.
      CorruptionError: from a step that gave two results.
      NotSavedError: if the last step cannot be saved.
    """
    try:
        yield
    except NonFiniteLoss as error:
        if writer is not None:
            writer.wait()
        raise FloatingPointError(describe(error.report)) from error
    except CorruptionError:
        if writer is not None:
            writer.wait()
        raise
    except BaseException as error:
        is_whole = course.rest is None or course.rest.try_to_settle()
        may_be_saved = is_whole and may_save(course.done.step)
        if writer is not None and not is_lost_connection(error) and may_be_saved:
            writer.try_to_save(course.session, course.done.step)
        raise
    if writer is None:
        return
    if not may_save(course.done.step):
        writer.wait()
        if step_of(writer.newest or "") != course.done.step:
            tell(
                f"step {course.done.step} is not saved, for the values of other workers are not "
                f"here; the newest checkpoint is {writer.newest or 'none'}"
            )
        return
    was_interrupted = course.is_interrupted
    try:
        writer.save_last(
            course.session,
            course.done.step,
            wait_secs,
            lambda: course.is_interrupted and not was_interrupted,
        )
    except NotSavedError:
        give_up()
        raise
