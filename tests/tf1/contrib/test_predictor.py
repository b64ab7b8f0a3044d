"""`tf.contrib.predictor.from_saved_model`: a SavedModel called with values by name."""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib.written import predictor

pytestmark = pytest.mark.one_mode


@pytest.fixture
def exported(tmp_path):
    """A SavedModel that multiplies by its variable, 3."""
    path = str(tmp_path / "model")
    x = tf.placeholder(tf.float32, [None], name="x")
    factor = tf.get_variable("factor", [], initializer=tf.constant_initializer(3.0))
    y = tf.multiply(x, factor, name="y")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, path, {"in": x}, {"out": y})
    return path


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"signature_def_key": "serving_default", "tags": "serve"},
        {"input_names": {"in": "x:0"}, "output_names": {"out": "y:0"}},
    ],
    ids=["default", "key", "names"],
)
def test_call(exported, options):
    """Outputs come by name, whatever way the tensors are named."""
    predict = predictor.from_saved_model(exported, **options)
    assert predict({"in": [1.0, 2.0]})["out"].tolist() == [3, 6]
    assert predict.graph is not tf.get_default_graph()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"signature_def_key": "never"}, r"must be one of .*'serving_default'.*, got 'never'"),
        ({"input_names": {"in": "x:0"}}, "one must be given"),
        ({"signature_def_key": "a", "signature_def": "b"}, "one must be given, got a, b, None"),
    ],
)
def test_refusals(exported, options, message):
    """What cannot be is told with its values."""
    with pytest.raises(ValueError, match=message):
        predictor.from_saved_model(exported, **options)


def test_unknown_inputs(exported):
    """A value for what is no input is told."""
    with pytest.raises(ValueError, match=r"inputs must be of \['in'\], got \['no'\]"):
        predictor.from_saved_model(exported)({"no": 1})
