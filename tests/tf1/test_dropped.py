"""What Python, NumPy, SciPy, Pillow and PyYAML have dropped, for the modules of a program alone."""

import base64
import collections
import importlib
import inspect
import sys
import threading
import time
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from model_deploy.tf1 import dropped, scipy_misc
from model_deploy.tf1.importing import OldProgram

pytestmark = pytest.mark.one_mode


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("import collections; x = isinstance([], collections.Iterable)", True),
        ("from collections import Mapping, Counter; x = issubclass(Counter, Mapping)", True),
        ("import collections.abc; x = collections.abc.Sized is collections.Sized", True),
        ("import collections; x = collections.namedtuple('A', 'b')(3).b", 3),
        ("import time; x = time.clock() <= time.process_time() and time.sleep(0) is None", True),
        ("from inspect import getargspec; x = getargspec(lambda a, b=2, *c, **d: 0)",
         (["a", "b"], "c", "d", (2,))),
        ("import fractions; x = fractions.gcd(12, 18)", 6),
        ("import base64; x = base64.decodestring(base64.encodestring(b'abc'))", b"abc"),
        ("import numpy.random, numpy; x = numpy.rank(numpy.random.rand(2, 3))", 2),
        ("from numpy import float as f, product; x = f(product([2, 3]))", 6.0),
        ("import numpy as np; x = np.fromstring(b'\\1\\2', np.uint8).tolist()", [1, 2]),
        ("import numpy as np; x = np.fromstring('1,2', sep=',').tolist()", [1.0, 2.0]),
        ("import numpy as np; x = np.fromstring(np.arange(3).tostring(), int, 2).tolist()", [0, 1]),
        ("import numpy as np; x = np.asfarray([1, 2]).dtype.name", "float64"),
        ("import numpy as np; x = np.trapz([1, 2, 3])", 4.0),
        ("import numpy as np; x = np.msort([[2, 1], [1, 3]]).tolist()", [[1, 1], [2, 3]]),
        ("import numpy as np\nx = np.zeros([2])\nx.itemset(1, 5)\nx = x.tolist()", [0.0, 5.0]),
        ("import numpy as np; x = np.array([3, 9]).ptp()", 6),
        ("import numpy as np; x = np.array([1], '<i2').newbyteorder('>').tolist()", [256]),
        ("from scipy.misc import comb; x = comb(4, 2)", 6),
        ("import scipy.misc, scipy.ndimage; x = scipy.misc.logsumexp([0.0])", 0.0),
        ("from scipy import misc; x = hasattr(misc, 'never')", False),
        ("import numpy as np; x = [each.sum() for each in np.array([np.ones(2), np.ones(3)])]",
         [2.0, 3.0]),
        ("import numpy as np; x = np.array([[1], [2, 3]]).tolist()", [[1], [2, 3]]),
        ("import numpy as np; x = np.array([1, 2], np.float32, ndmin=2).tolist()", [[1.0, 2.0]]),
        ("import numpy as np\ntry: x = np.array([[1], [2, 3]], ndmin=2)\n"
         "except ValueError as error: x = 'inhomogeneous' in str(error)", True),
        ("import io, numpy as np\nfile = io.BytesIO()\nnp.savez(file, [1], a=[[1], [2, 3]])\n"
         "file.seek(0)\nx = np.load(file, allow_pickle=True)['a'].tolist()", [[1], [2, 3]]),
        ("import yaml; x = yaml.load('a: [1, 2]')", {"a": [1, 2]}),
        ("import yaml; x = yaml.load('a: 1', Loader=yaml.FullLoader)", {"a": 1}),
        ("from PIL import Image; x = Image.ANTIALIAS == Image.LANCZOS", True),
        ("import PIL.Image as I; x = I.new('L', (4, 2)).resize((2, 1), I.LINEAR).size", (2, 1)),
        ("from PIL import Image, ImageDraw, ImageFont\n"
         "draw, font = ImageDraw.Draw(Image.new('L', (9, 9))), ImageFont.load_default(10)\n"
         "x = font.getsize('ab') == draw.textsize('ab', font) > font.getsize('a')", True),
        ("x = [*{1: 2}.iteritems(), *{1: 2}.iterkeys(), *{1: 2}.itervalues(), {1: 2}.has_key(1)]",
         [(1, 2), 1, 2, True]),
        ("import array; x = array.array('b', [65]).tostring()", b"A"),
        ("import threading; x = threading.Thread().isAlive()", False),
        ("from xml.etree.ElementTree import XML; x = XML('<a><b/></a>').getchildren()[0].tag", "b"),
        ("from xml.etree import ElementTree as E; x = E.tostring(E.fromstring('<a/>'))", b"<a />"),
        ("class A:\n  def tostring(self, *args, **kw): return args, kw\nx = A().tostring(1, b=2)",
         ((1,), {"b": 2})),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:tostring")  # where NumPy has it still
def test_programs_find_what_is_gone(statement, expected, write):
    """Names and methods do what they did, under every kind of import; a program's own win."""
    folder = write({"old_names.py": statement + "\n"})
    with OldProgram([str(folder)]):
        importlib.invalidate_caches()
        assert importlib.import_module("old_names").x == expected


def test_nothing_else_changes():
    """The modules themselves are as before; what nobody ever had is their own error."""
    assert not hasattr(collections, "Iterable")
    assert not hasattr(time, "clock")
    assert hasattr(inspect, "getargspec") == (sys.version_info < (3, 11))
    assert not hasattr(base64, "encodestring")
    for name in ("numpy", "time"):
        with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'never'"):
            _ = dropped.old_module(name).never
    with pytest.raises(AttributeError, match="ndarray' object has no attribute 'isAlive'"):
        dropped.call_method(np.zeros([1]), "isAlive")
    with pytest.raises(ValueError, match="neither keyword-only"):
        dropped.getargspec(lambda *, a: a)
    thread = threading.Thread()
    assert dropped.call_method(thread, "is_alive") is False
    assert dropped.call_method(ET.fromstring("<a/>"), "getchildren") == []


@pytest.fixture
def pillow():
    return pytest.importorskip("PIL.Image")


_GREY = np.arange(6, dtype=np.uint8).reshape([2, 3]) * 50


@pytest.mark.usefixtures("pillow")
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: scipy_misc.imresize(_GREY, 200, "nearest"), _GREY.repeat(2, 0).repeat(2, 1)),
        (lambda: scipy_misc.imresize(_GREY, 2.0, "nearest"), _GREY.repeat(2, 0).repeat(2, 1)),
        (lambda: scipy_misc.imresize(_GREY, (4, 3), "nearest"), _GREY.repeat(2, 0)),
        (lambda: scipy_misc.imresize(_GREY / 250, (2, 3)), np.round(_GREY / 250 * 255)),
        (lambda: scipy_misc.imresize(_GREY, (2, 3), mode="F"), _GREY.astype(np.float32)),
        (lambda: scipy_misc.imrotate(_GREY[:, :2], 180), _GREY[::-1, 1::-1]),
        (lambda: scipy_misc.bytescale([1.0, 2.0, 3.0], high=100), [0, 50, 100]),
        (lambda: scipy_misc.bytescale([[7, 7]]), [[0, 0]]),
        (lambda: scipy_misc.fromimage(scipy_misc.toimage(np.stack([_GREY] * 3)))[..., 1], _GREY),
        (lambda: scipy_misc.imresize(np.zeros([4, 2, 3]), 200).shape, (8, 4, 3)),
    ],
)
def test_images(make, expected):
    """Sizes in percent, as factors and in pixels; other types than bytes are scaled first."""
    np.testing.assert_array_equal(make(), expected)


@pytest.mark.usefixtures("pillow")
def test_files_of_images(tmp_path):
    """An image is read as it was written, in colours or grey."""
    colours = np.stack([_GREY, _GREY, _GREY], 2)
    path = str(tmp_path / "image.png")
    scipy_misc.imsave(path, colours)
    np.testing.assert_array_equal(scipy_misc.imread(path), colours)
    np.testing.assert_array_equal(scipy_misc.imread(path, mode="L"), _GREY)
    grey = scipy_misc.imread(path, flatten=True)
    np.testing.assert_allclose(grey, _GREY, atol=1)
    assert grey.dtype == np.float32


@pytest.mark.usefixtures("pillow")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: scipy_misc.imresize(_GREY, 50, "best"), "interp must be one of nearest"),
        (lambda: scipy_misc.toimage([1, 2]), r"must be real, \[h, w\] or \[h, w, c\], got int64"),
        (lambda: scipy_misc.toimage(np.zeros([2, 2, 2])), "a dimension of 3 or 4"),
        (lambda: scipy_misc.toimage(_GREY, pal=[1]), r"pal must be None, got \[1\]"),
        (lambda: scipy_misc.bytescale([1.0], high=300), "in order, got 0 and 300"),
        (lambda: scipy_misc.bytescale([1.0], cmin=2, cmax=1), "at least cmin, got 1 and 2"),
    ],
)
def test_refusals(make, message):
    """What cannot be is told with field and value."""
    with pytest.raises(ValueError, match=message):
        make()
