"""Every test runs in graph mode, in a graph of its own."""

import argparse
import collections
import gc
import os
import re
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# The first session decides for the whole process, and the order of additions depends on it.
os.environ["TF_NUM_INTRAOP_THREADS"] = "2"
# Otherwise oneDNN keeps the memory of the largest network to the end of the process.
os.environ["TF_ONEDNN_USE_SYSTEM_ALLOCATOR"] = "1"

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.inputs import preprocessing
from model_deploy.inputs.datasets import dataset
from tests import devices, memory, modes

tf.disable_eager_execution()
tf.get_logger().setLevel("ERROR")


def pytest_addoption(parser):
    """`--v1`: the process is one in which a program has called `tf.disable_v2_behavior()`.

    `--gpu`: only tests that are marked so run, with their clones on GPUs.
    """
    parser.addoption("--gpu", action="store_true", help="clones on GPUs, see docs/gpus.md")
    parser.addoption("--v1", action="store_true", help="after tf.disable_v2_behavior()")
    parser.addoption(
        "--slow", type=_part, default=(1, 1), help='which of the slow tests: "3/4", "all", "none"'
    )


def _part(text):
    """The part and the number of parts that `--slow` names; part 0 is empty."""
    named = {"all": "1/1", "none": "0/1"}.get(text, text)
    match = re.fullmatch(r"(\d+)/(\d+)", named)
    if not match or int(match[1]) > int(match[2]):
        raise argparse.ArgumentTypeError(f'must be like "3/4", "all" or "none", got {text!r}')
    return int(match[1]), int(match[2])


def pytest_configure(config):
    """Turns TensorFlow 1's behavior on before any test is imported."""
    config.addinivalue_line("markers", "not_v1(reason): tests the new behavior itself")
    config.addinivalue_line("markers", "one_mode: what it tests is the same code with --v1")
    config.addinivalue_line("markers", "both_modes: of any kind of variables in both modes")
    config.addinivalue_line("markers", "gpu: runs with --gpu too, its clones on GPUs")
    config.addinivalue_line("markers", "needs_gpu: runs with --gpu only")
    modes.set_for_programs(config.getoption("--v1"))
    modes.enter()
    if config.getoption("--gpu") and devices.num_gpus():
        devices.use_gpus()


def pytest_collection_modifyitems(config, items):
    """Keeps the part of the slow tests that is asked for; `--v1`: no `one_mode`, skips `not_v1`."""
    kept = [item for item in items if _is_wanted(item, *config.getoption("--slow"))]
    kept = [item for item in kept if _is_of_mode(item, config.getoption("--v1"))]
    if config.getoption("--v1"):
        kept = [item for item in kept if not item.get_closest_marker("one_mode")]
    kept = _longest_files_first(kept)
    _choose_devices(config, kept)
    if config.getoption("--gpu"):
        kept = [item for item in kept if _uses_gpus(item)]
    if dropped := set(items).difference(kept):
        config.hook.pytest_deselected(items=list(dropped))
    items[:] = kept
    if config.getoption("--v1"):
        for item in items:
            mark = item.get_closest_marker("not_v1")
            if mark:
                [reason] = mark.args
                item.add_marker(pytest.mark.skip(reason=f"with --v1: {reason}"))


def _longest_files_first(items):
    """The tests, those of the files with most slow ones first.

    So the processes that run files side by side end at about the same time, and files whose
    programs wait for each other run beside others that compute.
    """
    num_slow = collections.Counter(item.path for item in items if item.get_closest_marker("slow"))
    return sorted(items, key=lambda item: (-num_slow[item.path], str(item.path)))


def _uses_gpus(item):
    """Whether a test runs with `--gpu`."""
    return any(item.get_closest_marker(name) for name in ("gpu", "needs_gpu"))


def _choose_devices(config, items):
    """Skips, saying why, what needs a GPU where there is none, or where nobody asked for one."""
    asked = config.getoption("--gpu")
    if asked and devices.num_gpus():
        return
    reason = "--gpu: TensorFlow sees no GPU" if asked else "needs a GPU: pytest --gpu"
    for item in items:
        if _uses_gpus(item) and (asked or item.get_closest_marker("needs_gpu")):
            item.add_marker(pytest.mark.skip(reason=reason))


def _is_wanted(item, part, parts):
    """Whether a test is quick, or of this part. Those of a network in a file share its graph."""
    if item.get_closest_marker("slow") is None:
        return True
    case = item.nodeid.partition("[")[2] or item.name
    return zlib.crc32(f"{item.path.name} {case}".encode()) % parts + 1 == part


def _is_of_mode(item, is_v1):
    """Whether a test has the variables that programs of a mode have.

    Programs of TensorFlow 1 have reference variables, others resource variables.
    """
    kind = getattr(item, "callspec", None) and item.callspec.params.get("variable_kind")
    if kind is None or item.get_closest_marker("both_modes"):
        return True
    return kind == ("reference" if is_v1 else "resource")


def pytest_collection_finish():
    """Spares the garbage collector what stays to the end: modules and tests.

    Graphs are built of so many objects that it would go over all of that again and again, an
    eighth of the time that building takes; with `memory.free_what_is_done` after each test it need
    not look often.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


@pytest.fixture(autouse=True)
def graph():
    """A new default graph with a fixed seed."""
    with tf.Graph().as_default() as new_graph:
        tf.set_random_seed(1)
        yield new_graph
    del new_graph
    memory.free_what_is_done()


@pytest.fixture(params=["resource", "reference"])
def variable_kind(request):
    """Runs a test with resource variables, and with reference variables.

    Reference variables come with TensorFlow 1's control flow, as after
    `tf.disable_v2_behavior()`; with the newer one TensorFlow cannot average them.
    """
    resource, new_control_flow = tf.resource_variables_enabled(), tf.control_flow_v2_enabled()
    if request.param == "resource":
        tf.enable_resource_variables()
    else:
        tf.disable_resource_variables()
        tf.disable_control_flow_v2()
    yield request.param
    (tf.enable_resource_variables if resource else tf.disable_resource_variables)()
    (tf.enable_control_flow_v2 if new_control_flow else tf.disable_control_flow_v2)()


@pytest.fixture
def own_registries(monkeypatch):
    """What a test registers is forgotten after it."""
    monkeypatch.setattr(dataset, "_BUILDERS", dict(dataset._BUILDERS))
    families = preprocessing.families
    for table in ("_FAMILIES", "_FAMILY_OF_NETWORK"):
        monkeypatch.setattr(families, table, dict(getattr(families, table)))
