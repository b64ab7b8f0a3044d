"""The options of a training run."""

import dataclasses
from typing import ClassVar

from model_deploy import inputs, keras, optimization, training
from model_deploy.checks import check_choice
from model_deploy.cluster import ClusterOptions
from model_deploy.commands import option

# Length of a run in epochs, if none is given.
DEFAULT_EPOCHS = 20
# What evaluations while training give, as `training.Evaluation` calls it.
SCORES = ("accuracy", "recall_at_5", "log_loss")


@dataclasses.dataclass(frozen=True)
class TrainOptions(
    inputs.Augmentation,
    ClusterOptions,
    training.DeploymentOptions,
    training.OptimizerOptions,
    training.LearningRateOptions,
    training.LoopOptions,
    training.ClassifierOptions,
    training.FineTuneOptions,
):
    """All options of a training run of an image classifier; each is a flag of the script.

    Raises:
      ValueError: as `Options`, and for options that exclude each other.
    """

    short_help: ClassVar[bool] = True

    train_dir: str = option(
        "/tmp/tfmodel/", "folder for checkpoints and TensorBoard events", common=True
    )
    dataset_split_name: str = option("train", "split to train on", topic="inputs")
    max_number_of_steps: int | None = option(
        None,
        f"number of the last step; default: that of epoch {DEFAULT_EPOCHS}",
        minimum=1,
        topic="loop",
        common=True,
    )
    clip_norm: float | None = option(
        None,
        "largest joint L2 norm of the gradients; default: not clipped",
        above=0,
        topic="optimizer",
    )
    shuffle_block: int | None = option(
        None,
        "neighbours of a file that are read together, for slow storage; default: each by itself",
        minimum=1,
        topic="inputs",
    )
    fast_decode: bool = option(
        False,
        "reduce large JPEGs while they are decoded, by 2, 4 or 8; little is gained, as all bits "
        "are read: 1.18 times the images a second from parts of 1,000 x 750 to 224",
        topic="inputs",
    )
    seed: int = option(0, "seed of initial values and of the order of images", minimum=0)
    deterministic: bool = option(
        False,
        "use only ops that give the same bits in every run, on GPUs as well, where they are slower",
        topic="loop",
    )
    export_keras: str | None = option(
        None,
        "file .weights.h5 or .keras for the weights of a keras/... network at the end",
        topic="checkpoints",
    )
    quantize_delay: int = training.gone("quantize_delay")
    describe: bool = option(False, "print what is placed on which device, before training")
    describe_picture: str | None = option(
        None, "SVG file for a picture of devices, what is on them and what moves in a step"
    )
    debug: bool = option(False, "show where an error comes from", topic="other")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.deterministic:
            self._check_order_of_updates()
        if self.learning_rate_decay_type == "plateau":
            optimization.check_plateau_is_evaluated(self.eval_every_n_steps)
        if self.stop_by is None and self.stop_metric is not None:
            check_choice("stop_metric", self.stop_metric, SCORES)
        if self.export_keras is not None:
            keras.check_export("export_keras", self.export_keras)
        from_keras = keras.is_weights_file(self.checkpoint_path or "")
        for field, of_keras in (("export_keras", True), ("checkpoint_path", from_keras)):
            value = getattr(self, field)
            if value is not None and of_keras and not self.is_keras:
                raise ValueError(
                    f"{field} must go with a network keras/..., got {value} with {self.model_name}"
                )
        if self.describe_picture is not None and not self.describe_picture.endswith(".svg"):
            raise ValueError(f"describe_picture must end in .svg, got {self.describe_picture!r}")

    def _check_order_of_updates(self) -> None:
        """Refuses ways to train in which the order of sums and updates varies between runs."""
        if self.asynchronous:
            raise ValueError("deterministic must be False with asynchronous=True, got True")
        if self.worker_replicas > 1 and not self.all_reduce:
            raise ValueError(
                f"deterministic must be False with worker_replicas={self.worker_replicas} on "
                "parameter servers, got True; --all_reduce adds up in a fixed order"
            )
