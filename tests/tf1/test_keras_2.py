"""Keras 2 in programs of TensorFlow 1: `import keras` as in 2018, and `multi_gpu_model`."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.tf1 import names

pytestmark = pytest.mark.one_mode


def test_both_packages_are_one():
    """A layer of `keras` is one of `tf.keras`; what is in neither is an error that names it."""
    assert names.find("keras.layers.core").Dense is names.find("tensorflow.keras").layers.Dense
    with pytest.raises(ImportError, match=r"keras\.wrappers\.scikit_learn is not in tf-keras"):
        names.find("keras.wrappers.scikit_learn")
    with pytest.raises(AttributeError, match=r"tf\.keras\.layers\.Maxout2 is in no release"):
        _ = names.find("keras.layers").Maxout2


@pytest.mark.filterwarnings("ignore:`Model.state_updates`")
def test_a_lambda_may_make_variables():
    """A constant of a program's own, kept in a variable as in Keras 2.2, has its value."""
    keras = names.find("keras")
    with tf.Graph().as_default():
        inputs = keras.layers.Input((2,))
        outputs = keras.layers.Lambda(lambda x: x + tf.Variable([[1.0, 2.0]], trainable=False))
        model = keras.models.Model(inputs, outputs(inputs))
        assert model.predict(np.ones([1, 2])).tolist() == [[2.0, 3.0]]
        assert model.weights == []


def _model():
    keras = names.find("keras")
    one, two = keras.Input((3,), name="one"), keras.Input((2,), name="two")
    both = keras.layers.concatenate([one, two])
    start = keras.initializers.glorot_normal(1)
    hidden = keras.layers.Dense(4, "tanh", kernel_initializer=start)(both)
    ends = [
        keras.layers.Dense(size, kernel_initializer=start, name=name)
        for name, size in (("first", 1), ("second", 2))
    ]
    return keras.Model([one, two], [end(hidden) for end in ends])


@pytest.mark.filterwarnings("ignore:.*set_learning_phase")
@pytest.mark.filterwarnings("ignore:`Model.state_updates`")
@pytest.mark.parametrize(
    "settings",
    [{"gpus": 3}, {"gpus": [2, 0], "cpu_merge": False}, {"gpus": None}],
    ids=str,
)
def test_several_gpus_are_one(settings, monkeypatch):
    """Fitted on several GPUs, with uneven parts of batches, a model is as fitted on one; outputs
    have their names.
    """
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind] * 3)
    random = np.random.RandomState(0)
    inputs = {"one": random.randn(10, 3), "two": random.randn(10, 2)}
    targets = {"first": random.randn(10, 1), "second": random.randn(10, 2)}
    keras, found = names.find("keras"), []
    for several in (False, True):
        with tf.Graph().as_default():
            model = fitted = _model()
            if several:
                fitted = keras.utils.multi_gpu_model(model, **settings)
            fitted.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse")
            fitted.fit(inputs, targets, batch_size=10, epochs=3, verbose=0)
            found.append([*model.get_weights(), *fitted.predict(inputs)])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore:The `keras.initializers.serialize")
def test_variables_move_to_the_cpu(monkeypatch):
    """With `cpu_relocation` the model that is trained is another one, of new variables."""
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind] * 2)
    model = _model()
    several = names.find("keras").utils.multi_gpu_model(model, 2, cpu_relocation=True)
    assert {each.device for each in several.weights} == {"/device:CPU:0"}
    assert not {id(each) for each in several.weights} & {id(each) for each in model.weights}


@pytest.mark.parametrize(("gpus", "seen"), [(2, 1), ([0], 2), ([0, 2], 2), (None, 1), (1, 4)])
def test_gpus_that_are_too_few(gpus, seen, monkeypatch):
    """At least two GPUs of the machine: the error names what was asked for and what there is."""
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind] * seen)
    with pytest.raises(ValueError, match=f"gpus must be at least 2 of the {seen} GPU"):
        names.find("keras.utils").multi_gpu_model(_model(), gpus)
