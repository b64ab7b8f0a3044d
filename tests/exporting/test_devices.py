"""Files for other programs: ONNX, and TensorFlow Lite in 32, 16 and 8 bits."""

import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import exporting, training
from nets import nets_factory
from tests.exporting import onnx_networks
from tests.exporting.test_serving import _example
from tests.inputs.files import encode, noise

# tf.lite.Interpreter says that it will move to a package of its own.
pytestmark = [pytest.mark.one_mode, pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter")]

WEIGHTS = np.array([[0.5, -1.0], [0.3, 0.7], [-0.2, 0.1]], np.float32)
INPUTS = np.random.RandomState(3).uniform(-1, 1, [200, 3]).astype(np.float32)


def _product():
    """A session, and a signature of a product of matrices, with words as a second output."""
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    weights = tf.get_variable("weights", initializer=WEIGHTS)
    y = tf.matmul(x, weights, name="y")
    words = tf.fill([tf.shape(x)[0]], "word", name="words")
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return session, training.Signature({"x": x}, {"y": y, "words": words})


# Of weights of at most 1: half a unit of 11 bits each; in 8 bits half a step of 1/127 for each
# weight, and of 2/255 for each input, and of the outputs' range, below 3.4, over 255.
BOUNDS = {"float32": 1e-6, "float16": 3 * 2**-12, "int8": 3 / 254 + 1.8 / 255 + 3.4 / 510}


@pytest.mark.parametrize("values", exporting.TYPES)
def test_tflite(tmp_path, values):
    """It takes and gives float32 in each type, as near to the product as the type lets it."""
    session, signature = _product()
    calibration = INPUTS if values == "int8" else None
    exporting.write_tflite(session, signature, tmp_path / "m.tflite", values, calibration)
    found = _run_tflite(tmp_path / "m.tflite", INPUTS)
    assert found.dtype == np.float32
    largest = np.abs(found - INPUTS @ WEIGHTS).max()
    assert largest < BOUNDS[values]
    assert (largest > 1e-6) == (values != "float32")


def _run_tflite(path, inputs):
    interpreter = tf.lite.Interpreter(model_path=str(path))
    [taken], [given] = interpreter.get_input_details(), interpreter.get_output_details()
    interpreter.resize_tensor_input(taken["index"], inputs.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(taken["index"], inputs)
    interpreter.invoke()
    return interpreter.get_tensor(given["index"])


@pytest.mark.parametrize(
    ("values", "calibration", "message"),
    [
        ("int4", None, "values must be one of float32, float16, int8, got 'int4'"),
        ("int8", None, "calibration must have examples for int8 alone, got None for int8"),
        ("int8", INPUTS[:0], r"for int8 alone, got \(0, 3\) for int8"),
        ("float16", INPUTS, r"for int8 alone, got \(200, 3\) for float16"),
    ],
)
def test_tflite_rejects(tmp_path, values, calibration, message):
    """What does not go together is named, and no file is made."""
    with pytest.raises(ValueError, match=message):
        exporting.write_tflite(*_product(), tmp_path / "m.tflite", values, calibration)
    assert not list(tmp_path.iterdir())


def test_an_op_without_its_like(tmp_path):
    """An op that TensorFlow Lite lacks is named in a line."""
    x = tf.placeholder(tf.float32, [2, 2], name="x")
    signature = training.Signature({"x": x}, {"y": tf.linalg.expm(x) + tf.linalg.det(x)})
    with pytest.raises(ValueError, match="output_tflite must be of ops that TensorFlow Lite has"):
        exporting.write_tflite(tf.Session(), signature, tmp_path / "m.tflite")
    assert not list(tmp_path.iterdir())


def test_onnx(tmp_path):
    """It has the names of the signature, and the values to 1e-5 in onnxruntime."""
    if importlib.util.find_spec("tf2onnx") is None:
        with pytest.raises(ValueError, match=r"got none: pip install 'model_deploy\[onnx\]'"):
            exporting.write_onnx(*_product(), tmp_path / "m.onnx")
        pytest.skip("needs pip install 'model_deploy[onnx]'")
    session, signature = _product()
    exporting.write_onnx(session, signature, tmp_path / "m.onnx")
    found = onnx_networks.run(tmp_path / "m.onnx", {"x": INPUTS})
    assert found.keys() == {"y"}
    np.testing.assert_allclose(found["y"], INPUTS @ WEIGHTS, rtol=0, atol=1e-6)
    assert onnx_networks.difference("lenet", tmp_path) < 1e-5
    x = tf.placeholder(tf.float32, [2, 2], name="matrix")
    # An op that tf2onnx logs and leaves in the file, and a loop, which ends it.
    for y in (tf.linalg.inv(x), tf.linalg.expm(x)):
        signature = training.Signature({"x": x}, {"y": y})
        with pytest.raises(
            ValueError, match=r"\Aoutput_onnx must be of ops that ONNX has, got .+\Z"
        ):
            exporting.write_onnx(tf.Session(), signature, tmp_path / "no.onnx")
        assert not (tmp_path / "no.onnx").exists()
    for opset in (0, 999):
        with pytest.raises(ValueError, match=rf"\Aopset must be 1 to \d+, got {opset}\Z"):
            exporting.write_onnx(session, signature, tmp_path / "no.onnx", opset)


COMMANDS = """
import json, sys
sys.modules["model_deploy"] = sys.modules["nets"] = sys.modules["tf_slim"] = None
from tensorflow.python.tools import saved_model_cli
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["saved_model_cli", *arguments]
    try:
        saved_model_cli.main()
    except SystemExit as end:
        if end.code:
            raise
"""


@pytest.mark.slow
def test_saved_model_cli(tmp_path):
    """TensorFlow's command runs all signatures, in a process without this package."""
    classifier = training.Classifier(
        training.ClassifierOptions(model_name="lenet"), 4, nets_factory.get_network_fn
    )
    with tf.Graph().as_default(), tf.Session() as session:
        signatures = training.Serving(classifier, channels=1).signatures()
        session.run(tf.global_variables_initializer())
        training.write_saved_model(session, signatures, tmp_path / "model")
        encoded = encode(noise([28, 28, 1]))
        given = {
            "serving_default": ("images", np.zeros([1, 28, 28, 1], np.float32)),
            "encoded_images": ("encoded_images", np.array([encoded])),
            "serialized_examples": ("examples", np.array([_example(encoded)])),
        }
        commands, expected = [], []
        for name, (key, values) in given.items():
            np.save(tmp_path / f"{name}.npy", values)
            command = ["run", f"--dir={tmp_path / 'model'}", "--tag_set=serve"]
            command += [f"--signature_def={name}", f"--inputs={key}={tmp_path / f'{name}.npy'}"]
            commands.append([*command, f"--outdir={tmp_path / name}"])
            signature = signatures[name]
            expected.append(
                session.run(signature.outputs["logits"], {signature.inputs[key]: values})
            )
    program = [sys.executable, "-c", COMMANDS, json.dumps(commands)]
    done = subprocess.run(program, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = [np.load(tmp_path / name / "logits.npy") for name in given]
    np.testing.assert_allclose(found[0], expected[0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(found[1:], expected[1:], rtol=0, atol=1e-6)
    np.testing.assert_array_equal(found[1], found[2])
