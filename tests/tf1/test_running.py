"""`python -m model_deploy.tf1`: what is run, what it gets, and mistakes in one line."""

import sys

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.tf1 import running
from model_deploy.tf1.__main__ import main

pytestmark = pytest.mark.one_mode


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs a command line in this process; returns its exit status, output and errors.

    TensorFlow's behavior is a matter of the whole process, and stays as it is.
    """
    asked = []
    monkeypatch.setattr(running, "as_in_tensorflow_1", asked.append)

    def run_main(*arguments):
        asked.clear()
        status = main([str(each) for each in arguments])
        out, err = capsys.readouterr()
        run_main.resource_variables = asked
        return status, out, err

    return run_main


def test_a_file_runs_as_main(run, write):
    """It has its name, its file and its arguments, and sees TensorFlow 1; the line is said once."""
    folder = write(
        {
            "program.py": (
                "import sys\nimport tensorflow as tf\nimport helper\n"
                "if __name__ == '__main__':\n"
                "  print(__file__ == sys.argv[0], sys.argv[1:], tf.contrib.__name__)\n"
            ),
            "helper.py": "from datasets import mnist\n",
        }
    )
    before = sys.argv, sys.modules["__main__"]
    path = folder / "program.py"
    status, out, err = run(path, "--flag=1", "-m", "--path=x")
    assert (status, out) == (0, "True ['--flag=1', '-m', '--path=x'] tensorflow.contrib\n")
    assert err == (
        f"{path} runs as a program of TensorFlow 1, with reference variables; it gets "
        "datasets.mnist\n"
    )
    assert (sys.argv, sys.modules["__main__"]) == before
    assert run.resource_variables == [False]


def test_a_module_runs_with_its_package(run, write, monkeypatch):
    """`-m` takes a module of a package, which may import from the package."""
    folder = write(
        {
            "package/__init__.py": "",
            "package/first.py": "from . import second\nprint(__name__, second.value)\n",
            "package/second.py": "import tensorflow as tf\nvalue = hasattr(tf, 'contrib')\n",
            "package/__main__.py": "from package import second\nprint(__package__, second.value)\n",
        }
    )
    monkeypatch.chdir(folder)
    status, out, err = run("--resource_variables", "-m", "package.first", "1")
    assert (status, out) == (0, "__main__ True\n")
    assert err.startswith("package.first runs as a program of TensorFlow 1, with resource var")
    assert run.resource_variables == [True]
    assert run("-m", "package")[:2] == (0, "package True\n")


def test_further_folders(run, write):
    """`--path` adds folders, whose modules see TensorFlow 1 and whose packages win over ours."""
    folder = write(
        {
            "main/program.py": "from datasets import mine\nimport other\nprint(mine.a, other.b)\n",
            "slim/datasets/__init__.py": "",
            "slim/datasets/mine.py": "a = 1\n",
            "more/other.py": "import tensorflow as tf\nb = hasattr(tf, 'contrib')\n",
        }
    )
    paths = f"--path={folder / 'slim'}", f"--path={folder / 'more'}"
    status, out, err = run(*paths, folder / "main" / "program.py")
    assert (status, out) == (0, "1 True\n")
    assert "it gets nothing but tensorflow" in err


def test_exit_status_and_errors_are_the_programs(run, write):
    """What a program raises, and where it exits, is left alone."""
    folder = write(
        {
            "exits.py": "import sys\nsys.exit(7)\n",
            "fails.py": "raise ValueError('its own')\n",
            "misses.py": "import missing_module\n",
            "lacks.py": "class A: pass\nA().b\n",
        }
    )
    with pytest.raises(SystemExit) as caught:
        run(folder / "exits.py")
    assert caught.value.code == 7
    with pytest.raises(ValueError, match="its own"):
        run(folder / "fails.py")
    with pytest.raises(ModuleNotFoundError, match="missing_module"):
        run(folder / "misses.py")
    with pytest.raises(AttributeError, match="no attribute 'b'"):
        run(folder / "lacks.py")


_GONE = {
    "attribute": ("import tensorflow as tf\ntf.mul(1, 2)", 2, "tf.mul is gone since TensorFlow 1"),
    "below": (
        "import tensorflow as tf\n\ntf.train.SummaryWriter('x')",
        3,
        "tf.train.SummaryWriter is gone since TensorFlow 1.0: use tf.summary.FileWriter",
    ),
    "import": ("from tensorflow.contrib import never", 1, "tf.contrib.never is gone since"),
    "of_gone_part": (
        "from tensorflow.contrib import cudnn_rnn\ncudnn_rnn.CudnnLSTM",
        2,
        "tf.contrib.cudnn_rnn.CudnnLSTM is gone since TensorFlow 2.0: use tf.keras.layers.LSTM",
    ),
    "of_module": (
        "from tensorflow.contrib.layers import bucketized_column",
        1,
        "bucketized_column is gone since TensorFlow 2.0: use tf.feature_column",
    ),
    "unknown": ("import tensorflow.models.rnn", 1, "tf.models.rnn is in no release of TensorFlow"),
}
_PYTHON_2 = {
    "print": ("x = 1\nprint x", 2, "this is no Python 3: Missing parentheses"),
    "except": ("try:\n  pass\nexcept ValueError, e:\n  pass", 3, "this is no Python 3: "),
    "backquotes": ("x = `1`", 1, "this is no Python 3: "),
    "xrange": ("for i in xrange(3): pass", 1, "name 'xrange' is not defined"),
    "unicode": ("\n\nunicode(3)", 3, "name 'unicode' is not defined"),
    "next": ("iter([]).next()", 1, "no attribute 'next'"),
    "keys": ("{1: 2}.keys()[0]", 1, "'dict_keys' object is not subscriptable"),
    "map": ("len(map(str, []))", 1, "object of type 'map' has no len()"),
    "range": ("range(3) + [4]", 1, "'range' and 'list'"),
    "sort": ("{}.keys().sort()", 1, "'dict_keys' object has no attribute 'sort'"),
    "cPickle": ("import cPickle", 1, "No module named 'cPickle'"),
    "to_file": ("import sys\nprint >>sys.stderr, 1", 2, "for >>: 'builtin_function_or_method'"),
    "cmp": ("sorted([], cmp=max)", 1, "'cmp'"),
    "izip": ("import itertools\nitertools.izip([])", 2, "no attribute 'izip'"),
    "maxint": ("import sys\nsys.maxint", 2, "no attribute 'maxint'"),
}


@pytest.mark.parametrize("is_imported", [False, True], ids=["program", "module"])
@pytest.mark.parametrize("kind", [*_GONE, *_PYTHON_2])
def test_what_cannot_run_is_told_in_one_line(kind, is_imported, run, write):
    """The line names file and line of the program, what is wrong and what to use."""
    code, line, message = (_GONE | _PYTHON_2)[kind]
    folder = write({"broken.py": code + "\n", "imports.py": "import broken\n"})
    status, out, err = run(folder / ("imports.py" if is_imported else "broken.py"))
    assert (status, out) == (1, "")
    [said, error] = err.splitlines()
    assert "runs as a program of TensorFlow 1" in said
    assert error.startswith(f"error: {folder / 'broken.py'}, line {line}: ")
    assert message in error
    assert ("Python 2 is not run" in error) == (kind in _PYTHON_2)


def test_programs_may_catch_what_is_gone(run, write):
    """`except ImportError` and `hasattr` work as programs expect."""
    code = (
        "import tensorflow as tf\n"
        "try:\n  from tensorflow.contrib.cudnn_rnn import CudnnLSTM\n"
        "except ImportError:\n  CudnnLSTM = None\n"
        "print(CudnnLSTM, hasattr(tf, 'mul'), tf.__version__)\n"
    )
    folder = write({"careful.py": code})
    assert run(folder / "careful.py")[1] == f"None False {tf.__version__}\n"


def test_no_program(run, folder, monkeypatch):
    """A program that is not there is an error in one line."""
    monkeypatch.chdir(folder)
    for arguments, message in (
        (["missing.py"], "program must be a file of Python, got 'missing.py'"),
        (["-m", "missing"], "module must be one that can be imported, got 'missing'"),
    ):
        status, _, err = run(*arguments)
        assert (status, err.splitlines()[-1]) == (1, f"error: {message}")


@pytest.mark.slow
@pytest.mark.parametrize("resource", [False, True])
def test_process_is_as_in_tensorflow_1(resource, write, run_python):
    """Graphs, shapes and variables are those of TensorFlow 1, whose deprecations nobody reads."""
    folder = write(
        {
            "program.py": (
                "import tensorflow as tf\n"
                "x = tf.placeholder(tf.float32, [None, 3])\n"
                "with tf.name_scope(None, 'scope', [x]) as scope:\n"
                "  y = tf.layers.dense(x, tf.Dimension(2))\n"
                "print(scope, x.shape[0].value == None, x.shape[1])\n"
                "print([v.op.type for v in tf.global_variables()])\n"
                "tf.nn.rnn_cell.BasicLSTMCell(2); tf.to_float(x)\n"
            )
        }
    )
    options = ["--resource_variables"] * resource
    status, log = run_python("-m", "model_deploy.tf1", *options, folder / "program.py")
    assert status == 0, log
    kind = "VarHandleOp" if resource else "VariableV2"
    *printed, said = log.splitlines()
    assert printed == ["scope/ True 3", str([kind, kind])]
    assert f"with {'resource' if resource else 'reference'} variables" in said
