"""Compares networks in onnxruntime with the same in TensorFlow.

python -m tests.exporting.onnx_networks
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import exporting, training
from nets import nets_factory

NETWORKS = (
    *("lenet", "cifarnet", "mobilenet_v3_small", "inception_v1", "inception_v3"),
    *("resnet_v1_50", "resnet_v2_50", "mobilenet_v1", "mobilenet_v2", "nasnet_mobile"),
)
# The command ends with 1 where probabilities differ by more.
LARGEST = 1e-5
_CLASSES, _BATCH = 10, 2


def run(path, inputs):
    """What onnxruntime computes, by name."""
    import onnxruntime  # noqa: PLC0415 - an extra

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def difference(name, folder):
    """The largest difference of logits, as a share of the largest one, and of probabilities."""
    options = training.ClassifierOptions(model_name=name)
    classifier = training.Classifier(options, _CLASSES, nets_factory.get_network_fn)
    channels = 1 if name == "lenet" else 3
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        signature = training.Serving(classifier, channels=channels).signatures()["serving_default"]
        session.run(tf.global_variables_initializer())
        _load_weights(session)
        path = Path(folder) / f"{name}.onnx"
        exporting.write_onnx(session, signature, path)
        [images] = signature.inputs.values()
        shape = [_BATCH, *images.shape.as_list()[1:]]
        given = np.random.RandomState(2).uniform(-1, 1, shape).astype(np.float32)
        expected = session.run(signature.numbers, {images: given})
    found = run(path, {"images": given})
    assert found.keys() == expected.keys()
    scale = np.abs(expected["logits"]).max()
    assert np.ptp(expected["logits"]) > 0.01 * scale > 1e-4
    differences = {each: np.abs(found[each] - expected[each]).max() for each in expected}
    return max(differences["logits"] / max(1.0, scale), differences["probabilities"])


def _load_weights(session):
    """Gives variables weights that keep the size of what goes through the layers."""
    random = np.random.RandomState(1)
    for variable in tf.trainable_variables():
        if variable.shape.rank > 1:
            *sizes, last = variable.shape.as_list()
            fan_in = np.prod(sizes if last > 1 else sizes[:-1])  # 1 in depthwise filters
            values = random.normal(0, np.sqrt(2 / fan_in), [*sizes, last])
            variable.load(values.astype(np.float32), session)


def main():
    """Prints a line for each network."""
    largest = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for name in NETWORKS:
            begin = time.monotonic()
            found = difference(name, folder)
            largest = max(largest, found)
            print(f"{name:14} {found:.1e}  {time.monotonic() - begin:.0f} s", flush=True)
            (Path(folder) / f"{name}.onnx").unlink()
    return int(largest > LARGEST)


if __name__ == "__main__":
    tf.disable_eager_execution()
    sys.exit(main())
