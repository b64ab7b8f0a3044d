"""The cells of the law: whatever divides a batch, training ends where one clone on all of it ends.

A cell is a way to train, a feature, a model and a kind of variables; of a Keras model its form is
one thing, and of which Keras and where it is made another.  `covering` chooses so many cells that
every two of these meet that can.
"""

import dataclasses
import functools
import itertools
import random
import types
import zlib

import numpy as np

from tests import clusters, devices, harness
from tests.goldens import GOLDENS, LogicalDevices
from tests.keras_layers.models import MODELS as KERAS
from tests.rewrites.batch_norm.norms import MODELS as NORMS
from tests.staged import MODELS as STAGED

# What each way sets; every process has two clones.
_SERVERS = {"num_ps_tasks": 2}
WAYS = {
    "together": {},
    "on servers": _SERVERS,
    "each clone": {"asynchronous": True},
    "replicas": {**_SERVERS, "num_replicas": 2, "replicas_to_aggregate": 2},
    "each replica": {**_SERVERS, "num_replicas": 2},
    "all-reduce": {"all_reduce": True},
    "replicas by all-reduce": {"all_reduce": True, "num_replicas": 2},
}
# In these each update is made of one part of the batch, and parts take turns.
IN_TURN = ("each clone", "each replica")
# In these the averages of batch norms follow all clones of all replicas.
MEANS = ("replicas", "all-reduce", "replicas by all-reduce")


@dataclasses.dataclass(frozen=True)
class Feature:
    """What is asked for beside a way.

    Attributes:
      settings: of the configuration, or of `deploy`.
      of_one: those that one clone on the whole batch gets, too.
      tolerance: how far values may be off, of the largest one of their variable.
      losses: how far losses may be off, of themselves.
    """

    settings: dict
    of_one: tuple[str, ...] = ()
    tolerance: float = 1e-6
    losses: float = 2e-6

    @property
    def is_rounded(self):
        """Whether 16 bits are all that is left of some values."""
        return self.tolerance > 1e-4


# Distances of neighbours near 1.
_BFLOAT16, _FLOAT16 = 2.0**-7, 2.0**-10
_ON_CPU = {"clone_on_cpu": not devices.on_gpus()}
FEATURES = {
    "plain": Feature({}),
    "copied": Feature({"copy_clones": True}),
    "parts": Feature({"accumulate_steps": 2}),
    "copied parts": Feature({"copy_clones": True, "accumulate_steps": 3}),
    "clipped": Feature({"clip_norm": 0.005}, ("clip_norm",)),
    "clipped parts": Feature({"clip_norm": 0.005, "accumulate_steps": 2}, ("clip_norm",)),
    "bfloat16": Feature({"precision": "bfloat16"}, ("precision",), _BFLOAT16, 4 * _BFLOAT16),
    "float16": Feature({"precision": "float16"}, ("precision",), _FLOAT16, 4 * _FLOAT16),
    "loss scale": Feature({"loss_scale": 1024}),
    "common norms": Feature({"sync_batch_norm": True}, (), 2e-5, 1e-5),
    "channels first": Feature({"data_format": "NCHW", **_ON_CPU}, (), 1e-5, 1e-5),
    "compiled": Feature({"xla": True}, (), 1e-5, 1e-5),
    "compiled copies in parts": Feature(
        {"xla": True, "copy_clones": True, "accumulate_steps": 2}, (), 1e-5, 1e-5
    ),
    # Each gradient and weight that travels is rounded to 8 digits.
    "16 bits between": Feature({"wire_precision": "bfloat16"}, (), 8 * 2.0**-8, 8 * 2.0**-8),
    "stages": Feature({"devices_per_clone": 2, **_ON_CPU}),
    "stages in parts": Feature({"devices_per_clone": 2, "accumulate_steps": 2, **_ON_CPU}),
    "copied stages": Feature({"devices_per_clone": 2, "copy_clones": True, **_ON_CPU}),
    "common norms in stages": Feature(
        {"devices_per_clone": 2, "sync_batch_norm": True, **_ON_CPU}, (), 2e-5, 1e-5
    ),
    "compiled stages": Feature({"devices_per_clone": 2, "xla": True, **_ON_CPU}, (), 1e-5, 1e-5),
}

_OF_KERAS = ("mlp", "recurrent", "residual", "subclassed", "autoencoder")
MODELS = {
    **GOLDENS,
    **{f"staged {name}": model for name, model in STAGED.items()},
    **{f"norms of {name}": model for name, model in NORMS.items()},
    **{name: model for name, model in KERAS.items() if name.partition(" ")[0] in _OF_KERAS},
}
_IMAGES = tuple(name for name in MODELS if name.startswith(("convolution", "residual")))
_WITH_NORMS = tuple(
    name
    for name in MODELS
    if name.startswith(("norms of", "residual", "batch_norm", "staged loop"))
)


def _needs_another_model(feature, name):
    """Why nothing of a feature shows on a model."""
    settings = FEATURES[feature].settings
    if ("devices_per_clone" in settings) != name.startswith("staged"):
        return "stages are a matter of models that have them"
    if "data_format" in settings and name not in _IMAGES:
        return "there are no channels"
    if "sync_batch_norm" in settings and name not in _WITH_NORMS:
        return "there is no batch norm"
    if name.startswith("norms of") and "sync_batch_norm" not in settings:
        return "`batch_norm` and the residual networks stand for these models"
    return None


def _excludes(way, feature):
    """Why a feature cannot be had in a way."""
    settings = FEATURES[feature].settings
    if WAYS[way].get("all_reduce") and {"copy_clones", "devices_per_clone"} & settings.keys():
        return "all-reduce neither copies clones nor has stages"
    if way == "each clone" and "sync_batch_norm" in settings:
        return "clones that go each at its own pace have no common batch"
    if way == "each clone" and "copy_clones" in settings:
        return "asynchronous clones are not copied"
    if way == "replicas" and "sync_batch_norm" in settings:
        return "replicas on parameter servers have no common batch"
    between = "num_ps_tasks" in WAYS[way] or "num_replicas" in WAYS[way]
    if "wire_precision" in settings and not between:
        return "nothing crosses a border"
    return None


def why_not(way, feature, name, kind):
    """Why a cell is not there; None for one that is."""
    if name.startswith("recurrent tf_keras") and kind == "reference":
        return "tf-keras makes loops of TensorFlow 1 in nothing but programs of TensorFlow 1"
    settings = FEATURES[feature].settings
    if reason := _needs_another_model(feature, name) or _excludes(way, feature):
        return reason
    if name == "norms of keras" and WAYS[way].get("all_reduce"):
        return "Keras 3 keeps one set of variables for all clones"
    if name.startswith("subclassed") and way in MEANS:
        return "its running mean, which it computes with, is of another batch"
    by_parts = way == "each replica" or (way in IN_TURN and "accumulate_steps" in settings)
    if by_parts and not MODELS[name].batch_law and "sync_batch_norm" not in settings:
        return "clones and parts normalize each by itself"
    return None


def covering(factors, is_allowed, cost=lambda *cell: 0):
    """Tuples of a value of each factor, so that every two values meet which may meet at all.

    Those that make most pairs meet are taken first, the cheaper ones first among them; the order of
    equals is one of check sums.
    """
    cells = sorted(
        filter(lambda cell: is_allowed(*cell), itertools.product(*factors)),
        key=lambda cell: (cost(*cell), zlib.crc32(repr(cell).encode())),
    )
    met, chosen = set(), []
    num_pairs = len(factors) * (len(factors) - 1) // 2
    for least in range(num_pairs, 0, -1):
        for cell in cells:
            pairs = set(itertools.combinations(enumerate(cell), 2))
            if len(pairs - met) >= least:
                met |= pairs
                chosen.append(cell)
    return chosen


KINDS = ("resource", "reference")
_MOST_FEATURES = 4
# The form of a model, and the Keras and the place of those that are of a Keras.
_FORMS = dict.fromkeys(name.split(" ")[0] if name in KERAS else name for name in MODELS)
_MAKERS = dict.fromkeys(name.partition(" ")[2] if name in KERAS else "" for name in MODELS)
FACTORS = (WAYS, FEATURES, _FORMS, _MAKERS, KINDS)


def parts_of(way, feature, name, kind):
    """A cell as one value of each of `FACTORS`."""
    form, _, maker = name.partition(" ") if name in KERAS else (name, "", "")
    return way, feature, form, maker, kind


def _cells():
    """The cells, with few of the ways of several replicas, each of which builds its own graph."""
    by_parts = {
        parts_of(*cell): cell
        for cell in itertools.product(WAYS, FEATURES, MODELS, KINDS)
        if why_not(*cell) is None
    }
    chosen = covering(
        FACTORS,
        lambda *parts: parts in by_parts,
        lambda way, *_: WAYS[way].get("num_replicas", 1),
    )
    return [by_parts[parts] for parts in chosen]


CELLS = _cells()


def why_not_together(features, way, name, kind):
    """Why a cell cannot have several features at once; None where it can."""
    for feature in features:
        if reason := why_not(way, feature, name, kind):
            return reason
    fields = [FEATURES[feature].settings.keys() - _ON_CPU.keys() for feature in features]
    if len(set().union(*fields)) < sum(map(len, fields)):
        return "both say the same"
    if set().union(*fields) >= {"sync_batch_norm", "accumulate_steps"}:
        return "a common norm is one over the same part of all clones, and of no whole batch"
    return None


def products(seed):
    """Random ways, models and kinds of variables with several features each; `check` takes them.

    Of many that are drawn the one stays in which most features meet for the first time, until all
    have met that can.

    Returns:
      For each name a way, a `Feature`, the name of a model and a kind of variables.
    """
    generator = random.Random(seed)
    missing, found = _pairs_that_can_be(), {}
    while missing:
        drawn = [_product(generator) for _ in range(_DRAWN)]
        chosen, (way, name, kind) = max(drawn, key=lambda each: len(missing & _pairs(each[0])))
        if missing & _pairs(chosen):
            found[f"{way}-{'+'.join(chosen)}-{name}-{kind}"] = way, _all_of(chosen), name, kind
        missing -= _pairs(chosen)
    return found


_DRAWN = 50
# A feature that asks for nothing is no feature beside another one.
_ASKING = [feature for feature in FEATURES if FEATURES[feature].settings]


def _pairs(features):
    return set(itertools.combinations(sorted(features), 2))


def _pairs_that_can_be():
    """Every two features that some cell can have at once."""
    return {
        pair
        for pair in _pairs(_ASKING)
        if any(
            why_not_together(pair, *cell) is None for cell in itertools.product(WAYS, MODELS, KINDS)
        )
    }


def _product(generator):
    """A way, a model and a kind, and as many features as go together there, up to four."""
    cell = tuple(generator.choice(list(each)) for each in (WAYS, MODELS, KINDS))
    chosen = []
    for feature in generator.sample(_ASKING, len(_ASKING)):
        if len(chosen) < _MOST_FEATURES and not why_not_together([*chosen, feature], *cell):
            chosen.append(feature)
    return chosen, cell


def _all_of(chosen):
    """Several features as one."""
    features = [FEATURES[feature] for feature in chosen]
    return Feature(
        {key: value for each in features for key, value in each.settings.items()},
        tuple({key for each in features for key in each.of_one}),
        sum(each.tolerance for each in features),
        sum(each.losses for each in features),
    )


def check(way, wanted, name, kind):
    """Trains what is wanted in a way, and compares losses and all values with one clone's.

    That one has the whole batch in each step, or where updates take turns what each had.
    """
    expected = _expected(way, wanted, name, kind)
    runs = _run(way, wanted, MODELS[name])
    losses = np.mean([run.losses for run in runs], axis=0)
    if way == "each replica":
        losses = _interleaved(runs)
    np.testing.assert_allclose(losses, expected.losses, rtol=wanted.losses)
    for run in runs:
        found, values = _comparable(run.values, way, name), _comparable(expected.values, way, name)
        harness.assert_close(found, values, wanted.tolerance)


def _optimizer(feature):
    """Plain steps for what is rounded, as sums of rounded gradients drift apart."""
    return harness.sgd if feature.is_rounded else harness.momentum


def _run(way, feature, model):
    """All replicas after the training."""
    fields, options = harness.split_settings(feature.settings)
    make = _optimizer(feature)
    config = LogicalDevices(num_clones=2, **WAYS[way], **fields)
    if way == "each clone":
        return [harness.clones_in_turn(config, model, make, **options)]
    if config.num_replicas > 1:
        return harness.train_replicas(config, model, make, **options)
    [target] = clusters.workers(1) if config.num_ps_tasks else [""]
    return [harness.Replica(config, model, make, **options)(target)]


def _expected(way, wanted, name, kind):
    """The run of one clone, or of clones that nothing else is asked of, where each normalizes."""
    settings = wanted.settings
    if way in IN_TURN:
        num_clones = "in turn"
    elif MODELS[name].batch_law or "sync_batch_norm" in settings:
        num_clones = 1
    else:
        parts = settings.get("accumulate_steps", 1)
        num_clones = 2 * parts * WAYS[way].get("num_replicas", 1)
    of_one = tuple((key, settings[key]) for key in wanted.of_one)
    return _one(num_clones, name, _optimizer(wanted), of_one, kind)


@functools.cache
def _one(num_clones, name, make, of_one, kind):
    """The run that many are compared with; once for each kind of variables."""
    del kind
    model = MODELS[name]
    if num_clones == "in turn":
        one = harness.one_in_turn(model, make, **dict(of_one))
    else:
        one = harness.one_clone(model, make, num_clones=num_clones, **dict(of_one))
    return types.SimpleNamespace(losses=one.losses, values=one.values)  # and no graph


def _interleaved(runs):
    """The losses of replicas in the order of their steps."""
    losses = [iter(run.losses) for run in runs]
    return [next(losses[index]) for index in harness.TURNS]


def _comparable(values, way, name):
    """Values without the state of the loss scale, and without what is a mean over clones."""
    is_mean = not MODELS[name].batch_law and way in MEANS
    left_out = ("loss_scale/", "moving_") if is_mean else ("loss_scale/",)
    return {key: values[key] for key in values if not any(word in key for word in left_out)}
