"""`export`: writes a checkpoint for other programs, and prints its signatures."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import exporting, inputs, training
from model_deploy.commands import named_as
from model_deploy.image_training.export_options import ExportOptions
from model_deploy.image_training.networks import Networks
from model_deploy.trackers import check_names, send_model

_COLOUR_CHANNELS = 3


def export(options: ExportOptions, networks: Networks) -> None:
    """Exports a checkpoint, and prints the signatures of the exported model.

    Args:
      options: the options.
      networks: the networks that `options.model_name` chooses from.

    Raises:
      ValueError: for an invalid option.
      OSError: if the outputs cannot be written.
    """
    paths = options.new_paths()
    with named_as(**options.flags):
        training.find_checkpoint(options.source)
    serving = serving_of(options, networks)
    with tf.Graph().as_default(), tf.Session() as session:
        use_averages = options.moving_average_decay is not None
        with named_as(**options.flags):
            signatures = serving.signatures()
            checkpoint = training.restore_to_export(session, options.source, use_averages)
        if "output_dir" in paths:
            training.write_saved_model(
                session, signatures, paths["output_dir"], serving.class_names
            )
        if "output_file" in paths:
            training.write_frozen_graph(
                session, signatures, paths["output_file"], options.write_text_graphdef
            )
        if "output_onnx" in paths:
            exporting.write_onnx(session, signatures["serving_default"], paths["output_onnx"])
        if "output_tflite" in paths:
            exporting.write_tflite(
                session,
                signatures["serving_default"],
                paths["output_tflite"],
                options.tflite_type,
                calibration_images(options, serving) if options.tflite_type == "int8" else None,
            )
    if options.tracker is not None:
        for path in paths.values():
            send_model(options.train_dir or "", check_names(options.tracker), path)
    averages = "moving averages of " if use_averages else ""
    print(f"{options.model_name}: {averages}{checkpoint} -> {', '.join(paths.values())}")
    for name, signature in signatures.items():
        print(f"  {name}: {_shown(signature.inputs)} -> {_shown(signature.outputs)}")


def calibration_images(options: ExportOptions, serving: training.Serving) -> np.ndarray[Any, Any]:
    """Returns the first images of the dataset, prepared as in evaluation: float32 [n, h, w, c].

    Raises:
      ValueError: if the dataset cannot be read.
    """
    with tf.Graph().as_default(), tf.Session() as session:
        batches = inputs.eval_batches(
            _dataset(options),
            batch_size=options.calibration_images,
            **serving.classifier.input_options,
        )
        image = next(batches)["image"]
        session.run([tf.local_variables_initializer(), tf.tables_initializer()])
        images: np.ndarray[Any, Any] = session.run(image)
        return images


def serving_of(options: ExportOptions, networks: Networks) -> training.Serving:
    """Returns the classifier with its settings for serving.

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
        classifier = _classifier_without_dataset(sized, networks, options.num_classes)
    else:
        dataset = _dataset(options)
        classifier = training.Classifier.of(sized, dataset, networks.get_network_fn)
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


def _classifier_without_dataset(
    options: ExportOptions, networks: Networks, num_classes: int
) -> training.Classifier:
    if options.labels_offset >= num_classes:
        raise ValueError(
            f"labels_offset must be less than num_classes={num_classes}, "
            f"got {options.labels_offset}"
        )
    num_logits = num_classes - options.labels_offset
    return training.Classifier(options, num_logits, networks.get_network_fn)


def _dataset(options: ExportOptions) -> inputs.Dataset:
    try:
        return training.get_dataset(options, options.dataset_split_name)
    except ValueError as error:
        raise ValueError(f"{error}; without it, give --num_classes") from error


def _shown(tensors: dict[str, tf.Tensor]) -> str:
    return ", ".join(
        f"{name} ({tensor.name}) {tensor.dtype.name} {tensor.shape.as_list()}"
        for name, tensor in tensors.items()
    )
