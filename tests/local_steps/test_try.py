import numpy as np
from tests import harness
from tests.goldens import GOLDENS, LogicalDevices
import pytest

@pytest.mark.parametrize("name", ["slim_mlp","batch_norm","embedding"])
def test_it(name, variable_kind):
    config = LogicalDevices(num_clones=2, num_replicas=2, all_reduce=True, local_steps=1)
    golden = GOLDENS[name]
    one = harness.one_clone(golden, num_clones=4 if name=="batch_norm" else 1)
    for run in harness.train_replicas(config, golden):
        values = {k: v for k, v in run.values.items() if not k.startswith("local_steps") and "moving" not in k}
        harness.assert_close(values, {k:v for k,v in one.values.items() if "moving" not in k})
        print(sorted(run.values))
