r"""What users rely on, read from the code: `tests/data/interface.json` keeps it.

    python -m tests.interface            # what differs from the kept
    python -m tests.interface --write    # keeps what there is now
    python -m tests.interface --ops FILE # numbers of ops by type, to compare two versions by hand

It is kept as pages of lines: the names of each public room with their arguments, the flags of each
command, and for each of some deployments what programs and checkpoints know it by.
"""

import argparse
import collections
import functools
import importlib
import inspect
import json
import re
import runpy
import sys
import types
import typing
import warnings
from pathlib import Path
from unittest import mock

import tensorflow.compat.v1 as tf
from absl import flags

from model_deploy import DeploymentConfig, deploy
from tests import copies, goldens, modes

KEPT = Path(__file__).parent / "data" / "interface.json"

# What docs/api.md, the other pages for users, README and examples import: rooms with all that
# they list, and single names of rooms and files that are not public otherwise.
_INNER = (
    *("cluster", "commands", "elastic", "embeddings", "estimator", "horovod"),
    *("image_training", "inputs"),
    *("keras", "metrics"),
    *("plan", "runs", "settings", "status", "tf1", "training"),
)
ROOMS = ("model_deploy", *(f"model_deploy.{room}" for room in _INNER))
_NETS = (
    *("all_network_names", "check_network_name", "get_network", "get_network_fn", "network_names"),
    *("networks_map", "arg_scopes_map", "text_networks_map", "text_arg_scopes_map"),
)
SINGLE_NAMES = (
    "model_deploy.all_reduce.session_config",
    "model_deploy.ways.CloneUpdate",
    "model_deploy.deployment.session_config",
    "model_deploy.hooks.session_hooks",
    "model_deploy.launch.launched_again",
    "model_deploy.settings.PRECISIONS",
    *(f"nets.nets_factory.{name}" for name in _NETS),
)
_SCRIPTS = ("train_image_classifier", "eval_image_classifier", "export_image_classifier")
_PROGRAMS = (
    *("checkpoints", "cluster", "launch", "launch.kubernetes", "plan", "profile", "runs", "status"),
    "tf1",
)
_OF_INPUTS = ("inputs.convert", "inputs.download", "inputs.index")
COMMANDS = (*_SCRIPTS, *(f"model_deploy.{name}" for name in (*_PROGRAMS, *_OF_INPUTS)), "nets")
OURS = ("model_deploy", "nets")
_PROTOCOLS = {
    *("__call__", "__contains__", "__enter__", "__exit__"),
    *("__getitem__", "__iter__", "__len__", "__next__"),
}
_UPDATE = "update "
# Values of a model: those that programs fetch by name, and those that are attributes.
_ATTRIBUTES = ("staleness", "global_step", "copies_difference")
_VALUES = ("train_op", "total_loss", "summary_op", *_ATTRIBUTES)


def _case(optimizer, **settings):
    """The settings of a config, and those that are arguments of `deploy`."""
    arguments = settings.keys() & inspect.signature(deploy).parameters
    own = {name: settings.pop(name) for name in arguments}
    return settings, {"optimizer": optimizer, **own}


_ADAM = functools.partial(tf.train.AdamOptimizer, 0.1)
_MOMENTUM = functools.partial(tf.train.MomentumOptimizer, 0.1, 0.9)
_SERVERS = functools.partial(_case, num_ps_tasks=2)
DEPLOYMENTS = {
    "one clone": _case(_ADAM, summarize_gradients=True),
    "two clones": _case(_MOMENTUM, num_clones=2, clip_norm=1.0),
    "copied": _case(_MOMENTUM, num_clones=2, copy_clones=True),
    "accumulated": _case(_MOMENTUM, num_clones=2, accumulate_steps=2, clip_norm=1.0),
    "all-reduce": _case(_ADAM, num_clones=2, all_reduce=True),
    "all-reduce, shared": _case(_MOMENTUM, all_reduce=True, num_replicas=2, global_parts=2),
    "servers": _SERVERS(_ADAM),
    "servers, replicas": _SERVERS(_MOMENTUM, num_replicas=2, replica_id=1, clip_norm=1.0),
    "servers, synchronous": _SERVERS(_MOMENTUM, num_replicas=2, replicas_to_aggregate=2),
    "servers, shared": _SERVERS(_MOMENTUM, num_replicas=2, global_parts=2),
    "asynchronous": _case(_MOMENTUM, num_clones=2, asynchronous=True),
    "bfloat16": _case(_ADAM, num_clones=2, precision="bfloat16"),
    "float16": _case(_MOMENTUM, precision="float16", clip_norm=1.0),
    "batch norm over clones": _case(_MOMENTUM, num_clones=2, sync_batch_norm=True),
    "evaluation": _case(lambda: None, num_clones=2),
}
_OTHER_MODELS = ("one clone", "copied", "all-reduce", "servers, replicas")
GRAPHS = [
    *(("batch_norm", name) for name in DEPLOYMENTS),
    *((model, name) for model in ("slim_mlp", "embedding", "loop") for name in _OTHER_MODELS),
]


def room_page(room):
    """The names of a room: a line for each, and for each member of a class."""
    module = importlib.import_module(room)
    names = module.__all__
    return {key: line for name in names for key, line in lines_of(name, getattr(module, name))}


def single_names_page():
    """The public names of rooms and files that are not public otherwise."""
    page = {}
    for path in SINGLE_NAMES:
        module, _, name = path.rpartition(".")
        page.update(lines_of(path, getattr(importlib.import_module(module), name)))
    return page


def lines_of(name, value):
    """Pairs of names, that of a value and those of its members, and what is kept of each."""
    if isinstance(value, types.ModuleType):
        yield name, "module"
    elif inspect.isclass(value) and not isinstance(value, types.GenericAlias):
        yield from _class_lines(name, value)
    elif inspect.isroutine(value):
        yield name, _arguments(value)
    elif isinstance(value, dict):
        yield name, f"a dict of {', '.join(map(str, sorted(value)))}"
    else:
        plain = isinstance(value, (str, int, float, tuple))
        kind = "an alias" if typing.get_origin(value) else f"a {type(value).__name__}"
        yield name, repr(value) if plain else kind


def _class_lines(name, cls):
    makers = () if getattr(cls, "_is_protocol", False) else ("__init__", "__new__")
    is_made = any(_is_ours(_owner(cls, maker)) for maker in makers)
    yield name, f"class{_arguments(cls)}" if is_made else "class"
    base = next(base for base in cls.__mro__ if not _is_ours(base))
    if base is not object:
        yield f"{name} is a", base.__name__
    fields = [*getattr(cls, "__dataclass_fields__", ()), *getattr(cls, "_fields", ())]
    if fields and fields != list(inspect.signature(cls).parameters):
        yield f"{name} fields", ", ".join(fields)
    for attribute in _set_attributes(cls):
        yield f"{name}.{attribute}", "attribute"
    for member in dir(cls):
        public = member in _PROTOCOLS or not member.startswith("_")
        if public and member not in fields and _is_ours(_owner(cls, member)):
            yield f"{name}.{member}", _member(inspect.getattr_static(cls, member))


def _owner(cls, member):
    return next((base for base in cls.__mro__ if member in vars(base)), None)


def _is_ours(cls):
    return cls is not None and cls.__module__.split(".")[0] in OURS


def _set_attributes(cls):
    """The public attributes that methods set."""
    ours = [base for base in cls.__mro__ if _is_ours(base)]
    pattern = re.compile(r"^ +self\.([a-z]\w*)(?:: .+)? = ", re.MULTILINE)
    return {name for base in ours for name in pattern.findall(inspect.getsource(base))}


def _member(value):
    if isinstance(value, (property, functools.cached_property)):
        return "property"
    if isinstance(value, (classmethod, staticmethod)):
        return f"{type(value).__name__}{_arguments(value.__func__)}"
    return _arguments(value) if inspect.isroutine(value) else "attribute"


def _arguments(function):
    """Names, kinds and defaults of arguments, without types; functions and classes by name."""
    signature = inspect.signature(function)
    bare = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    text = str(signature.replace(parameters=bare, return_annotation=signature.empty))
    return re.sub(
        r"<(?:built-in )?(?:function|class) '?(?:\w+\.)*(\S+?)'?(?: at 0x[0-9a-f]+)?>(?=[,)])",
        r"\1",
        text,
    )


class _FoundError(BaseException):
    """Ends a command where it is about to read its flags."""


def flags_page(command):
    """The flags of a command: kind, default and choices of each. The command does not run."""

    def stop(parser, *args, **kwargs):
        raise _FoundError(parser)

    with (
        mock.patch.object(argparse.ArgumentParser, "parse_args", stop),
        mock.patch.object(flags.FlagValues, "__call__", stop),
        mock.patch.object(sys, "argv", [command]),
        warnings.catch_warnings(),
    ):
        # `runpy` says of what is imported already that it runs once more.
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            runpy.run_module(command, run_name="__main__", alter_sys=True)
        except _FoundError as found:
            (parser,) = found.args
            is_argparse = isinstance(parser, argparse.ArgumentParser)
            return dict(_argparse_lines(parser) if is_argparse else _absl_lines(parser))
    raise AssertionError(f"{command} reads no flags")


def _absl_lines(values):
    for name in values:
        flag = values[name]
        choices = re.search(r" \(one of: (.*)\)$", flag.help)
        line = f"{flag.flag_type()} {flag.default!r}"
        yield f"--{name}", line + (f", of {choices[1]}" if choices else "")


def _argparse_lines(parser):
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        kind = type(action).__name__.strip("_").removesuffix("Action").lower()
        parts = [kind, repr(action.default)]
        if action.type in (int, float):
            parts.append(action.type.__name__)
        if action.nargs is not None:
            parts.append(f"nargs={action.nargs}")
        if action.required and action.option_strings:
            parts.append("required")
        if action.choices and action.metavar is None:  # with one, they are what is installed
            parts.append(f"of {', '.join(action.choices)}")
        yield " ".join(action.option_strings) or action.dest, " ".join(parts)


class _Apart(DeploymentConfig):
    """Has clone i on `CPU:i+1`, apart from what is on the worker's CPU."""

    def clone_device(self, clone_index):
        spec = tf.DeviceSpec.from_string(super().clone_device(clone_index))
        index = spec.device_index + 1
        return spec.replace(device_type="CPU", device_index=index).to_string()


def graph_page(model, deployment):
    """What programs and checkpoints know of a deployment: names, shapes, types, devices."""
    with tf.Graph().as_default():
        return dict(_graph_lines(_deployed(model, deployment)))


def ops_by_type(model, deployment):
    """How many ops of each type a deployment has."""
    with tf.Graph().as_default() as graph:
        _deployed(model, deployment)
        numbers = collections.Counter(op.type for op in graph.get_operations())
    return {"all": sum(numbers.values()), **dict(sorted(numbers.items()))}


def _deployed(model, deployment):
    golden = goldens.GOLDENS[model]
    settings, arguments = DEPLOYMENTS[deployment]
    config = _Apart(**settings)
    batches = copies.batches_of(golden, config.batches_per_step)
    arguments = {**arguments, "optimizer": arguments["optimizer"]()}
    return deploy(config, lambda batches: golden.model_fn(*next(batches)), [batches], **arguments)


def _graph_lines(model):
    yield "owns variables, synchronous", f"{model.owns_variables}, {model.is_synchronous}"
    values = {name: getattr(model, name) for name in _VALUES}
    for i, update in enumerate(model.clone_updates):
        values |= {f"clone {i} {name}": value for name, value in update._asdict().items()}
    for name, value in values.items():
        fetched = "" if name.endswith(_ATTRIBUTES) or value is None else f"{value.name} "
        yield name, "None" if value is None else fetched + _tensor(value)
    tags = [tf.get_static_value(each.op.inputs[0]) for each in model.summary_op.op.inputs]
    yield "summaries", " ".join(sorted(tag.item().decode() for tag in tags))
    for i, clone in enumerate(model.clones):
        outputs = [tensor.name for tensor in tf.nest.flatten(clone.outputs) if tensor is not None]
        yield f"clone {i}", f"{clone.scope!r} on {clone.device}: {' '.join(outputs) or None}"
    trained = {variable.ref() for variable in tf.trainable_variables()}
    for kind, variables in (("global", tf.global_variables()), ("local", tf.local_variables())):
        for variable in variables:
            note = ", trained" if variable.ref() in trained else ""
            yield f"{kind} variable {variable.op.name}", _tensor(variable) + note
    for loss in tf.losses.get_losses():
        yield f"loss {loss.name}", f"on {loss.device}"
    updates = {
        # Of a resource variable it is an op in the scope of what a reference variable gives.
        re.sub(r"/Assign(Sub|Add)?VariableOp$", "", op.name): op.device
        for op in (getattr(each, "op", each) for each in tf.get_collection(tf.GraphKeys.UPDATE_OPS))
    }
    yield "updates", " ".join(updates)
    if tf.resource_variables_enabled():
        yield from ((f"{_UPDATE}{name}", f"on {device}") for name, device in updates.items())


def _tensor(value):
    return f"{value.dtype.base_dtype.name} {value.shape} on {value.device}"


PAGES = {
    **{f"names of {room}": functools.partial(room_page, room) for room in ROOMS},
    "single names": single_names_page,
    **{f"flags of {command}": functools.partial(flags_page, command) for command in COMMANDS},
    **{f"graph: {graph[0]}, {graph[1]}": functools.partial(graph_page, *graph) for graph in GRAPHS},
}


def kept_pages():
    """The kept pages: lines by name.

    Those of TensorFlow 1 without the devices of updates, which are beside reference variables.
    """
    pages = json.loads(KEPT.read_text())
    if tf.resource_variables_enabled():
        return pages
    return {
        page: {name: line for name, line in lines.items() if not name.startswith(_UPDATE)}
        for page, lines in pages.items()
    }


def differences(kept, found):
    """What a user of the kept lines would notice, a line for each, by name."""
    return [
        *(f"gone: {key}: {kept[key]}" for key in sorted(kept.keys() - found)),
        *(f"new: {key}: {found[key]}" for key in sorted(found.keys() - kept)),
        *(
            f"changed: {key}\n  kept:  {kept[key]}\n  found: {found[key]}"
            for key in sorted(kept.keys() & found)
            if kept[key] != found[key]
        ),
    ]


def main():
    """Writes, or compares."""
    parser = argparse.ArgumentParser(prog="python -m tests.interface", description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep what there is now")
    parser.add_argument("--ops", help="file for the numbers of ops by type")
    options = parser.parse_args()
    modes.enter()
    tf.get_logger().setLevel("ERROR")
    if options.ops:
        numbers = {f"{model}, {name}": ops_by_type(model, name) for model, name in GRAPHS}
        Path(options.ops).write_text(json.dumps(numbers, indent=1) + "\n")
        return
    pages = {name: make() for name, make in PAGES.items()}
    if options.write:
        KEPT.write_text(json.dumps(pages, indent=1, sort_keys=True) + "\n")
        return
    kept = kept_pages()
    for name in sorted(kept.keys() | pages):
        for line in differences(kept.get(name, {}), pages.get(name, {})):
            print(f"{name}: {line}")


if __name__ == "__main__":
    main()
