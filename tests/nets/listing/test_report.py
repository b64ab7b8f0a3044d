"""`python -m nets`: the table, its copy in the documentation, and the fit of checkpoints."""

import pathlib

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from nets import __main__ as command
from nets import nets_factory
from nets.listing import fit, report
from nets.listing.multiply_adds import multiply_adds

DOCUMENT = pathlib.Path(__file__).parents[3] / "docs" / "nets.md"

# Published figures: parameters and millions of multiply-adds.
PUBLISHED = {
    "vgg_16": (138e6, 15_500),  # https://arxiv.org/abs/1409.1556 table 2; 1605.07678 figure 2
    "mobilenet_v1": (4.2e6, 569),  # https://arxiv.org/abs/1704.04861 table 4
    "mobilenet_v1_050": (1.3e6, 149),  # table 6
}
# One network of each family of layers; to build all takes a minute.
COUNTED = [
    *("alexnet_v2", "cifarnet", "i3d", "lenet", "mnist_mlp", "mobilenet_v1"),
    *("mobilenet_v3_small", "resnet_9_small", "resnet_v1_50", "text_lstm"),
]
pytestmark = pytest.mark.one_mode


def table_of_document():
    """Returns name -> cells of the table in the documentation."""
    ours, _ = DOCUMENT.read_text().split("## Those of Keras")
    lines = [line for line in ours.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: tuple(row) for row in rows[2:]}


def test_document_lists_every_network():
    """`docs/nets.md` has a row for each network, in the order of the table of names."""
    assert list(table_of_document()) == nets_factory.network_names()


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTED)
def test_row_of_the_document(name):
    """A network's row in `docs/nets.md` is what its graph says."""
    assert table_of_document()[name] == report.row(name).cells()


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_sizes(name):
    """Parameters and multiply-adds are the published ones, to the digits printed."""
    parameters, millions = PUBLISHED[name]
    found = [float(cell.replace(",", "")) for cell in table_of_document()[name][-2:]]
    assert found == [pytest.approx(parameters, rel=0.03), pytest.approx(millions * 1e6, rel=0.005)]


def test_multiply_adds_of_each_kind():
    """Convolutions, products and loops count as arithmetic says."""
    image = tf.zeros([1, 8, 8, 3])
    tf.nn.conv2d(image, tf.zeros([5, 5, 3, 7]), strides=2, padding="SAME")
    tf.nn.depthwise_conv2d(image, tf.zeros([3, 3, 3, 2]), [1, 1, 1, 1], "VALID")
    tf.nn.conv3d(tf.zeros([1, 4, 8, 8, 3]), tf.zeros([2, 1, 1, 3, 5]), [1] * 5, "SAME")
    tf.matmul(tf.zeros([6, 4]), tf.zeros([6, 9]), transpose_a=True)
    tf.scan(lambda row, _: tf.matmul(row, tf.zeros([5, 5])), tf.zeros([11]), tf.zeros([1, 5]))
    convolution = (4 * 4 * 7) * (5 * 5 * 3)
    depthwise = (6 * 6 * 6) * (3 * 3)
    video = (4 * 8 * 8 * 5) * (2 * 3)
    product = (4 * 9) * 6
    loop = 11 * (5 * 5)
    expected = convolution + depthwise + video + product + loop
    assert multiply_adds(tf.get_default_graph()) == expected


def test_multiply_adds_of_unknown_shapes():
    """A product of unknown size is named, and a loop of unknown length."""
    tf.matmul(tf.placeholder(tf.float32, [None, 2], "unknown"), tf.zeros([2, 2]))
    with pytest.raises(ValueError, match=r"^unknown must have a known shape, got \[-1, 2\]"):
        multiply_adds(tf.get_default_graph())
    with tf.Graph().as_default() as graph:
        steps = tf.placeholder(tf.float32, [None])
        tf.scan(lambda row, _: tf.matmul(row, tf.zeros([5, 5])), steps, tf.zeros([1, 5]))
        message = r"^a loop must (run a known number of times|be made with .*), got scan/"
        with pytest.raises(ValueError, match=message):
            multiply_adds(graph)


@pytest.mark.parametrize("variable_kind", ["reference"], indirect=True)  # with the old control flow
def test_multiply_adds_of_an_old_loop(variable_kind):
    """A loop of TensorFlow 1's control flow is named, not counted as one run of its body; those of
    networks are made to be counted.
    """
    tf.scan(lambda row, _: tf.matmul(row, tf.zeros([5, 5])), tf.zeros([11]), tf.zeros([1, 5]))
    with pytest.raises(ValueError, match=r"^a loop must be made with .* to be counted, got scan/"):
        multiply_adds(tf.get_default_graph())
    assert report.row("text_lstm").multiply_adds > 0


def test_command_prints_one_network(capsys):
    """`--name` prints the header and the row of that network."""
    assert command.main(["--name", "mnist_mlp"]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == list(report.HEADER)
    assert row.split() == ["mnist_mlp", "28", "x", "28", "x", "1", "10", "397,510", "397,000"]


def test_command_prints_markdown(capsys):
    """`--markdown` prints the document with the same cells."""
    assert command.main(["--name", "lenet", "--num_classes", "7", "--markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "# Networks"
    [row] = [line for line in lines if line.startswith("| lenet")]
    assert [cell.strip() for cell in row.strip("|").split("|")] == list(
        report.row("lenet", 7).cells()
    )


def test_networks_of_keras(capsys):
    """The document and the command have the names of Keras' networks, and the size of one."""
    assert report.markdown_table(report.keras_table()) in DOCUMENT.read_text()
    assert command.main(["--name", "keras/MobileNetV3Small", "--num_classes", "5"]) == 0
    [_, row] = capsys.readouterr().out.splitlines()
    assert row.split()[:6] == ["keras/MobileNetV3Small", "224", "x", "224", "x", "3"]


@pytest.mark.slow
def test_published_sizes_of_keras():
    """MobileNetV2 and ResNet50 have as many millions of parameters as Keras' page says."""
    # https://keras.io/api/applications/, with the averages of batch norms, which are not trained.
    for name, millions in (("keras/MobileNetV2", 3.5), ("keras/ResNet50", 25.6)):
        assert report.row(name).parameters / 1e6 == pytest.approx(millions, rel=0.02)


@pytest.fixture
def checkpoint(tmp_path):
    """Saves a LeNet of ten classes with an optimizer's variable; returns the path."""
    with tf.Graph().as_default(), tf.Session() as sess:
        report.build("lenet", 10)
        tf.get_variable("LeNet/conv1/weights/Momentum", [5, 5, 1, 32])
        sess.run(tf.global_variables_initializer())
        return tf.train.Saver().save(sess, str(tmp_path / "model.ckpt"), global_step=3)


_SHAPES = "is {} in the checkpoint, {} in the network"


@pytest.mark.parametrize(
    ("flags", "summary", "line"),
    [
        # What only the optimizer needs is listed.
        (
            ["lenet"],
            "fits: 0 missing, 1 unexpected, 0 mis-shaped",
            "unexpected: LeNet/conv1/weights/Momentum",
        ),
        (
            ["lenet", "--num_classes", "12"],
            "does not fit: 0 missing, 1 unexpected, 2 mis-shaped",
            f"mis-shaped: LeNet/fc4/weights {_SHAPES.format([1024, 10], [1024, 12])}",
        ),
        (
            ["mnist_mlp"],
            "does not fit: 4 missing, 9 unexpected, 0 mis-shaped",
            "missing: mnist_mlp/hidden/weights",
        ),
    ],
    ids=["fits", "other classes", "other network"],
)
def test_checkpoint(checkpoint, capsys, flags, summary, line):
    """A checkpoint fits the network that wrote it, and no other: what does not fit is listed."""
    code = command.main(["--checkpoint", checkpoint, "--name", *flags])
    assert code == summary.startswith("does not")
    out = capsys.readouterr().out.splitlines()
    assert out[:3] == [f"{flags[0]}: {summary}", "", f"{flags[0]}:"]
    counts = [int(word) for word in summary.replace(":", "").split() if word.isdigit()]
    assert len(out[3:]) == sum(counts)
    assert line in out


def test_checkpoint_directory(checkpoint):
    """A directory stands for its latest checkpoint."""
    shapes = fit.read_shapes(str(pathlib.Path(checkpoint).parent))
    assert shapes["LeNet/fc4/biases"] == [10]
    assert np.prod(shapes["LeNet/fc3/weights"]) == 3136 * 1024


def test_no_checkpoint(tmp_path, capsys):
    """A path without a checkpoint is named, by the function and at the command line."""
    path = str(tmp_path / "nothing")
    message = f"^checkpoint must be a path of a TensorFlow checkpoint, got '{path}'"
    with pytest.raises(ValueError, match=message):
        fit.read_shapes(path)
    with pytest.raises(SystemExit, match="2"):
        command.main(["--checkpoint", path])
    assert message.removeprefix("^") in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--name", "lenet_9"], "invalid choice: 'lenet_9'"),
        (["--num_classes", "0"], "whole number of at least 1, got 0"),
        (["--num_classes", "ten"], "whole number of at least 1, got ten"),
    ],
)
def test_command_rejects(arguments, message, capsys):
    """A bad value stops at the command line."""
    with pytest.raises(SystemExit, match="2"):
        command.main(arguments)
    assert message in capsys.readouterr().err
