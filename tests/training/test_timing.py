"""`TimedHook`: the time that a hook takes."""

import time

from model_deploy.training.timing import TimedHook


class _Slow:
    def due(self, step):
        return step == 1

    def before_run(self, run_context):
        return run_context

    def after_run(self, run_context, run_values):
        time.sleep(run_values)


def test_timed_hook():
    """Whoever asks is told how long `after_run` took; all else is the hook's own."""
    one, other = [], []
    hook = TimedHook(_Slow(), one.append, other.append)
    assert (hook.due(1), hook.due(2), hook.before_run(3)) == (True, False, 3)
    hook.after_run(None, 0.02)
    hook.after_run(None, 0.01)
    assert [len(one), len(other)] == [2, 2]
    assert one[0] >= 0.02
    assert other[1] >= 0.01
