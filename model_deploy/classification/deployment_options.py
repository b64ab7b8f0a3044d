"""`DeploymentOptions`: the settings, each a flag, of a classifier's deployment."""

import dataclasses
from typing import ClassVar

from model_deploy.commands import Options, option
from model_deploy.settings import (
    AGGREGATE_ON,
    DATA_FORMATS,
    PRECISIONS,
    PS_STRATEGIES,
    WIRE_PRECISIONS,
    check_loss_scale,
)

DEFAULT_BATCH_SIZE = 32


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
        "how variables are spread over parameter servers: in turn, or by bytes",
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
        "with --all_reduce, make a third of a step's sums and updates beside the next forward "
        "pass; with --sync_replicas, update, and read, a variable when its own gradients are there",
    )
    wire_precision: str = option(
        "float32",
        "type in which gradients, and variables of parameter servers, go from process to process; "
        "bfloat16 takes half of the bytes",
        choices=WIRE_PRECISIONS,
    )
    local_steps: int | None = option(
        None,
        "with --all_reduce, steps of each worker by itself before changes are averaged; default: "
        "gradients are, in each step",
        minimum=1,
    )
    outer_learning_rate: float = option(
        1.0, "with --local_steps, factor of the averaged changes", above=0
    )
    outer_momentum: float = option(
        0.0, "with --local_steps, Nesterov momentum of the averaged changes", minimum=0, below=1
    )
    outer_parts: int = option(
        1,
        "with --local_steps, groups of variables that are exchanged one after the other",
        minimum=1,
    )
    outer_overlap: int = option(
        0, "with --local_steps, steps beside which an exchange travels", minimum=0
    )
    gradient_rank: int | None = option(
        None,
        "with --all_reduce, send gradients of matrices as two factors of this rank, and what they "
        "lack later; default: whole",
        minimum=1,
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
        if self.rotate_steps and not (self.all_reduce or self.sync_replicas):
            raise ValueError("rotate_steps must go with all_reduce or sync_replicas, got it alone")
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
