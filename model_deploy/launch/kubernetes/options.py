"""`ManifestOptions`: what a manifest is made of, each a flag."""

import dataclasses
import re

from model_deploy.commands import Options, option

KINDS = ("JobSet", "TFJob")

# https://pkg.go.dev/github.com/distribution/reference
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?:[A-Za-z0-9][A-Za-z0-9.-]*(?::\d+)?/)?{_COMPONENT}(?:/{_COMPONENT})*"
    r"(?::\w[\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?",
    re.ASCII,
)
# RFC 1123, as names of Kubernetes are.
_NAME = re.compile(r"[a-z](?:[a-z0-9-]*[a-z0-9])?")
# A pod's name has 63 letters at most; after the job's come `-evaluator-0-4095-` and five more.
_MOST_LETTERS = {"name": 40, "namespace": 63, "volume": 63, "storage_class": 63}
_QUANTITY = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:m|[kMGT]i?)?")


@dataclasses.dataclass(frozen=True)
class ManifestOptions(Options):
    """The pods of a cluster, and what they may use."""

    image: str = option("", "container image that has the program")
    kind: str = option("JobSet", "what is printed", choices=KINDS)
    name: str = option("model-deploy", "name of the job; pods, service and volume begin with it")
    namespace: str | None = option(None, "namespace; default: that of kubectl")
    workers: int = option(1, "workers, the chief included", minimum=1, maximum=4096)
    num_ps: int = option(0, "parameter servers", minimum=0, maximum=4096)
    evaluator: bool = option(False, "an evaluator, too, which follows the checkpoints of the run")
    port: int = option(2222, "port of each task", minimum=1024, maximum=65535)
    max_restarts: int = option(
        3,
        "how often what has crashed is started again: a task beside parameter servers, else all",
        minimum=0,
    )
    cpu: str = option("2", "cores of a worker, such as 500m")
    memory: str = option("4Gi", "memory of a worker, such as 4Gi")
    ps_cpu: str = option("1", "cores of a parameter server")
    ps_memory: str = option("4Gi", "memory of a parameter server")
    gpus: int = option(0, "GPUs of a worker, nvidia.com/gpu", minimum=0)
    volume: str | None = option(
        None, "volume claim that is there, for the folder of runs; default: one is printed, too"
    )
    volume_size: str = option("10Gi", "size of the claim that is printed")
    storage_class: str | None = option(None, "its storage class; default: that of the cluster")
    mount_path: str = option("/runs", "where the volume is; write --train_dir below it")
    start_timeout: int = option(
        1800, "seconds until a task must listen, pulling the image not counted", minimum=10
    )
    grace_secs: int = option(60, "seconds that a task has to save and end, once told", minimum=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _IMAGE.fullmatch(self.image):
            raise ValueError(
                "image must be a name such as registry.example.com/model_deploy:0.3, "
                f"got {self.image!r}"
            )
        for field, most in _MOST_LETTERS.items():
            value = getattr(self, field)
            if value is not None and not (_NAME.fullmatch(value) and len(value) <= most):
                raise ValueError(
                    f"{field} must be of a-z, 0-9 and -, from a letter on, and at most {most} "
                    f"long, got {value!r}"
                )
        for field in ("cpu", "memory", "ps_cpu", "ps_memory", "volume_size"):
            value = getattr(self, field)
            if not _QUANTITY.fullmatch(value) or not value.strip("0.mkMGTi"):
                raise ValueError(
                    f"{field} must be a quantity such as 2, 500m or 4Gi, got {value!r}"
                )
        if not self.mount_path.startswith("/") or ":" in self.mount_path:
            raise ValueError(f"mount_path must be a path from / on, got {self.mount_path!r}")

    @property
    def tasks(self) -> dict[str, int]:
        """How many tasks there are of each type of `TF_CONFIG`."""
        counts = {
            "chief": 1,
            "worker": self.workers - 1,
            "ps": self.num_ps,
            "evaluator": int(self.evaluator),
        }
        return {kind: count for kind, count in counts.items() if count}

    @property
    def claim(self) -> str:
        """Name of the volume claim."""
        return self.volume or f"{self.name}-runs"

    def metadata(self, name: str) -> dict[str, str]:
        """The `metadata` of an object of this name, in the namespace of all."""
        namespace = {} if self.namespace is None else {"namespace": self.namespace}
        return {"name": name, **namespace}
