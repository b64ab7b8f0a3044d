"""The scripts that train and evaluate MobileNet v1 on ImageNet."""

import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from nets import mobilenet_v1_eval, mobilenet_v1_train
from tests.inputs import files
from tests.processes.harness import Processes

NUM_IMAGES = 12


@pytest.fixture(autouse=True)
def settings():
    """Leaves the flags of both scripts as they were."""
    scripts = (mobilenet_v1_train, mobilenet_v1_eval)
    before = [script.FLAGS.flag_values_dict() for script in scripts]
    yield
    for script, values in zip(scripts, before, strict=True):
        set_flags(script, **values)


def set_flags(script, **values):
    """Sets flags of a script."""
    for name, value in values.items():
        setattr(script.FLAGS, name, value)


@pytest.fixture
def imagenet(tmp_path):
    """A folder with a dozen images of two classes in the form of ImageNet."""
    utils = pytest.importorskip("model_deploy.tf1.datasets.dataset_utils")
    random = np.random.RandomState(0)
    for split in ("train", "validation"):
        with tf.io.TFRecordWriter(str(tmp_path / f"{split}-00000-of-00001")) as writer:
            for number in range(NUM_IMAGES):
                jpeg = files.encode(random.randint(0, 255, [40, 48, 3]).astype(np.uint8), "jpeg")
                example = utils.image_to_tfexample(jpeg, b"JPEG", 40, 48, 1 + number % 2)
                writer.write(example.SerializeToString())
    (tmp_path / "labels.txt").write_text("0:background\n1:one\n2:two\n")
    return tmp_path


def test_schedules():
    """From a checkpoint training starts more slowly, and quantization might begin at once."""
    train = mobilenet_v1_train
    assert (train.get_learning_rate(), train.get_quant_delay()) == (0.045, 250_000)
    assert train.get_checkpoint_init_fn() is None
    set_flags(train, fine_tune_checkpoint="somewhere")
    assert (train.get_learning_rate(), train.get_quant_delay()) == (1e-4, 0)


@pytest.mark.parametrize("script", [mobilenet_v1_train, mobilenet_v1_eval])
def test_quantize(script):
    """Quantization, which went with TensorFlow 1, is refused before anything is read."""
    set_flags(script, quantize=True)
    with pytest.raises(ValueError, match=r"^quantize must be False: .*, got True"):
        script.build_model()


def test_metrics():
    """Accuracy counts the first class, recall the first five, of all batches."""
    logits = np.eye(8, dtype=np.float32)[[0, 1, 2, 7]] + np.linspace(0, 0.5, 8, dtype=np.float32)
    updates = mobilenet_v1_eval.metrics(tf.constant(logits), tf.constant([0, 1, 6, 0], tf.int64))
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        # Right, right, fourth at most, last.
        assert sess.run(updates) == [0.5, 0.75]


SMALL = {"image_size": 32, "depth_multiplier": 0.25, "batch_size": 4, "num_classes": 8}


@pytest.mark.slow
# `slim.learning.train` closes its writer twice.
@pytest.mark.filterwarnings("ignore:Attempting to use a closed FileWriter:UserWarning")
def test_train_and_evaluate(imagenet):
    """Two steps leave a checkpoint that evaluation reads, and that training can start from."""
    run = str(imagenet / "run")
    common = {"dataset_dir": str(imagenet), "checkpoint_dir": run}
    set_flags(mobilenet_v1_train, number_of_steps=2, **common, **SMALL)
    mobilenet_v1_train.train_model()
    checkpoint = tf.train.latest_checkpoint(run)
    reader = tf.train.load_checkpoint(checkpoint)
    assert reader.get_tensor("global_step") == 2
    trained = reader.get_tensor("MobilenetV1/Conv2d_0/weights")

    set_flags(mobilenet_v1_eval, eval_dir=str(imagenet / "eval"), num_examples=NUM_IMAGES)
    set_flags(mobilenet_v1_eval, **common, **SMALL)
    mobilenet_v1_eval.eval_model()
    (events,) = (imagenet / "eval").glob("events*")
    scores = {
        value.tag: value.simple_value
        for event in tf.train.summary_iterator(str(events))
        for value in event.summary.value
    }
    assert 0 <= scores["eval/Accuracy"] <= scores["eval/Recall_5"] <= 1
    num_right = scores["eval/Accuracy"] * NUM_IMAGES
    assert num_right == pytest.approx(round(num_right), abs=1e-4)

    set_flags(mobilenet_v1_train, fine_tune_checkpoint=checkpoint)
    graph, _ = mobilenet_v1_train.build_model()
    with graph.as_default(), tf.Session() as sess:
        init_fn = mobilenet_v1_train.get_checkpoint_init_fn()
        sess.run(tf.global_variables_initializer())
        init_fn(sess)
        assert sess.run(tf.train.get_global_step()) == 0
        weights = tf.trainable_variables("MobilenetV1/Conv2d_0/weights")[0]
        np.testing.assert_array_equal(sess.run(weights), trained)


@pytest.mark.slow
@pytest.mark.one_mode
def test_flags_of_a_script(tmp_path):
    """A script run by name takes its flags, and names one that it does not have."""
    command = [sys.executable, "-m", "nets.mobilenet_v1_train", "--batch_size=2", "--batch_sise=3"]
    with Processes(tmp_path) as processes:
        script = processes.start("script", command)
        assert script.wait() != 0
        assert "Unknown command line flag 'batch_sise'" in script.log
