import numpy as np, pytest
from tests import harness
from tests.goldens import GOLDENS, LogicalDevices
import tensorflow.compat.v1 as tf

@pytest.mark.parametrize("outer", [dict(outer_learning_rate=.7,outer_momentum=.9), dict(outer_parts=2), dict(outer_overlap=2,outer_momentum=.9)],ids=str)
def test_it(variable_kind, outer):
    config = LogicalDevices(num_clones=2, num_replicas=2, all_reduce=True, local_steps=3, **outer)
    golden = GOLDENS["batch_norm"]
    for run in harness.train_replicas(config, golden, harness.adam, steps=8):
        for k, v in sorted(run.values.items()): print(k, v.ravel()[:4])
