"""The options of an evaluation."""

import dataclasses
from typing import ClassVar

from model_deploy import training
from model_deploy.commands import option
from model_deploy.image_training.of_run import OfRun


@dataclasses.dataclass(frozen=True)
class EvalOptions(OfRun):
    """All options of an evaluation of an image classifier; each is a flag of the script.

    Raises:
      ValueError: as `OfRun`.
    """

    topic: ClassVar[str] = "evaluation"

    # A training run's options of these names concern its own split, devices and start.
    not_reused: ClassVar[tuple[str, ...]] = (
        "batch_size",
        "checkpoint_path",
        "clone_on_cpu",
        "dataset_split_name",
        "debug",
        "master",
        "num_clones",
    )

    eval_dir: str | None = option(
        None,
        "folder for results and TensorBoard events; default: eval_<split> beside the checkpoint",
        topic="run",
        common=True,
    )
    dataset_split_name: str | None = option(
        None, "split to evaluate on; default: test, or else validation", topic="inputs", common=True
    )
    eval_image_size: int | None = option(
        None,
        "height and width of the images; default: those of training",
        minimum=1,
        topic="inputs",
    )
    batch_size: int = option(
        100, "images at a time, divided over the clones", minimum=1, topic="inputs", common=True
    )
    max_num_batches: int | None = option(
        None, "end after this many batches; default: all", minimum=1
    )
    num_clones: int | None = option(
        None,
        "clones; default: one for each visible GPU, or 1 on the CPU",
        minimum=1,
        topic="deployment",
        common=True,
    )
    clone_on_cpu: bool = option(
        False, "put the clones on the CPU; by itself without a GPU", topic="deployment"
    )
    master: str = option(
        "", "address of the TensorFlow server to use; default: this process", topic="cluster"
    )
    eval_interval_secs: float | None = option(
        None,
        "seconds between looks for new checkpoints; default: evaluate the newest one and end",
        above=0,
        common=True,
    )
    eval_timeout_secs: float = option(
        3600.0, "how many seconds to wait for the next checkpoint", minimum=0
    )
    max_number_of_steps: int | None = option(
        None,
        "step after which to look for no more checkpoints; default: that of the run",
        minimum=1,
    )
    quantize: bool = training.gone("quantize")
    debug: bool = option(False, "show where an error comes from", topic="other")

    @property
    def size_flag(self) -> str:
        """The flag that sets the size of the images."""
        return "train_image_size" if self.eval_image_size is None else "eval_image_size"
