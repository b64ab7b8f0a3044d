"""Networks of keras_hub with random weights, where that package is: an optional test."""

import functools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tests import harness
from tests.goldens import NUM_CLASSES, NUM_EXAMPLES, Golden, LogicalDevices
from tests.keras_layers import roundings
from tests.keras_layers.models import KERASES

keras_hub = pytest.importorskip("keras_hub", reason="keras_hub is not installed")
pytestmark = [pytest.mark.one_mode, pytest.mark.slow]

_WORDS = np.random.default_rng(1).integers(1, 11, (NUM_EXAMPLES, 5)).astype(np.int32)
_IMAGES = np.random.default_rng(1).uniform(-1, 1, (NUM_EXAMPLES, 8, 8, 3)).astype(np.float32)


def _vit(images):
    backbone = keras_hub.models.ViTBackbone(
        image_shape=(8, 8, 3),
        patch_size=4,
        num_layers=1,
        num_heads=2,
        hidden_dim=8,
        mlp_dim=8,
        dropout_rate=0.0,
        attention_dropout=0.0,
    )
    return backbone(images, training=True)[:, 0]


def _bert(words):
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=11,
        num_layers=1,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=8,
        max_sequence_length=5,
        dropout=0.0,
    )
    inputs = {
        "token_ids": words,
        "segment_ids": tf.zeros_like(words),
        "padding_mask": tf.ones_like(words),
    }
    return backbone(inputs, training=True)["pooled_output"]


def _llama(words):
    backbone = keras_hub.models.LlamaBackbone(
        vocabulary_size=11,
        num_layers=1,
        num_query_heads=2,
        num_key_value_heads=1,
        hidden_dim=8,
        intermediate_dim=8,
        tie_word_embeddings=True,
    )
    inputs = {"token_ids": words, "padding_mask": tf.ones_like(words)}
    return tf.reduce_mean(backbone(inputs, training=True), axis=1)


_NETWORKS = {"ViT": (_vit, _IMAGES), "BERT": (_bert, _WORDS), "Llama": (_llama, _WORDS)}
_DIVISIONS = {
    "copied in parts": {"copy_clones": True, "accumulate_steps": 2},
    "all-reduce": {"all_reduce": True},
}
# Small steps: with large ones differences of rounding grow from step to step.
_slowly = functools.partial(harness.sgd, 0.02)


def _golden(name):
    network, examples = _NETWORKS[name]

    def prepare(config):
        del config
        KERASES["keras"].utils.set_random_seed(1)
        return model_fn

    def model_fn(features, labels):
        logits = KERASES["keras"].layers.Dense(NUM_CLASSES, name="logits")(network(features))
        tf.losses.sparse_softmax_cross_entropy(labels, logits)
        return logits

    labels = np.arange(NUM_EXAMPLES) % NUM_CLASSES
    return Golden(name, examples, labels, None, prepare=prepare)


@functools.cache
def _one_clone(name):
    return roundings.one_clone(_golden(name), _slowly)


@pytest.mark.parametrize("division", _DIVISIONS)
@pytest.mark.parametrize("name", _NETWORKS)
def test_a_network_trains_as_in_one_clone(name, division):
    """Losses and weights are those of one clone."""
    config = LogicalDevices(num_clones=2, **_DIVISIONS[division])
    run = harness.Replica(config, _golden(name), _slowly)
    harness.assert_same(run(), _one_clone(name), 1e-5, 4e-5)


@pytest.mark.parametrize("name", _NETWORKS)
def test_a_network_trains_in_16_bits(name):
    """Losses and weights are as near to those of one clone in 32 bits as rounding lets them be."""
    config = LogicalDevices(num_clones=2, precision="bfloat16")
    run = harness.Replica(config, _golden(name), _slowly)()
    roundings.assert_near(run, _one_clone(name), "bfloat16")
