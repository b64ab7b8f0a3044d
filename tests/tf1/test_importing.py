"""What modules of an old program import, and what all others go on to import."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow

from model_deploy.tf1.datasets import dataset_factory
from model_deploy.tf1.importing import OldProgram

pytestmark = pytest.mark.one_mode

# What a module sees: whether `tf.contrib` is there, and whether `np.float` is.
_LOOKS = (
    "import tensorflow as tf\nimport numpy as np\n"
    "seen = hasattr(tf, 'contrib'), hasattr(np, 'asscalar')\n"
)


def _import(name):
    importlib.invalidate_caches()
    return importlib.import_module(name)


def test_modules_of_the_program_see_tensorflow_1(write):
    """Those in its folder do, and so do packages in it, whatever kind of import they use."""
    folder = write(
        {
            "old_top.py": _LOOKS,
            "old_package/__init__.py": "from . import first\n",
            "old_package/first.py": _LOOKS + "from .below.second import seen as below\n",
            "old_package/below/__init__.py": "",
            "old_package/below/second.py": _LOOKS + "from .. import first\n",
        }
    )
    with OldProgram([str(folder)]):
        assert _import("old_top").seen == (True, True)
        first = _import("old_package").first
    assert first.seen == (True, True)
    assert first.below == (True, True)
    assert sys.modules["old_package.below.second"].first is first


def test_all_others_see_what_they_always_see(write):
    """Modules of other folders, of installed packages and of libraries do."""
    folder = write(
        {
            "program/old_main.py": _LOOKS + "import other_module, installed_module\n",
            "program/venv/lib/site-packages/installed_module.py": _LOOKS,
            "elsewhere/other_module.py": _LOOKS,
        }
    )
    sys.path += [
        str(folder / "elsewhere"),
        str(folder / "program" / "venv" / "lib" / "site-packages"),
    ]
    with OldProgram([str(folder / "program")]):
        main = _import("old_main")
    assert main.seen == (True, True)
    wanted = False, hasattr(np, "asscalar")
    assert (main.other_module.seen, main.installed_module.seen) == (wanted, wanted)
    assert not hasattr(tensorflow, "contrib")
    assert importlib.import_module("tensorflow") is tensorflow


def test_after_the_program(write):
    """Modules that are imported after the `with` block see what they always see; an import in a
    function of the program is the program's, also then.
    """
    lazy = "def look():\n  import tensorflow as tf\n  return tf.contrib\n"
    folder = write({"late_module.py": _LOOKS, "old_lazy.py": lazy})
    with OldProgram([str(folder)]):
        module = _import("old_lazy")
    assert module.look().__name__ == "tensorflow.contrib"
    assert _import("late_module").seen == (False, hasattr(np, "asscalar"))
    assert not [finder for finder in sys.meta_path if "tf1" in type(finder).__module__]


@pytest.mark.parametrize(
    ("statement", "supplied"),
    [
        ("from datasets import dataset_factory as found", "datasets.dataset_factory"),
        ("import datasets.dataset_factory; found = datasets.dataset_factory", None),
        ("from datasets.dataset_factory import get_dataset as found", None),
        ("from deployment import model_deploy as found", "deployment.model_deploy"),
        ("from preprocessing import vgg_preprocessing as found", None),
        ("from nets.lenet import lenet as found", "nets.lenet.lenet"),
    ],
)
def test_packages_of_slim_are_supplied(statement, supplied, write):
    """Every kind of import gives ours, and it is noted."""
    folder = write({"old_main.py": statement + "\n"})
    with OldProgram([str(folder)]) as program:
        found = _import("old_main").found
    owner = found.__name__ if hasattr(found, "__path__") or "." in found.__name__ else None
    owner = owner or found.__module__
    assert owner.startswith(("model_deploy.", "nets."))
    assert supplied is None or program.supplied == [supplied]
    assert program.supplied
    assert "datasets" not in sys.modules


def test_packages_of_the_program_win(write):
    """Where its folder has a package `datasets`, this is imported; others are still ours."""
    folder = write(
        {
            "datasets/__init__.py": "",
            "datasets/dataset_factory.py": _LOOKS,
            "old_main.py": (
                "from datasets import dataset_factory\n"
                "from preprocessing import preprocessing_factory\n"
            ),
        }
    )
    with OldProgram([str(folder)]) as program:
        module = _import("old_main")
    assert module.dataset_factory.__file__ == str(folder / "datasets" / "dataset_factory.py")
    assert module.dataset_factory.seen == (True, True)
    assert module.preprocessing_factory.__name__.startswith("model_deploy.tf1.")
    assert program.supplied == ["preprocessing.preprocessing_factory"]
    assert dataset_factory.__name__ == "model_deploy.tf1.datasets.dataset_factory"


def test_what_was_supplied_is_noted_in_order(write):
    """Plain `tensorflow` is not worth a word; each module is noted once."""
    folder = write(
        {
            "old_main.py": (
                "import tensorflow as tf\n"
                "import tensorflow.contrib.slim as slim\n"
                "from tensorflow.contrib import layers, framework\n"
                "from tensorflow.contrib import layers as again\n"
                "import tensorflow.examples.tutorials.mnist.input_data as data\n"
            )
        }
    )
    with OldProgram([str(folder)]) as program:
        module = _import("old_main")
    assert program.supplied == [
        "tensorflow.contrib.slim",
        "tensorflow.contrib.layers",
        "tensorflow.contrib.framework",
        "tensorflow.examples.tutorials.mnist.input_data",
    ]
    assert module.again is module.layers
    assert callable(module.data.read_data_sets)


@pytest.mark.parametrize(
    ("statement", "use"),
    [
        ("import tensorflow.contrib.cudnn_rnn.python.ops as part", "part.CudnnLSTM"),
        ("from tensorflow.contrib.gan.python.losses import losses_impl as part", "part.loss"),
        ("from tensorflow.contrib.cudnn_rnn import CudnnLSTM", None),
        ("from tensorflow.contrib.cudnn_rnn.python.layers.cudnn_rnn import CudnnLSTM", None),
    ],
)
def test_what_is_gone(statement, use, write):
    """A module of `tf.contrib` that is nowhere can be imported; what it had says what to use. To
    import that is an `ImportError`, which programs catch.
    """
    folder = write({"old_main.py": f"{statement}\ndef use(): return {use}\n"})
    with OldProgram([str(folder)]):
        message = r"is gone since TensorFlow 2\.0: use"
        with pytest.raises(AttributeError if use else ImportError, match=message):
            _import("old_main").use()


def test_files_of_the_program(write):
    """Its folder and all below are the program's, but for what is installed, and for ours."""
    folder = write({"program/a.py": "", "other/b.py": "", "program-2/c.py": ""})
    program = OldProgram([str(folder / "program")])
    assert program.holds(str(folder / "program" / "a.py"))
    assert program.holds(str(folder / "program" / "deep" / "d.py"))
    for path in ("other/b.py", "program-2/c.py", "program/env/site-packages/x.py"):
        assert not program.holds(str(folder / path))
    assert not program.holds(None)
    assert not OldProgram(["/"]).holds(dataset_factory.__file__)


def test_a_program_in_a_working_copy_of_this_project():
    """Our own packages beside it are ours, not the program's."""
    root = Path(__file__).parents[2]
    if root not in Path(dataset_factory.__file__).parents:
        pytest.skip("the package is installed elsewhere")
    program = OldProgram([str(root)])
    assert not program.holds(str(root / "nets" / "lenet.py"))
    assert program.holds(str(root / "tests" / "tf1" / "programs" / "lstm_texts.py"))
    assert not program._has("nets")


@pytest.mark.parametrize(
    ("files", "supplied"),
    [
        ({"datasets/mnist/train.tfrecord": ""}, True),
        ({"datasets/own.py": "a = 1\n"}, False),
        ({"datasets/deep/own.py": "a = 1\n"}, False),
    ],
    ids=["data", "module", "module below"],
)
def test_folder_without_init(files, supplied, write):
    """A folder of data beside the program hides no package; one of modules does."""
    folder = write({**files, "old_main.py": "import datasets as found\n"})
    with OldProgram([str(folder)]):
        found = _import("old_main").found
    sys.modules.pop("datasets", None)
    assert (found.__name__ == "model_deploy.tf1.datasets") == supplied


@pytest.mark.parametrize(
    "statement",
    [
        "from datasets import never",
        "import datasets.never",
        "from datasets.never import name",
        "import datasets.mnist.never",
    ],
)
def test_what_a_supplied_package_lacks(statement, write):
    """It is an `ImportError`, which programs catch, and speaks of the program's name for it."""
    folder = write({"old_main.py": statement + "\n"})
    with (
        OldProgram([str(folder)]),
        pytest.raises(ImportError, match=r"'(never|datasets\.\S+)'.*model_deploy supplies"),
    ):
        _import("old_main")
