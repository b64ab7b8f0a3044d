"""The text of `--help` and `--helpfull`: common flags, or all flags, by topic."""

import argparse
import dataclasses
import inspect
import shutil
import typing
from typing import Any

from model_deploy.commands.options import Options, kind_of

# Topic of flags -> its line in the help, in the order of the help.
TOPICS = {
    "run": "What this command makes, and where.",
    "deployment": "Clones, their devices, and the way in which they train together.",
    "cluster": "Which processes train together, which one this is, and how long it waits.",
    "inputs": "What is read, and how it becomes batches.",
    "network": "The model and its loss.",
    "optimizer": "How gradients change the variables.",
    "learning rate": "How the learning rate changes over the epochs.",
    "loop": "How long the loop goes on, and what it shows.",
    "checkpoints": "What a run starts from, and what it saves.",
    "evaluation": "When and on what the model is evaluated.",
    "export": "What is exported, and in which form.",
    "other": "Help, and settings from a file.",
}
_LARGEST_WIDTH = 100
_TEXT_COLUMN = 32
# Type of a flag -> placeholder for its value.
_VALUES = {int: "N", float: "X", str: "TEXT"}


def help_text(options_class: type[Options], text: str | None, *, full: bool = True) -> str:
    """Returns the help of a command: its text, then flags by topic, each with its default.

    Args:
      options_class: the options; each field is a flag, whose topic is that of its `option`, or
        else of the class that defines it.
      text: first lines of the help; None for none.
      full: whether to show all flags; if not, and with `short_help`, only common ones.
    """
    width = min(_LARGEST_WIDTH, shutil.get_terminal_size((_LARGEST_WIDTH, 24)).columns)
    formatter = argparse.HelpFormatter("", max_help_position=_TEXT_COLUMN, width=width)
    groups: dict[str, list[argparse.Action]] = {topic: [] for topic in TOPICS}
    fields = dataclasses.fields(options_class)
    shown = fields
    if options_class.short_help and not full:
        shown = tuple(field for field in fields if field.metadata["common"])
    for field in shown:
        groups[_topic_of(options_class, field)].append(_flag(options_class, field))
    groups["other"] += [
        _action(
            "--config=FILE",
            "YAML file with these flags, or recipes/NAME.yaml of the package; of both, what is "
            "given here counts; --name= takes back a text of the file",
        ),
        _action("--help", "print this help"),
    ]
    if options_class.short_help:
        groups["other"].append(_action("--helpfull", "print the help with all flags"))
    for topic, flags in groups.items():
        if flags:
            formatter.start_section(topic)
            formatter.add_text(TOPICS[topic])
            formatter.add_arguments(flags)
            formatter.end_section()
    printed = f"{(text or '').rstrip()}\n\n{formatter.format_help()}".lstrip("\n")
    if len(shown) < len(fields):
        printed += (
            f"\nThese are the flags of most runs; --helpfull has all {len(fields)} of them.\n"
        )
    return printed


def _topic_of(options_class: type[Options], field: "dataclasses.Field[Any]") -> str:
    """Returns the topic of a field, or else of the class that defines it."""
    if field.metadata["topic"] is not None:
        return str(field.metadata["topic"])
    classes = options_class.__mro__
    owner = next(each for each in classes if field.name in inspect.get_annotations(each))
    return str(vars(owner).get("topic", Options.topic))


def _flag(options_class: type[Options], field: "dataclasses.Field[Any]") -> argparse.Action:
    """Returns a field as an entry of the help: name, placeholder, text, choices and default."""
    kind, _ = kind_of(typing.get_type_hints(options_class)[field.name])
    name = f"--[no]{field.name}" if kind is bool else f"--{field.name}={_VALUES[kind]}"
    text = field.metadata["help"]
    if field.metadata["choices"]:
        text += f" (one of: {', '.join(field.metadata['choices'])})"
    shown = str(field.default).lower() if kind is bool else field.default
    if field.default not in (None, "") and field.default is not False:
        text += f" (default: {shown})"
    return _action(name, text)


def _action(name: str, text: str) -> argparse.Action:
    """Returns an entry that `argparse` formats with the given name and text."""
    return argparse.Action([name], "", nargs=0, help=text.replace("%", "%%"))
