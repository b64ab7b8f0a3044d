"""Deployment options of a classifier, and defaults that depend on the machine's GPUs."""

import dataclasses
from typing import ClassVar

from model_deploy.commands import Options, named_as, option
from model_deploy.config import DeploymentConfig
from model_deploy.settings import (
    AGGREGATE_ON,
    DATA_FORMATS,
    PRECISIONS,
    PS_STRATEGIES,
    WIRE_PRECISIONS,
    check_loss_scale,
)
from model_deploy.ways import Way, way_for

DEFAULT_BATCH_SIZE = 32
# Number of clones without a GPU, if none is given.
DEFAULT_CPU_CLONES = 2


@dataclasses.dataclass(frozen=True)
class DeploymentOptions(Options):
    """Options for the numbers of clones and replicas, their devices and batch sizes.

    Raises:
      ValueError: as `Options`; for two ways to train, or two batch sizes, at once.
    """

    topic: ClassVar[str] = "deployment"

    num_clones: int | None = option(
        None, "clones; default: one for each visible GPU, or 2 on the CPU", minimum=1, common=True
    )
    clone_on_cpu: bool = option(False, "put the clones on the CPU; by itself without a GPU")
    master: str = option(
        "", "address of the TensorFlow server to use; default: this process", topic="cluster"
    )
    task: int = option(0, "index of this worker, 0 for the chief", minimum=0, topic="cluster")
    worker_replicas: int = option(1, "number of workers", minimum=1, topic="cluster")
    num_ps_tasks: int = option(0, "number of parameter servers", minimum=0, topic="cluster")
    ps_strategy: str = option(
        "round_robin",
        "how variables are spread over parameter servers",
        choices=PS_STRATEGIES,
    )
    copy_clones: bool = option(
        False,
        "build one clone and copy it for the others, which halves the start-up of 8 clones of a "
        "deep network",
    )
    sync_replicas: bool = option(
        False, "make each update of the gradients of several workers, with parameter servers"
    )
    replicas_to_aggregate: int | None = option(
        None,
        "with --sync_replicas, workers in an update, the others are backups; default: all",
        minimum=1,
    )
    all_reduce: bool = option(
        False, "each clone has its own copy of the variables; without parameter servers"
    )
    rotate_steps: bool = option(
        False,
        "with --all_reduce, make a third of a step's sums and updates beside the next forward pass",
    )
    wire_precision: str = option(
        "float32",
        "type in which gradients, and variables of parameter servers, go from process to process; "
        "bfloat16 takes half of the bytes",
        choices=WIRE_PRECISIONS,
    )
    asynchronous: bool = option(False, "each clone updates the variables by itself")
    batch_size: int | None = option(
        None,
        f"images per clone and step; default: {DEFAULT_BATCH_SIZE}",
        minimum=1,
        topic="inputs",
        common=True,
    )
    global_batch_size: int | None = option(
        None, "images per step over all clones, in place of --batch_size", minimum=1, topic="inputs"
    )
    accumulate_steps: int = option(
        1,
        "batches of each clone in an update, one after the other in the memory of one",
        minimum=1,
    )
    precision: str = option(
        "float32",
        "what convolutions, matrix products and what lies between them are computed in",
        choices=PRECISIONS,
        common=True,
    )
    loss_scale: str | None = option(
        None,
        "multiply losses by a number, or by one that adapts (dynamic), while gradients are "
        "computed; default: dynamic for float16, else none",
    )
    xla: bool = option(
        False, "compile each clone's part of a step with XLA; on CPUs steps are slower that way"
    )
    sync_batch_norm: bool = option(
        False,
        "mean and variance of batch norms over all clones, with --all_reduce of all workers too",
    )

    aggregate_on: str | None = option(
        None,
        "where gradients of the clones are summed; all_reduce is --all_reduce; default: cpu",
        choices=AGGREGATE_ON,
    )
    gpu_memory_fraction: float | None = option(
        None,
        "share of each GPU's memory to take at the start; default: what is needed, as it is needed",
        above=0,
        maximum=1,
    )
    tf32: bool = option(
        False, "let GPUs round the factors of float32 products to 10 bits, which is faster"
    )
    data_format: str = option(
        "auto",
        "order of the axes in convolutions on GPUs; auto: what TensorFlow finds fast there",
        choices=DATA_FORMATS,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.aggregate_on == "all_reduce":
            object.__setattr__(self, "all_reduce", True)
        if self.aggregate_on == "gpu" and self.asynchronous:
            raise ValueError("aggregate_on must be cpu with asynchronous=True, got 'gpu'")
        if self.batch_size is not None and self.global_batch_size is not None:
            raise ValueError(
                "global_batch_size must not be given together with batch_size, "
                f"got {self.global_batch_size} and {self.batch_size}"
            )
        check_loss_scale(self.loss_scale_setting)
        if self.replicas_to_aggregate is not None and not self.sync_replicas:
            raise ValueError(
                "replicas_to_aggregate must go with sync_replicas, "
                f"got {self.replicas_to_aggregate} alone"
            )
        ways = [
            way for way in ("sync_replicas", "all_reduce", "asynchronous") if getattr(self, way)
        ]
        if len(ways) > 1:
            raise ValueError(f"{ways[0]} must not be given together with {ways[1]}, got both")

    @property
    def loss_scale_setting(self) -> float | str | None:
        """`loss_scale` as `DeploymentConfig` takes it: a number if it is one."""
        try:
            return None if self.loss_scale is None else float(self.loss_scale)
        except ValueError:
            return self.loss_scale

    @property
    def num_aggregated(self) -> int | None:
        """How many replicas make an update with `sync_replicas`; None without it."""
        if not self.sync_replicas:
            return None
        return self.replicas_to_aggregate or self.worker_replicas


def deployment_config(options: DeploymentOptions, num_gpus: int) -> DeploymentConfig:
    """Returns the deployment for the visible GPUs, or for the CPU if there are none.

    Raises:
      ValueError: if there are fewer GPUs than clones, or asynchronous clones are to synchronize
        batch norms; as `DeploymentConfig`, with the names of flags.
    """
    on_cpu = options.clone_on_cpu or num_gpus == 0
    num_clones = options.num_clones or (DEFAULT_CPU_CLONES if on_cpu else num_gpus)
    if not on_cpu and num_clones > num_gpus:
        raise ValueError(
            f"num_clones must be at most the number of visible GPUs, {num_gpus}, "
            f"got {num_clones}; --clone_on_cpu puts clones on the CPU"
        )
    if options.sync_batch_norm and options.asynchronous and num_clones > 1:
        raise ValueError(
            "sync_batch_norm must not be given together with asynchronous and several clones, "
            f"got num_clones={num_clones}"
        )
    names = {field.name for field in dataclasses.fields(DeploymentOptions)}
    names &= {field.name for field in dataclasses.fields(DeploymentConfig)}
    own = {
        "num_clones": num_clones,
        "clone_on_cpu": on_cpu,
        "replica_id": options.task,
        "num_replicas": options.worker_replicas,
        "replicas_to_aggregate": options.num_aggregated,
        "loss_scale": options.loss_scale_setting,
        # Neither all-reduce nor asynchronous clones can be copied: variables or batches are their
        # own.
        "copy_clones": options.copy_clones and not (options.all_reduce or options.asynchronous),
    }
    with named_as(replica_id="task", num_replicas="worker_replicas"):
        return DeploymentConfig(**{name: getattr(options, name) for name in names} | own)


def way_to_train(options: DeploymentOptions) -> str:
    """Returns in a few words how the variables are updated."""
    return str(_way_of(options))


def clones_in_update(options: DeploymentOptions, num_clones: int) -> int:
    """Returns how many clones, of all replicas, contribute to one update of the variables."""
    return _way_of(options, num_clones).clones_in_update


def _way_of(options: DeploymentOptions, num_clones: int = 1) -> Way:
    """Returns the way to train of the options, with parameter servers where it can have them."""
    config = DeploymentConfig(
        num_clones=num_clones,
        num_replicas=options.worker_replicas,
        num_ps_tasks=0 if options.all_reduce else 1,
        all_reduce=options.all_reduce,
        asynchronous=options.asynchronous,
        replicas_to_aggregate=options.num_aggregated,
    )
    return way_for(config)


def clone_batch_size(options: DeploymentOptions, num_clones: int) -> int:
    """Returns the images per batch of a clone, which takes `accumulate_steps` batches per step.

    Raises:
      ValueError: if the number of batches in a step does not divide the global batch size.
    """
    if options.global_batch_size is None:
        return options.batch_size or DEFAULT_BATCH_SIZE
    accumulated = ""
    if options.accumulate_steps > 1:
        accumulated = f" * accumulate_steps={options.accumulate_steps}"
    num_batches = num_clones * options.accumulate_steps
    if options.global_batch_size % num_batches:
        raise ValueError(
            f"global_batch_size must be a multiple of num_clones={num_clones}{accumulated}, "
            f"got {options.global_batch_size}"
        )
    return options.global_batch_size // num_batches
