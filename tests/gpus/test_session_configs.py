"""The session config of every way to train, as a table."""

import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from google.protobuf import text_format

from model_deploy import DeploymentConfig, all_reduce, gpus, training
from model_deploy import cluster as cluster_lib
from model_deploy.cluster import Cluster

pytestmark = pytest.mark.one_mode

# What sessions of clones on GPUs have, in the text format of `ConfigProto`.
SOFT = "allow_soft_placement: true"
GROWS = "gpu_options { allow_growth: true force_gpu_compatible: true }"
NO_GPU = 'device_count { key: "GPU" value: 0 }'
# On CPUs a graph is rewritten once, and not for memory.
ONCE = (
    "graph_options { rewrite_options { meta_optimizer_iterations: ONE "
    "memory_optimization: NO_MEM_OPT } }"
)
NCCL = "experimental { collective_nccl: true }"
LEADER = 'experimental { collective_group_leader: "/job:worker/replica:0/task:0" }'
PS_AND_SELF = 'device_filters: "/job:ps" device_filters: "/job:worker/task:1"'
SELF = 'device_filters: "/job:worker/task:1"'

WAYS = [
    pytest.param({}, [SOFT, GROWS], id="one clone"),
    pytest.param({"num_clones": 4}, [SOFT, GROWS], id="clones"),
    pytest.param({"num_clones": 4, "copy_clones": True}, [SOFT, GROWS], id="copies"),
    pytest.param({"num_clones": 2, "aggregate_on": "gpu"}, [SOFT, GROWS], id="sums on GPUs"),
    pytest.param({"devices_per_clone": 2}, [SOFT, GROWS], id="stages"),
    pytest.param({"precision": "float16"}, [SOFT, GROWS], id="float16"),
    pytest.param({"tf32": True}, [SOFT, GROWS], id="TF32, which is of the process"),
    pytest.param(
        {"gpu_memory_fraction": 0.25},
        [SOFT, "gpu_options { per_process_gpu_memory_fraction: 0.25 force_gpu_compatible: true }"],
        id="a share of the memory",
    ),
    pytest.param(
        {"data_format": "NCHW"},
        [SOFT, GROWS, "graph_options { rewrite_options { layout_optimizer: OFF } }"],
        id="a layout",
    ),
    pytest.param(
        {"xla": True},
        [SOFT, GROWS, "graph_options { rewrite_options { remapping: OFF } }"],
        id="XLA",
    ),
    pytest.param({"clone_on_cpu": True}, [SOFT, NO_GPU, ONCE], id="on the CPU"),
    pytest.param(
        {"clone_on_cpu": True, "data_format": "NCHW"},
        [
            SOFT,
            NO_GPU,
            ONCE,
            "graph_options { rewrite_options { cpu_layout_conversion: NCHW_TO_NHWC } }",
        ],
        id="channels first on the CPU",
    ),
    pytest.param(
        {"clone_on_cpu": True, "num_clones": 3, "all_reduce": True},
        [SOFT, NO_GPU, ONCE, 'device_count { key: "CPU" value: 3 }'],
        id="all-reduce on the CPU",
    ),
    pytest.param({"all_reduce": True}, [SOFT, GROWS], id="all-reduce of one clone"),
    pytest.param(
        {"all_reduce": True, "num_clones": 4}, [SOFT, GROWS, NCCL], id="all-reduce between GPUs"
    ),
    pytest.param(
        {"aggregate_on": "all_reduce", "num_clones": 4},
        [SOFT, GROWS, NCCL],
        id="all-reduce by its other name",
    ),
]


REPLICAS = [
    pytest.param({"num_clones": 2}, 1, [SOFT, GROWS, PS_AND_SELF], id="asynchronous replicas"),
    pytest.param(
        {"num_clones": 2, "clone_on_cpu": True},
        1,
        [SOFT, NO_GPU, ONCE, PS_AND_SELF],
        id="replicas on the CPU",
    ),
    pytest.param(
        {"num_clones": 2, "all_reduce": True},
        0,
        [SOFT, GROWS, LEADER, SELF],
        id="all-reduce between machines, by rings",
    ),
]


def _proto(texts):
    """The `ConfigProto` of which these are the parts."""
    proto = tf.ConfigProto()
    for text in texts:
        proto.MergeFrom(text_format.Parse(text, tf.ConfigProto()))
    return proto


@pytest.mark.parametrize(("options", "expected"), WAYS)
def test_session_config_of_one_process(options, expected):
    """A process alone takes GPUs as its clones need them, and NCCL for all-reduce."""
    config = DeploymentConfig(**options)
    assert training.session_config(config) == _proto(expected)


@pytest.mark.parametrize(("options", "num_ps", "expected"), REPLICAS)
def test_session_config_of_a_replica(options, num_ps, expected):
    """A worker of two has the same, sees whom it needs, and sends gradients round by rings."""
    cluster = Cluster(["a:1", "b:1"], ["c:1"][:num_ps], task_id=1)
    config = DeploymentConfig(**options, num_replicas=2, replica_id=1, num_ps_tasks=num_ps)
    assert training.session_config(config, cluster) == _proto(expected)


def test_what_a_program_asks_of_rewriting_stays():
    """On CPUs, too, TensorFlow goes over a graph twice where a program has asked for that."""
    base = _proto([ONCE.replace("ONE", "TWO").replace("NO_MEM_OPT", "MANUAL")])
    config = DeploymentConfig(clone_on_cpu=True)
    kept = training.session_config(config, base=base).graph_options.rewrite_options
    assert kept == base.graph_options.rewrite_options


def test_session_config_of_a_parameter_server():
    """A parameter server takes no GPU, whatever it is given."""
    cluster = Cluster(["a:1"], ["c:1"], "ps")
    given = tf.ConfigProto(device_count={"GPU": 2})
    assert cluster_lib.session_config(cluster, given) == _proto(
        [NO_GPU, 'device_filters: "/job:ps/task:0"']
    )


def test_train_opens_its_session_so():
    """`train` gets what the table says, for a process on its own, too."""
    config = DeploymentConfig(num_clones=2, all_reduce=True)
    assert training.join(config, None) == training.Place("", training.session_config(config))


def test_divided_gpu_has_no_nccl():
    """Between the parts of one GPU there is no NCCL: TensorFlow's rings add up."""
    base = tf.ConfigProto()
    base.gpu_options.experimental.virtual_devices.add().memory_limit_mb.extend([100] * 4)
    given = base.SerializeToString(deterministic=True)
    config = DeploymentConfig(num_clones=4, all_reduce=True)
    assert not training.session_config(config, base=base).experimental.collective_nccl
    assert base.SerializeToString(deterministic=True) == given


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_clones": 4}, "NCCL"),
        ({"num_clones": 4, "clone_on_cpu": True}, "a ring in the memory of the CPU"),
        ({"num_clones": 4, "num_replicas": 2}, "rings between processes"),
        ({}, "nothing: one clone"),
    ],
)
def test_what_adds_up_in_words(options, words):
    """The banner says by what all-reduce adds up."""
    assert all_reduce.added_by(DeploymentConfig(all_reduce=True, **options)) == words


@pytest.mark.parametrize("tf32", [True, False])
def test_tf32_is_of_the_process(tf32):
    """A deployment says whether float32 products are rounded, for the process."""
    setting = tf2.config.experimental
    before = setting.tensor_float_32_execution_enabled()
    try:
        gpus.use_tf32(DeploymentConfig(tf32=tf32))
        assert setting.tensor_float_32_execution_enabled() == tf32
    finally:
        setting.enable_tensor_float_32_execution(before)
