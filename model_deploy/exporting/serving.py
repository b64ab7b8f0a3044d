"""Inputs and outputs of a served classifier: images in, predictions out."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import inputs
from model_deploy.classification import Classifier
from model_deploy.config import DeploymentConfig
from model_deploy.keras_layers import seeing_layers

IMAGES_SIGNATURE = tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY  # serving_default
ENCODED_SIGNATURE = "encoded_images"
EXAMPLES_SIGNATURE = "serialized_examples"


class Signature(NamedTuple):
    """The inputs and outputs of one kind of request to a served model.

    Attributes:
      inputs: placeholders by name, of shape [batch, ...].
      outputs: tensors by name, of shape [batch, ...]; see `Serving.signatures`.
    """

    inputs: dict[str, Any]
    outputs: dict[str, Any]

    @property
    def numbers(self) -> dict[str, Any]:
        """The outputs that are no strings, by name, of shape [batch, ...]."""
        return {name: each for name, each in self.outputs.items() if each.dtype != tf.string}


class Serving(NamedTuple):
    """A classifier and the settings with which it is served.

    Attributes:
      classifier: network and preprocessing.
      channels: 1 or 3, number of channels of images before preprocessing.
      class_names: one name per class; empty if unknown.
      batch_size: fixed batch size of requests; None for any.
      num_frames: fixed number of frames of a video; None for any.
      is_video: whether the network must take videos; False if either is right.
      with_preprocessing: whether the graph preprocesses images, which then are 0 to 255 and of
        any size.
    """

    classifier: Classifier
    channels: int
    class_names: Sequence[str] = ()
    batch_size: int | None = None
    num_frames: int | None = None
    is_video: bool = False
    with_preprocessing: bool = False

    def signatures(self) -> dict[str, Signature]:
        """Builds the network in the default graph, once per signature with shared variables.

        `serving_default` takes "images", float32 [batch, height, width, channels], or for videos
        [batch, frames, height, width, channels].  `encoded_images`, which networks of videos lack,
        takes "encoded_images", strings [batch], JPEG or PNG, which it decodes and preprocesses as
        in evaluation.  `serialized_examples` takes "examples", strings [batch], of each a
        `tf.train.Example` with such an image in `image/encoded`.  All return

        * "logits" and "probabilities", float32 [batch, classes];
        * "classes", int64 [batch], the most likely classes;
        * "labels", string [batch], their names, if `class_names` are known.

        Raises:
          ValueError: if the network takes no images, or videos contrary to the settings.
        """
        # Gives the variables of Keras layers the same names as in training.
        with seeing_layers(DeploymentConfig(), 0, ""):
            return self._signatures()

    def _signatures(self) -> dict[str, Signature]:
        is_video = self._takes_videos()
        images = self._images(is_video)
        prepared = self._preprocessed(images, _to_uint8) if self.with_preprocessing else images
        first = Signature({"images": images}, self._outputs(prepared))
        if is_video:
            return {IMAGES_SIGNATURE: first}
        return {
            IMAGES_SIGNATURE: first,
            ENCODED_SIGNATURE: self._of_strings("encoded", "encoded_images", lambda given: given),
            EXAMPLES_SIGNATURE: self._of_strings("examples", "examples", _image_of_examples),
        }

    def _of_strings(self, scope: str, name: str, to_encoded: Callable[[Any], Any]) -> Signature:
        """Returns a signature that takes strings [batch], in a name scope of its own."""
        with tf.variable_scope(tf.get_variable_scope(), reuse=True), tf.name_scope(scope):
            given = tf.placeholder(tf.string, [self.batch_size], name="input")
            images = self._preprocessed(to_encoded(given), self._decode)
            return Signature({name: given}, self._outputs(images))

    def _takes_videos(self) -> bool:
        """Returns whether the network takes videos; checks the settings against that."""
        name = self.classifier.options.model_name
        rank = getattr(self.classifier.network_fn(is_training=False).inputs, "rank", None)
        if rank is None:
            raise ValueError(f"model_name must be a network of images, got {name!r}")
        is_video = rank == 5
        for_videos = {"is_video_model": self.is_video, "num_frames": self.num_frames}
        for_images = {"with_preprocessing": self.with_preprocessing}
        for field, value in (for_images if is_video else for_videos).items():
            if value:
                kind = "images" if is_video else "videos"
                raise ValueError(
                    f"{field} must be for a network of {kind}, got {value} with {name!r}"
                )
        return is_video

    def _images(self, is_video: bool) -> Any:
        """Returns the placeholder, named `input` as in TF-Slim's exported graphs."""
        options = self.classifier.options
        channels = self.channels
        size = None if self.with_preprocessing else self.classifier.input_options["image_size"]
        if options.use_grayscale and not self.with_preprocessing:
            channels = 1
        frames = [self.num_frames] if is_video else []
        shape = [self.batch_size, *frames, size, size, channels]
        return tf.placeholder(tf.float32, shape, name="input")

    def _preprocessed(self, elements: Any, to_image: Callable[[Any], Any]) -> Any:
        """Converts elements [batch, ...] to images, uint8 [h, w, c], and preprocesses them."""
        settings = self.classifier.input_options
        family = inputs.get_preprocessing(settings["preprocessing"])
        size, keywords = settings["image_size"], settings.get("preprocessing_options", {})

        def preprocess(element: Any) -> Any:
            image = to_image(element)
            if family.batched:
                return family.evaluate(image[tf.newaxis], size, size, **keywords)[0]
            return family.evaluate(image, size, size, **keywords)

        channels = 1 if self.classifier.options.use_grayscale else self.channels
        spec = tf.TensorSpec([size, size, channels], tf.float32)
        return tf.map_fn(preprocess, elements, fn_output_signature=spec, name="preprocess")

    def _decode(self, contents: Any) -> Any:
        image = tf.io.decode_image(contents, self.channels, expand_animations=False)
        return tf.ensure_shape(image, [None, None, self.channels])

    def _outputs(self, images: Any) -> dict[str, Any]:
        """Builds the network on preprocessed images; returns the output tensors by name."""
        logits, _ = self.classifier.network_fn(is_training=False)(images)
        classes = tf.argmax(logits, axis=1, name="classes")
        outputs = {
            "logits": tf.identity(logits, name="logits"),
            "probabilities": tf.nn.softmax(logits, name="probabilities"),
            "classes": classes,
        }
        if self.class_names:
            outputs["labels"] = tf.gather(
                tf.constant(list(self.class_names)), classes, name="labels"
            )
        return outputs


def _image_of_examples(serialized: Any) -> Any:
    """Returns the encoded images, strings [batch], of serialized examples, strings [batch]."""
    feature = tf.io.FixedLenFeature([], tf.string)
    return tf.io.parse_example(serialized, {"image/encoded": feature})["image/encoded"]


def _to_uint8(image: Any) -> Any:
    return tf.saturate_cast(tf.round(image), tf.uint8)
