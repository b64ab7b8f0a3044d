"""Exports a trained image classifier, to be served or to be used without this package.

    export_image_classifier --train_dir=digits_run --output_dir=digits_model

writes the newest checkpoint of a run as a SavedModel; `--output_file` writes a frozen graph.
"""

import dataclasses
import sys
from typing import ClassVar

from model_deploy.commands import without_tensorflow_notices

with without_tensorflow_notices():
    import tensorflow.compat.v1 as tf

    from model_deploy import inputs, training
    from model_deploy.commands import named_as, option, run_command
    from nets import nets_factory

_COLOUR_CHANNELS = 3


@dataclasses.dataclass(frozen=True)
class ExportOptions(training.ClassifierOptions):
    """All settings of an export; each is a flag."""

    topic: ClassVar[str] = "export"

    # Those of a training run are about where it started and how it was split up.
    not_reused: ClassVar[tuple[str, ...]] = ("checkpoint_path", "batch_size")

    train_dir: str | None = option(
        None, "folder of a training run, for its options and its newest checkpoint", topic="run"
    )
    checkpoint_path: str | None = option(
        None,
        "checkpoint to export, or a folder, whose newest it is; default: train_dir's",
        topic="run",
    )
    output_dir: str | None = option(None, "new folder for a SavedModel", topic="run")
    output_file: str | None = option(None, "new file for a frozen graph", topic="run")
    write_text_graphdef: bool = option(False, "write the frozen graph as text")
    with_preprocessing: bool = option(
        False, "take images as in files, 0 to 255 and of any size, and preprocess them"
    )
    image_size: int | None = option(
        None, "height and width of the images; default: those of the training", minimum=1
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
    )
    is_video_model: bool = option(False, "the network takes videos; known from --model_name")
    num_frames: int | None = option(None, "frames of each video; default: any number", minimum=1)
    is_training: bool = training.gone("is_training")
    quantize: bool = training.gone("quantize")
    debug: bool = option(False, "show where an error comes from", topic="other")

    def __post_init__(self) -> None:
        super().__post_init__()
        nets_factory.check_network_name("model_name", self.model_name)
        if not (self.train_dir or self.checkpoint_path):
            raise ValueError("train_dir or checkpoint_path must be given, got neither")
        if not (self.output_dir or self.output_file):
            raise ValueError("output_dir or output_file must be given, got neither")
        if self.write_text_graphdef and not self.output_file:
            raise ValueError("write_text_graphdef must come with an output_file, got True without")

    @property
    def flags(self) -> dict[str, str]:
        """The flags that were given, for the arguments that have the names of others."""
        source = "checkpoint_path" if self.checkpoint_path else "train_dir"
        size = "train_image_size" if self.image_size is None else "image_size"
        return {
            "checkpoint_path": source,
            "train_image_size": size,
            "image_size": size,
            "preprocessing name": "preprocessing_name",
            "preprocessing": "preprocessing_name",
        }

    def new_paths(self) -> dict[str, str]:
        """The outputs that are wanted, by their fields; none of them may exist.

        Raises:
          ValueError: if one does.
        """
        wanted = {"output_dir": self.output_dir, "output_file": self.output_file}
        paths = {field: path for field, path in wanted.items() if path}
        for field, path in paths.items():
            training.check_is_new(field, path)
        return paths


def serving_of(options: ExportOptions) -> training.Serving:
    """The classifier, as it is to be served.

    Raises:
      ValueError: if the dataset cannot be read and `num_classes` is not given, or
        `labels_offset` leaves no class.
    """
    sized = options
    if options.image_size is not None:
        sized = dataclasses.replace(options, train_image_size=options.image_size)
    channels: int | None = None
    class_names: tuple[str, ...] = ()
    if options.num_classes is not None:
        classifier = _classifier_without_dataset(sized, options.num_classes)
    else:
        dataset = _dataset(options)
        classifier = training.Classifier.of(sized, dataset, nets_factory.get_network_fn)
        channels = dataset.image_shape[-1]
        class_names = dataset.class_names[options.labels_offset :]
    return training.Serving(
        classifier,
        channels=channels or _COLOUR_CHANNELS,
        class_names=class_names,
        batch_size=options.batch_size,
        num_frames=options.num_frames,
        is_video=options.is_video_model,
        with_preprocessing=options.with_preprocessing,
    )


def _classifier_without_dataset(options: ExportOptions, num_classes: int) -> training.Classifier:
    if options.labels_offset >= num_classes:
        raise ValueError(
            f"labels_offset must be less than num_classes={num_classes}, "
            f"got {options.labels_offset}"
        )
    num_logits = num_classes - options.labels_offset
    return training.Classifier(options, num_logits, nets_factory.get_network_fn)


def _dataset(options: ExportOptions) -> inputs.Dataset:
    try:
        return training.get_dataset(options, options.dataset_split_name)
    except ValueError as error:
        raise ValueError(f"{error}; without it, give --num_classes") from error


def export(options: ExportOptions) -> None:
    """Exports a checkpoint.

    Raises:
      ValueError: for a setting that breaks a rule.
      OSError: if the outputs cannot be written.
    """
    paths = options.new_paths()
    with named_as(**options.flags):
        checkpoint = training.find_checkpoint(options.checkpoint_path or options.train_dir or "")
    serving = serving_of(options)
    with tf.Graph().as_default(), tf.Session() as session:
        use_averages = options.moving_average_decay is not None
        with named_as(**options.flags):
            signatures = serving.signatures()
            training.restore_to_export(session, checkpoint, use_averages)
        if "output_dir" in paths:
            training.write_saved_model(
                session, signatures, paths["output_dir"], serving.class_names
            )
        if "output_file" in paths:
            training.write_frozen_graph(
                session, signatures, paths["output_file"], options.write_text_graphdef
            )
    averages = "moving averages of " if use_averages else ""
    print(f"{options.model_name}: {averages}{checkpoint} -> {', '.join(paths.values())}")
    for name, signature in signatures.items():
        print(f"  {name}: {_shown(signature.inputs)} -> {_shown(signature.outputs)}")


def _shown(tensors: dict[str, tf.Tensor]) -> str:
    return ", ".join(
        f"{name} ({tensor.name}) {tensor.dtype.name} {tensor.shape.as_list()}"
        for name, tensor in tensors.items()
    )


def main(argv: list[str]) -> int:
    """Runs the command; a user's mistake is one line and exit code 1 or 2."""
    return run_command(argv, ExportOptions, export, __doc__, saved_in="train_dir")


def run() -> None:
    """The command `export_image_classifier`."""
    sys.exit(main(sys.argv))


if __name__ == "__main__":
    run()
