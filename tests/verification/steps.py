"""Steps that are made twice, or plainly, of models whose values flip; cases by name."""

import contextlib

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy.deployment import session_config
from model_deploy.training.steps.report import report_op
from model_deploy.verification import CorruptionError, Verification
from tests.goldens import cpu_config
from tests.harness import start
from tests.verification.injector import Injector, build

# What `build` is called with.
CASES = {
    "one clone": {"name": "slim_mlp", "num_clones": 1},
    "clones": {"name": "convolution"},
    "batch norm": {"name": "batch_norm"},
    "rows": {"name": "embedding"},
    "loop": {"name": "loop"},
    "copies": {"name": "slim_mlp", "copy_clones": True},
    "parts": {"name": "linear", "accumulate_steps": 2},
    "parts of clones on a CPU": {"name": "slim_mlp", "accumulate_steps": 3, "clone_on_cpu": True},
    "dropout": {"name": "slim_mlp", "dropout": True},
    "float16": {"name": "slim_mlp", "precision": "float16"},
    "bfloat16": {"name": "convolution", "precision": "bfloat16"},
    "all-reduce": {"name": "slim_mlp", "all_reduce": True},
    "all-reduce with batch norm": {"name": "batch_norm", "all_reduce": True},
    "synchronized batch norm": {"name": "batch_norm", "sync_batch_norm": True},
}
FOUND, HARMLESS, MISSED = "found", "harmless", "missed"
# Random steps before that of an injection.
_STEPS_BEFORE = 3


class Steps:
    """Steps of a model in the default graph.

    Args:
      model: what `build` returned.
      injector: of the model.
      repeats: whether plain steps give the same after each start.  Otherwise it cannot be told
        which bit of a batch does no harm, and none is flipped.
    """

    def __init__(self, model, injector=None, *, repeats=True):
        self.injector, self._repeats = injector, repeats
        self.report = report_op(model, None, None)
        self.verification = Verification(model, self.report, [1])
        self._start = [tf.global_variables_initializer(), tf.local_variables_initializer()]
        self._tables = tf.tables_initializer()
        self._variables = tf.global_variables()
        self._proto = session_config(model.config, base=cpu_config())

    @contextlib.contextmanager
    def opened(self):
        """Opens the session."""
        with tf.Session(config=self._proto) as self.session:
            start(self.session)
            self.begin()
            yield self

    def begin(self):
        """Gives variables and inputs the values that they begin with."""
        for op in (*self._start, self._tables):
            self.session.run(op)
        self.made = 0

    def verify(self):
        """Makes a step twice; returns its report."""
        self.made += 1
        fetches = {"report": self.report}
        return self.verification.make(self.session, self.made, fetches, {})["report"]

    def inject(self, random):
        """Flips a random bit in a random step that is made twice; returns what becomes of it.

        A flip does no harm if after a step that is made once no variable differs in a bit: one in a
        batch that rounding, or a cast to 16 bits, takes away.
        """
        injector, before = self.injector, int(random.integers(_STEPS_BEFORE))
        names = [name for name in injector.names if self._repeats or "batch" not in name]
        name = names[random.integers(len(names))]
        place = injector.place(name, random)
        self.begin()
        for _ in range(before):
            self.verify()
        flips = injector.flips
        injector.arm(name, int(random.integers(2)), place)
        try:
            self.verify()
        except CorruptionError:
            return FOUND
        finally:
            assert injector.flips == flips + 1, name
        plain, other = (self._plain(before, name, flip) for flip in (None, place))
        same = all(map(np.array_equal, plain, other))
        return HARMLESS if same else MISSED

    def _plain(self, before, name, place):
        """The bytes of all variables after a step that is made once, with a flip or without."""
        self.begin()
        for _ in range(before):
            self.session.run(self.report)
        if place is not None:
            self.injector.arm(name, 0, place)
        self.session.run(self.report)
        values = self.session.run(self._variables)
        return [np.frombuffer(value.tobytes(), np.uint8) for value in values]


@contextlib.contextmanager
def steps_of(case, *, injects=False):
    """The steps of a case in a graph and session of their own."""
    with tf.Graph().as_default():
        injector = Injector() if injects else None
        model = build(injector=injector, **CASES[case])
        steps = Steps(model, injector, repeats=not CASES[case].get("dropout"))
        with steps.opened():
            yield steps
