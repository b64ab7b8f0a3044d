"""Writing exports: what is restored, and that an output is whole or not there."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from google.protobuf import text_format

from model_deploy import slim, training
from model_deploy.exporting import writing as exporting


def _save(path):
    """A checkpoint of slim variables `a` = 1 and `b` = [2, 2], with averages 10 times as large."""
    with tf.Graph().as_default(), tf.Session() as session:
        a = slim.model_variable("a", [], initializer=tf.ones_initializer())
        b = slim.model_variable("b", [2], initializer=tf.constant_initializer(2.0))
        averages = tf.train.ExponentialMovingAverage(0.9)
        averages.apply([a, b])
        session.run(tf.global_variables_initializer())
        for variable in (a, b):
            session.run(averages.average(variable).assign(10 * variable))
        return tf.train.Saver().save(session, str(path))


def _doubler():
    """A signature of `y = weight * x`, with a weight of 2."""
    x = tf.placeholder(tf.float32, [None], name="x")
    weight = tf.get_variable("weight", initializer=2.0)
    return {"serving_default": training.Signature({"x": x}, {"y": tf.multiply(x, weight, "y")})}


def _session():
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return session


def _write(kind, path, **options):
    signatures = _doubler()
    write = {"model": training.write_saved_model, "graph": training.write_frozen_graph}[kind]
    with _session() as session:
        write(session, signatures, path, **options)


def test_restores_variables_or_their_averages(tmp_path, variable_kind):
    """Either the variables' own values are exported or their moving averages."""
    path = _save(tmp_path / "m.ckpt")
    variables = [slim.model_variable("a", []), slim.model_variable("b", [2])]
    with tf.Session() as session:
        for use_averages, factor in ((False, 1), (True, 10)):
            training.restore_to_export(session, path, use_averages)
            a, b = session.run(variables)
            assert [a, *b] == [factor, 2 * factor, 2 * factor]


@pytest.mark.one_mode
def test_a_checkpoint_of_another_model(tmp_path):
    """What the checkpoint lacks or has in another shape is named."""
    path = _save(tmp_path / "m.ckpt")
    for name, shape in (("a", [3]), ("b", [2]), ("c", [])):
        slim.model_variable(name, shape)
    where = r"a has shape \[\], not \[3\], c is missing$"
    message = f"a checkpoint of this model, got .*m.ckpt, where {where}"
    with tf.Session() as session, pytest.raises(ValueError, match=message):
        training.restore_to_export(session, path)


@pytest.mark.one_mode
@pytest.mark.parametrize("kind", ["model", "graph"])
def test_an_existing_output_stays(tmp_path, kind):
    """An output folder or file that exists is an error, even if it is empty, and stays."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    field = {"model": "output_dir", "graph": "output_file"}[kind]
    for name in ("folder", "file"):
        with tf.Graph().as_default():
            message = f"{field} must not exist yet, got {tmp_path / name}$"
            with pytest.raises(ValueError, match=message):
                _write(kind, tmp_path / name)
    assert list((tmp_path / "folder").iterdir()) == []
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.one_mode
@pytest.mark.parametrize("kind", ["model", "graph"])
def test_a_failure_leaves_nothing(tmp_path, monkeypatch, kind):
    """When a write fails half way, neither the output nor a part of it is left."""
    written = []

    def fail(*_, **__):
        written.extend(tmp_path.rglob("*"))
        raise OSError("disk full")

    monkeypatch.setattr(tf.io, "write_graph", fail)
    monkeypatch.setattr(tf.saved_model.builder.SavedModelBuilder, "save", fail)
    with pytest.raises(OSError, match="disk full"):
        _write(kind, tmp_path / "out")
    assert written, "it failed before it wrote anything"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.one_mode
def test_an_output_that_appears_meanwhile(tmp_path, monkeypatch):
    """What another process writes under the name in the meantime stays."""
    write_graph = exporting.tf.io.write_graph

    def be_overtaken(*arguments):
        (tmp_path / "out").write_text("theirs")
        return write_graph(*arguments)

    monkeypatch.setattr(tf.io, "write_graph", be_overtaken)
    with pytest.raises(ValueError, match="output_file must not exist yet"):
        _write("graph", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out").read_text() == "theirs"


@pytest.mark.parametrize("as_text", [False, True])
def test_a_frozen_graph(tmp_path, as_text, variable_kind):
    """The graph has the weight in it, in the form that was asked for, and no variables."""
    _write("graph", tmp_path / "new" / "graph.pb", as_text=as_text)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["graph.pb"]
    contents = (tmp_path / "new" / "graph.pb").read_bytes()
    read = text_format.Parse if as_text else lambda text, graph: graph.ParseFromString(text)
    graph_def = tf.GraphDef()
    read(contents, graph_def)
    assert not [node.op for node in graph_def.node if "Var" in node.op]
    with tf.Graph().as_default(), tf.Session() as session:
        [y] = tf.import_graph_def(graph_def, return_elements=["y:0"], name="")
        assert session.run(y, {"x:0": [1, 3]}).tolist() == [2, 6]


def test_a_saved_model(tmp_path, variable_kind):
    """The signature is found in the SavedModel, and the names of the classes beside it."""
    folder = tmp_path / "model"
    _write("model", folder, class_names=["no", "yes"])
    assert (folder / "assets.extra" / "labels.txt").read_text() == "no\nyes\n"
    with tf.Graph().as_default(), tf.Session() as session:
        meta_graph = tf.saved_model.load(session, ["serve"], str(folder))
        signature = meta_graph.signature_def["serving_default"]
        fetch, feed = signature.outputs["y"].name, signature.inputs["x"].name
        np.testing.assert_array_equal(session.run(fetch, {feed: [1, 3]}), [2, 6])
