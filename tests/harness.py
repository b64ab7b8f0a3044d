"""Builds a model for a deployment, trains it in one process or in a cluster within the process.

Every test of what training gives does it by `Replica`, and compares by `assert_same` or
`assert_equal`.
"""

import concurrent.futures
import contextlib
import dataclasses
import functools
import threading

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import deploy, random_by_step, training
from model_deploy.hooks import session_hooks
from tests import clusters
from tests.goldens import Golden, LogicalDevices, cpu_config

STEPS = 3
# Of these the second parameter of `Replica` takes its batches one after the other.
TURNS = (0, 1, 1, 0)
# That TensorFlow rewrites graphs before they run takes a third of the time of a small model. Those
# of the random products of all features are rewritten, and whatever a program or `train` runs.
rewrites = False
# A cluster that hangs is an error of its test.
_PATIENCE_SECS = 60


def sgd(rate=0.1):
    """Plain steps."""
    return tf.train.GradientDescentOptimizer(rate)


def momentum():
    """Steps with one slot."""
    return tf.train.MomentumOptimizer(0.1, 0.9)


def adam():
    """Adam whose first steps are no mere signs of gradients, which may all but cancel."""
    return tf.train.AdamOptimizer(0.02, epsilon=1e-2)


class Spy(tf.train.GradientDescentOptimizer):
    """Plain steps; `seen` has the gradients that it has got, each with its variable."""

    def __init__(self, *args):
        super().__init__(*args)
        self.seen = []

    def apply_gradients(self, grads_and_vars, *args, **kwargs):
        """Notes the gradients."""
        self.seen.extend(grads_and_vars)
        return super().apply_gradients(grads_and_vars, *args, **kwargs)


def run_hooks(session, hooks=None):
    """Calls the hooks of a graph as `train` does for each new session; returns the coordinator."""
    coordinator = tf.train.Coordinator()
    for hook in session_hooks() if hooks is None else hooks:
        hook.after_create_session(session, coordinator)
    return coordinator


def start(session):
    """Makes a new session of the default graph ready, as `train` does."""
    session.run(tf.global_variables_initializer())
    session.run(tf.local_variables_initializer())
    return run_hooks(session)


def run_steps(model, fetches=(), steps=1, target="", proto=None):
    """Trains the model of the default graph; returns the losses, and `fetches` after the steps."""
    with tf.Session(target, config=proto or cpu_config(rewritten=rewrites)) as session:
        start(session)
        losses = [session.run(model.train_op) for _ in range(steps)]
        return losses, session.run(fetches)


def _parts(golden, config):
    """The batches of a replica, made into tensors when they are taken."""
    own = config.batches_per_step
    first, count = config.replica_id * own, config.num_replicas * own
    features, labels = np.split(golden.features, count), np.split(golden.labels, count)
    return ((tf.constant(features[i]), tf.constant(labels[i])) for i in range(first, first + own))


def _in_turn(golden, parts, which):
    """One batch, which is another part in each step."""
    arrays = [np.stack(np.split(each, parts)) for each in (golden.features, golden.labels)]
    yield tuple(tf.constant(array)[which] for array in arrays)


def _model_fn(golden, config):
    """A function of an iterator over batches."""
    build = golden.prepare(config) if golden.prepare else golden.model_fn
    return lambda batches: build(*next(batches))


class Replica:
    """One process of a deployment, with a graph of its own.

    Args:
      config: the deployment.
      model: a `Golden`, of whose examples the process takes its part, or a `model_fn` without
        arguments.
      make_optimizer: makes the optimizer, in the graph.
      in_turn: None, or of how many parts of the examples each step gets one.
      by_step: whether random numbers follow from the step.
      options: for `deploy`.

    Attributes:
      hooks, initialize, initialize_local: for its sessions.
      after_step: the global step after a step.
      graph, model, variables: what `deploy` has built, and in which graph; variables by name.
      losses: of each step.
      values: of all global variables when the training has ended, by name.
      steps: the global step after each step, where the training has asked for it.
    """

    def __init__(
        self, config, model, make_optimizer=sgd, *, in_turn=None, by_step=False, **options
    ):
        self.config, self.graph, self.losses, self.steps = config, tf.Graph(), [], []
        with self.graph.as_default():
            tf.set_random_seed(1)
            model_fn, args = model, ()
            if isinstance(model, Golden):
                self._which = tf.placeholder_with_default(0, [])
                model_fn = _model_fn(model, config)
                args = [_in_turn(model, in_turn, self._which) if in_turn else _parts(model, config)]
            model_fn = random_by_step(model_fn) if by_step else model_fn
            self.model = deploy(config, model_fn, args, optimizer=make_optimizer(), **options)
            self.hooks = session_hooks()
            with tf.control_dependencies([self.model.train_op]):
                self.after_step = tf.identity(tf.train.get_global_step().read_value())
            self.initialize = tf.global_variables_initializer()
            self.initialize_local = tf.group(
                tf.local_variables_initializer(), tf.tables_initializer()
            )
            self.variables = {v.op.name: v for v in tf.global_variables()}

    @functools.cached_property
    def saver(self):
        """Saves and restores the variables."""
        with self.graph.as_default():
            return tf.train.Saver(max_to_keep=None)

    @property
    def proto(self):
        """What its sessions need."""
        config = self.config
        num_devices = max(4, config.num_clones * config.devices_per_clone)
        proto = training.session_config(config, base=cpu_config(num_devices, rewritten=rewrites))
        if config.xla:  # it compiles what TensorFlow's rewriting prepares
            proto.graph_options.rewrite_options.disable_meta_optimizer = False
        if config.all_reduce:
            proto.isolate_session_state = True  # servers keep variables of earlier sessions
        elif config.num_ps_tasks:
            task = config.replica_id if config.worker_task is None else config.worker_task
            proto.device_filters.extend(["/job:ps", f"/job:worker/task:{task}"])
        return proto

    def open(self, target=""):
        """A session, in which whoever has variables to initialize has done so."""
        self.session = tf.Session(target, graph=self.graph, config=self.proto)
        if self.config.replica_id == 0 or self.model.owns_variables:
            self.session.run(self.initialize)
        return self.session

    def start(self, session=None):
        """What `train` does with a new session; returns the coordinator."""
        session = session or self.session
        session.run(self.initialize_local)
        return run_hooks(session, self.hooks)

    def step(self):
        """Makes a step; returns the global step after it."""
        loss, step = self.session.run([self.model.train_op, self.after_step])
        self.losses.append(loss)
        self.steps.append(int(step))
        return self.steps[-1]

    def update(self, clone):
        """Makes the step of one asynchronous clone."""
        self.losses.append(self.session.run(self.model.clone_updates[clone].train_op))

    def take(self, part):
        """Makes a step with one of the parts that are taken in turn."""
        self.losses.append(self.session.run(self.model.train_op, {self._which: part}))

    def finish(self):
        """Notes the values; copies of all-reduce are equal."""
        self.values = self.session.run(self.variables)
        if self.config.all_reduce:
            assert self.session.run(self.model.copies_difference) == 0

    def close(self):
        """Ends the session."""
        self.session.close()

    def __call__(self, target="", steps=STEPS, restore=None, save=None):
        """Trains alone, in a process or on parameter servers; returns itself."""
        with self.open(target) as session:
            if restore:
                self.saver.restore(session, restore)
            self.start()
            for _ in range(steps):
                self.step()
            self.finish()
            if save:
                self.saver.save(session, save, write_meta_graph=False)
        return self


def one_clone(model, make_optimizer=sgd, *, steps=STEPS, by_step=False, **settings):
    """One clone on the whole batch after its training; `settings` of `LogicalDevices`, `deploy`."""
    fields, options = split_settings(settings)
    config = LogicalDevices(**fields)
    return Replica(config, model, make_optimizer, by_step=by_step, **options)(steps=steps)


def split_settings(settings):
    """The settings of a configuration, and those of `deploy`."""
    options = {name: settings[name] for name in _OF_DEPLOY if name in settings}
    return {name: settings[name] for name in settings if name not in options}, options


_OF_DEPLOY = ("clip_norm", "update_ops", "variables_to_train", "summarize_gradients")


def one_in_turn(model, make_optimizer=sgd, **settings):
    """One clone that gets half of the batch in each step, in the order of `TURNS`."""
    fields, options = split_settings(settings)
    one = Replica(LogicalDevices(**fields), model, make_optimizer, in_turn=2, **options)
    with one.open():
        one.start()
        for part in TURNS:
            one.take(part)
        one.finish()
    return one


def clones_in_turn(config, model, make_optimizer=sgd, **options):
    """Asynchronous clones, each of which makes its step when its turn comes."""
    replica = Replica(config, model, make_optimizer, **options)
    with replica.open():
        replica.start()
        for clone in TURNS:
            replica.update(clone)
        replica.finish()
    return replica


@contextlib.contextmanager
def opened(replicas, targets):
    """Sessions of all replicas, that of the chief first."""
    with contextlib.ExitStack() as stack:
        for replica, target in zip(replicas, targets, strict=True):
            stack.enter_context(contextlib.closing(replica.open(target)))
        yield


def together(function, *arguments):
    """Calls a function for all replicas at the same time; returns the results."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return list(pool.map(function, *arguments))


def train_together(replicas, targets, steps=STEPS):
    """Trains replicas at the same time; returns them."""
    all_done = threading.Barrier(len(replicas), timeout=_PATIENCE_SECS)

    def run(replica):
        replica.start()
        for _ in range(steps):
            replica.step()
        all_done.wait()  # then nobody changes the values any more
        replica.finish()
        all_done.wait()

    with opened(replicas, targets):
        together(run, replicas)
    return replicas


def train_in_turn(replicas, targets, turns=TURNS):
    """Trains asynchronous replicas one after the other, so that two runs do the same."""
    with opened(replicas, targets):
        for replica in replicas:
            replica.start()
        for index in turns:
            replicas[index].step()
        for replica in replicas:
            replica.finish()
    return replicas


def replicas_of(config, model, make_optimizer=sgd, **options):
    """All replicas of a deployment; `model` is one for all, or one for each."""
    models = model if isinstance(model, list) else [model] * config.num_replicas
    return [
        Replica(dataclasses.replace(config, replica_id=i), each, make_optimizer, **options)
        for i, each in enumerate(models)
    ]


def train_replicas(config, model, make_optimizer=sgd, *, steps=STEPS, turns=TURNS, **options):
    """Trains all replicas, in the way that the configuration has; returns them."""
    replicas = replicas_of(config, model, make_optimizer, **options)
    if config.all_reduce:
        return train_together(replicas, clusters.workers(len(replicas)), steps)
    targets = clusters.workers(config.num_replicas)
    if config.replicas_to_aggregate is None:
        return train_in_turn(replicas, targets, turns)
    return train_together(replicas, targets, steps)


def assert_close(found, expected, tolerance=1e-6, slots=None):
    """Each value differs by so much of the largest of its variable, slots by another share.

    A variable whose gradients all but cancel has values near 0 that say nothing about rounding:
    0.1, a fifth of the largest start value of a golden model, counts as its least.
    """
    assert found.keys() == expected.keys()
    trained = {name for name in expected if "/".join(name.split("/")[:-1]) not in expected}
    for name, value in expected.items():
        share = tolerance if slots is None or name in trained else slots
        limit = share * max(np.max(np.abs(value)), 0.1)
        np.testing.assert_allclose(found[name], value, rtol=0, atol=limit, err_msg=name)


def assert_same(run, expected, tolerance=1e-6, losses=2e-6, slots=None):
    """Losses and all variables agree, slots and averages among them."""
    assert len(expected.losses) == len(run.losses)
    np.testing.assert_allclose(run.losses, expected.losses, rtol=losses)
    assert_close(run.values, expected.values, tolerance, slots)


def assert_equal(run, expected):
    """Losses and all variables are the same to the last bit."""
    np.testing.assert_array_equal(run.losses, expected.losses)
    assert run.values.keys() == expected.values.keys()
    for name, value in expected.values.items():
        assert run.values[name].dtype == value.dtype
        np.testing.assert_array_equal(run.values[name], value, err_msg=name)
