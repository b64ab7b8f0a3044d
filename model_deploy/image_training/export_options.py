"""The options of an export."""

import dataclasses
from typing import ClassVar

from model_deploy import exporting, training
from model_deploy.commands import option
from model_deploy.image_training.of_run import OfRun
from model_deploy.trackers import check_names


@dataclasses.dataclass(frozen=True)
class ExportOptions(OfRun):
    """All options of an export of an image classifier; each is a flag of the script.

    Raises:
      ValueError: as `OfRun`; if no output is named; for a `tracker` that is unknown, without a
        `train_dir`, or whose package is not installed.
    """

    topic: ClassVar[str] = "export"

    # A training run's options of these names concern its own start and batches.
    not_reused: ClassVar[tuple[str, ...]] = ("checkpoint_path", "batch_size", "tracker")

    output_dir: str | None = option(None, "new folder for a SavedModel", topic="run", common=True)
    output_file: str | None = option(None, "new file for a frozen graph", topic="run", common=True)
    output_onnx: str | None = option(None, "new file for ONNX", topic="run")
    output_tflite: str | None = option(None, "new file for TensorFlow Lite", topic="run")
    tflite_type: str = option(
        "float32",
        "what the file for TensorFlow Lite has: int8 computes in 8 bits, with ranges that are "
        "those on images of the dataset",
        choices=exporting.TYPES,
    )
    calibration_images: int = option(
        100, "images of --dataset_split_name for the ranges of int8", minimum=1
    )
    write_text_graphdef: bool = option(False, "write the frozen graph as text")
    with_preprocessing: bool = option(
        False, "take images as in files, 0 to 255 and of any size, and preprocess them", common=True
    )
    image_size: int | None = option(
        None,
        "height and width of the images; default: those of the training",
        minimum=1,
        common=True,
    )
    batch_size: int | None = option(None, "images per request; default: any number", minimum=1)
    dataset_split_name: str = option(
        "train", "split of the dataset to read the classes of", topic="inputs"
    )
    num_classes: int | None = option(
        None,
        "classes of the dataset, if its files are not at hand; its images then have three "
        "channels, and the network takes one with --use_grayscale",
        minimum=1,
        common=True,
    )
    is_video_model: bool = option(False, "the network takes videos; known from --model_name")
    num_frames: int | None = option(None, "frames of each video; default: any number", minimum=1)
    tracker: str | None = option(
        None,
        "trackers that know the run in --train_dir and get the model: mlflow, wandb or aim, or "
        "several with commas between them",
    )
    is_training: bool = training.gone("is_training")
    quantize: bool = training.gone("quantize")
    debug: bool = option(False, "show where an error comes from", topic="other")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tracker is not None:
            check_names(self.tracker)
            if self.train_dir is None:
                raise ValueError(f"tracker must go with train_dir, got {self.tracker} alone")
        if not any(self._wanted().values()):
            raise ValueError(f"{' or '.join(self._wanted())} must be given, got none")
        if self.output_onnx:
            exporting.check_onnx()
        self._check_for_devices()
        if self.write_text_graphdef and not self.output_file:
            raise ValueError("write_text_graphdef must come with an output_file, got True without")

    @property
    def flags(self) -> dict[str, str]:
        """Argument names in errors -> the flags that the user gave for them."""
        size = "train_image_size" if self.image_size is None else "image_size"
        return {
            "checkpoint_path": self.source_flag,
            "train_image_size": size,
            "image_size": size,
            "preprocessing name": "preprocessing_name",
            "preprocessing": "preprocessing_name",
        }

    def new_paths(self) -> dict[str, str]:
        """Returns the paths of the outputs by option; none may exist yet.

        Raises:
          ValueError: if an output exists.
        """
        paths = {field: path for field, path in self._wanted().items() if path}
        for field, path in paths.items():
            training.check_is_new(field, path)
        return paths

    def _wanted(self) -> dict[str, str | None]:
        fields = ("output_dir", "output_file", "output_onnx", "output_tflite")
        return {field: getattr(self, field) for field in fields}

    def _check_for_devices(self) -> None:
        """Checks what goes with files for other programs, which take prepared images."""
        for field in ("output_onnx", "output_tflite"):
            if getattr(self, field) and self.with_preprocessing:
                raise ValueError(
                    f"with_preprocessing must be False with {field}, which takes images as the "
                    "preprocessing makes them, got True"
                )
        if self.tflite_type != "float32" and not self.output_tflite:
            raise ValueError(
                f"tflite_type must go with output_tflite, got {self.tflite_type} alone"
            )
        if self.tflite_type == "int8" and self.num_classes is not None:
            raise ValueError(
                "num_classes must be None with tflite_type=int8, which needs images of the "
                f"dataset, got {self.num_classes}"
            )
