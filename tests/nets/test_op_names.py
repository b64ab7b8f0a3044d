"""The names of the ops that hold a network's result and its end points.

Programs find them by name: in frozen graphs, and as features of other networks.
"""

import gzip
import json
from pathlib import Path

import pytest
import tensorflow.compat.v1 as tf

from tests.nets import graphs, reference

# Network -> `classes` (1001 of them) and `features` (none) -> the name of the op of the result, and
# of each end point; measured by running the original networks.
_FACTS = json.loads(
    gzip.decompress((Path(__file__).parent / "data" / "slim" / "op_names.json.gz").read_bytes())
)


@pytest.mark.parametrize(
    ("kind", "num_classes"),
    [pytest.param("classes", 1001, id="classes"), pytest.param("features", None, id="features")],
)
def test_op_names(reference_name, kind, num_classes):
    """The ops of the result and of the end points are called as TF-Slim's, in their order."""
    if kind not in _FACTS[reference_name]:
        pytest.skip("the reference has no features of videos")
    expected = _FACTS[reference_name][kind]
    images = tf.placeholder(tf.float32, reference.load(reference_name)["input"]["shape"])
    result, end_points = graphs.build(reference_name, images, num_classes)
    assert result.op.name == expected["result"]
    names = {name: value.op.name for name, value in end_points.items()}
    assert list(names.items()) == list(expected["end_points"].items())


def test_every_network_has_its_names():
    """There are names for each network that has reference numbers."""
    assert sorted(_FACTS) == reference.names()
