"""The table of docs/from_tf_slim.md that says where each part of `tf.contrib` is now.

`python -m tests.tf1.contrib_table --write` writes it anew.
"""

import importlib
import sys
from pathlib import Path

from model_deploy.tf1.contrib import table
from model_deploy.tf1.gone import advice

PAGE = Path(__file__).parents[2] / "docs" / "from_tf_slim.md"
_START, _END = "<!-- contrib: start -->\n", "<!-- contrib: end -->\n"
# Package -> how the table calls it.
_PACKAGES = {
    "tf_slim": "tf-slim",
    "tf_keras": "tf-keras",
    "tensorflow": "TensorFlow",
    "tensorboard": "TensorBoard",
    "model_deploy": "`model_deploy.estimator`",
}
_WRITTEN = "model_deploy.tf1.contrib."


def rows():
    """The table, as lines of Markdown; last the parts of which nothing is left."""
    lines = ["| `tf.contrib.` | is in | written here | other names |", "|---|---|---|---|"]
    empty = []
    for part, entry in sorted(table._PARTS.items()):
        packages = list(
            dict.fromkeys(
                _PACKAGES[name.partition(".")[0]]
                for name in entry.providers
                if not name.startswith(_WRITTEN)
            )
        )
        names = [
            name
            for provider in entry.providers
            if provider.startswith(_WRITTEN)
            for name in public_names(provider)
        ]
        names += [
            name for name, make in entry.extras.items() if _is_ours(make()) and "." not in name
        ]
        if not packages and not names:
            empty.append(f"`{part}`")
            continue
        _, _, instead = advice(f"tensorflow.contrib.{part}.other").partition(": ")
        written = ", ".join(f"`{name}`" for name in sorted(names))
        lines.append(f"| `{part}` | {', '.join(packages)} | {written} | {instead} |")
    lines += ["", f"Nothing is left of {', '.join(empty)}."]
    return "\n".join(lines) + "\n"


def public_names(module):
    """The functions and classes that a module of this project makes, or has of the library."""
    loaded = importlib.import_module(module)
    listed = getattr(loaded, "__all__", ())
    return [
        name
        for name, value in vars(loaded).items()
        if not name.startswith("_") and callable(value) and (_is_ours(value) or name in listed)
    ]


def _is_ours(value):
    owner = getattr(value, "__module__", None) or getattr(value, "__name__", "")
    return owner.startswith("model_deploy.tf1.")


def in_page():
    """The table that the page has."""
    return PAGE.read_text().split(_START, 1)[1].split(_END, 1)[0].strip("\n") + "\n"


def main():
    text = PAGE.read_text()
    before, rest = text.split(_START, 1)
    PAGE.write_text(f"{before}{_START}\n{rows()}\n{_END}{rest.split(_END, 1)[1]}")


if __name__ == "__main__" and "--write" in sys.argv:
    main()
