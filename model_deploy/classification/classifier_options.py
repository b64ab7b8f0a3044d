"""`ClassifierOptions`: the settings, each a flag, of an image classifier."""

import dataclasses
from typing import ClassVar

from model_deploy import inputs
from model_deploy.checks import check_choice
from model_deploy.classification.gone_settings import check_gone
from model_deploy.commands import Options, option


@dataclasses.dataclass(frozen=True)
class ClassifierOptions(Options):
    """The options on which training, evaluation and export have to agree.

    Raises:
      ValueError: as `Options`; for unknown names, and settings that no longer exist.
    """

    topic: ClassVar[str] = "network"

    dataset_name: str = option("digits", "name of the dataset", topic="inputs", common=True)
    dataset_dir: str | None = option(
        None, "folder of the dataset's files; digits needs none", topic="inputs", common=True
    )
    model_name: str = option("lenet", "name of the network", common=True)
    labels_offset: int = option(
        0,
        "subtracted from labels: 1 leaves out the background class of ImageNet",
        minimum=0,
        topic="inputs",
    )
    skip_corrupt_records: int = option(
        0, "how many corrupt records may be skipped", minimum=0, topic="inputs"
    )
    num_readers: int | None = option(
        None,
        "reads at the same time; default: as many as cores, 16 of files elsewhere",
        minimum=1,
        topic="inputs",
    )
    num_preprocessing_threads: int | None = option(
        None,
        "calls of the preprocessing at a time; default: as tf.data decides",
        minimum=1,
        topic="inputs",
    )
    train_image_size: int | None = option(
        None,
        "height and width of the images; default: those of the network",
        minimum=1,
        topic="inputs",
    )
    weight_decay: float = option(0.00004, "weight of the L2 regularization", minimum=0)
    label_smoothing: float = option(
        0.0, "share of the target spread over all classes", minimum=0, below=1
    )
    use_grayscale: bool = option(False, "turn the images to grey", topic="inputs")
    preprocessing_name: str | None = option(
        None, "name of the preprocessing; default: that of the network", topic="inputs"
    )
    eval_mirrored: bool = option(
        False,
        "evaluate the mean of the logits of each image and its mirror image; exports have those of "
        "the image",
    )
    moving_average_decay: float | None = option(
        None,
        "decay of the moving averages of the variables; default: none",
        above=0,
        below=1,
        topic="optimizer",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        inputs.check_dataset_name("dataset_name", self.dataset_name)
        if self.preprocessing_name is not None:
            names = inputs.preprocessing_names()
            check_choice("preprocessing_name", self.preprocessing_name, names)
            if self.is_keras and self.preprocessing_name != "keras":
                raise ValueError(
                    f"preprocessing_name must be that of Keras for {self.model_name}, which does "
                    f"the rest itself, got {self.preprocessing_name!r}"
                )
        check_gone(self)
        self.check_network_name()

    def check_network_name(self) -> None:
        """Checks `model_name` in subclasses that know all names; else `Classifier` does.

        Raises:
          ValueError: in a subclass, for an unknown network.
        """

    @property
    def is_keras(self) -> bool:
        """Whether the network is one of `keras.applications`."""
        return self.model_name.startswith("keras/")
