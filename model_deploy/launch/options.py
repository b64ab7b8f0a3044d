"""`LaunchOptions`: the settings of a launch, each a flag."""

import dataclasses

from model_deploy.commands import option
from model_deploy.launch.host_options import HostOptions

RESTARTS = ("auto", "task", "all")
CHIEFS = ("chief", "master", "worker")


@dataclasses.dataclass(frozen=True)
class LaunchOptions(HostOptions):
    """How many tasks there are, and what the launcher does when a task fails."""

    num_workers: int = option(1, "workers, the chief included", minimum=1)
    num_ps: int = option(0, "parameter servers", minimum=0)
    chief: str = option(
        "chief",
        "job of the first worker in TF_CONFIG: master for programs of TensorFlow 1.3 or older, and "
        "of Cloud ML Engine; worker for programs whose chief is worker 0",
        choices=CHIEFS,
    )
    max_workers: int | None = option(
        None,
        "workers that there may be, where they come and go: an elastic run starts with so many, "
        "one of asynchronous parameter servers with num_workers; see docs/elastic.md",
        minimum=1,
    )
    elastic: bool = option(
        False,
        "with num_ps and max_workers: workers make each step together, by elastic.train_elastic",
    )
    min_workers: int = option(1, "workers with which such a run goes on at least", minimum=1)
    start_timeout: float = option(
        300.0, "seconds that an elastic run waits with fewer than min_workers", above=0
    )
    max_restarts: int = option(0, "how often in all crashed tasks are started again", minimum=0)
    restart: str = option(
        "auto",
        "what is started again after a crash: the task, or all of them, which counts once; auto: "
        "all where there is no parameter server that keeps the variables",
        choices=RESTARTS,
    )
    evaluator: bool = option(
        False,
        "start an evaluator, too, which follows the checkpoints of the run; its loss ends nothing",
    )
    evaluator_grace_secs: float = option(
        300.0, "seconds that the evaluator has to end by itself after the workers' end", above=0
    )
    divide_gpus: bool = option(
        True, "whether the workers divide the GPUs; else each sees all of them, as with -np"
    )
    divide_cores: bool = option(
        False,
        "whether the workers of a machine divide its cores; else each may use all of them",
    )
    log_dir: str | None = option(None, "folder for a log file per task; default: a new one in /tmp")
    grace_secs: float = option(
        10.0,
        "seconds that tasks have to end by themselves, after SIGTERM and after the chief's end",
        above=0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_workers is None:
            if self.min_workers != 1:
                raise ValueError(
                    f"min_workers must go with max_workers, got {self.min_workers} without"
                )
            if self.elastic:
                raise ValueError("elastic must go with max_workers, got True without")
            return
        if self.min_workers > self.max_workers:
            raise ValueError(
                f"min_workers must be at most max_workers={self.max_workers}, "
                f"got {self.min_workers}"
            )
        if self.is_elastic and self.num_workers != 1:
            raise ValueError(
                "num_workers must be 1 with max_workers in an elastic run, which starts with "
                f"max_workers, got {self.num_workers}"
            )
        if not self.is_elastic and self.num_workers < self.min_workers:
            raise ValueError(
                f"num_workers must be at least min_workers={self.min_workers} on parameter servers "
                f"without elastic, got {self.num_workers}"
            )
        if not 1 <= self.num_workers <= self.max_workers:
            raise ValueError(
                f"num_workers must be at most max_workers={self.max_workers}, "
                f"got {self.num_workers}"
            )
        if self.chief != CHIEFS[0] and not self.has_addresses:
            raise ValueError(
                f"chief must be {CHIEFS[0]} in an elastic run without parameter servers, which has "
                f"no TF_CONFIG, got {self.chief!r}"
            )
        if self.restart == "all":
            raise ValueError("restart must be auto or task with max_workers, got 'all'")

    @property
    def is_elastic(self) -> bool:
        """Whether workers that come and go make each step together."""
        return self.max_workers is not None and (self.elastic or self.num_ps == 0)

    @property
    def most_workers(self) -> int:
        """How many workers there may be at a time."""
        return self.max_workers or self.num_workers

    @property
    def has_addresses(self) -> bool:
        """Whether each task has one address for the whole launch; not so in elastic all-reduce."""
        return not self.is_elastic or self.num_ps > 0

    @property
    def num_addresses(self) -> int:
        """How many tasks have one address for the whole launch."""
        return self.most_workers + self.num_ps if self.has_addresses else 0

    @property
    def restarts_all(self) -> bool:
        """Whether a crash of one task starts all of them again."""
        return self.restart == "all" or (self.restart == "auto" and self.num_ps == 0)
