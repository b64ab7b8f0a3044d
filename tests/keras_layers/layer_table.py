"""Every layer, activation and loss of Keras 3 and tf-keras, by the inputs that it takes.

A row gives the settings of a layer, or a function of `keras.layers` that makes it.
"""

from typing import Any

from tests.keras_layers import small_models

# Layers that take [batch, 6]; gradients reach what is before them.
_VECTORS: dict[str, Any] = {
    "Dense": {"units": 4, "activation": "tanh"},
    "EinsumDense": {"equation": "ab,bc->ac", "output_shape": 4, "bias_axes": "c"},
    "Activation": {"activation": "softplus"},
    "ActivityRegularization": {"l2": 0.0},
    "LayerNormalization": {},
    "RMSNormalization": {},
    "UnitNormalization": {},
    "GroupNormalization": {"groups": 2},
    "ELU": {},
    "LeakyReLU": {},
    "PReLU": {},
    "ReLU": {},
    "Softmax": {},
    "ThresholdedReLU": {"theta": 0.1},
    "Flatten": {},
    "Reshape": {"target_shape": (2, 3)},
    "RepeatVector": {"n": 2},
    "Lambda": {"function": lambda x: x * x, "output_shape": (6,)},
    "Identity": {},
    "Rescaling": {"scale": 0.5, "offset": 1.0},
    "Normalization": {"mean": 0.2, "variance": 0.7},
    "MelSpectrogram": {
        **{"fft_length": 4, "sequence_stride": 2, "num_mel_bins": 2, "sampling_rate": 40},
        **{"min_freq": 1, "max_freq": 20, "power_to_db": False},
    },
    "SpectralNormalization": lambda layers: layers.SpectralNormalization(layers.Dense(4)),
}
_PAIRS = {
    name: {"axes": 1} if name == "Dot" else {}
    for name in (
        *("Add", "Average", "Concatenate", "Dot", "Maximum", "Minimum", "Multiply", "Subtract"),
    )
}
# [batch, 5, 4]
_SEQUENCES: dict[str, Any] = {
    "Conv1D": {"filters": 3, "kernel_size": 2},
    "Conv1DTranspose": {"filters": 3, "kernel_size": 2, "strides": 2},
    "DepthwiseConv1D": {"kernel_size": 2},
    "SeparableConv1D": {"filters": 3, "kernel_size": 2},
    "LocallyConnected1D": {"filters": 3, "kernel_size": 2, "implementation": 2},
    "AveragePooling1D": {"pool_size": 2},
    "MaxPooling1D": {"pool_size": 2},
    "GlobalAveragePooling1D": {},
    "GlobalMaxPooling1D": {},
    "AdaptiveAveragePooling1D": {"output_size": 2},
    "AdaptiveMaxPooling1D": {"output_size": 2},
    "Cropping1D": {"cropping": 1},
    "ZeroPadding1D": {"padding": 1},
    "UpSampling1D": {"size": 2},
    "Permute": {"dims": (2, 1)},
    "TimeDistributed": lambda layers: layers.TimeDistributed(layers.Dense(3)),
    "STFTSpectrogram": {"frame_length": 4, "frame_step": 2, "fft_length": 4, "mode": "real"},
}
_LOOPS: dict[str, Any] = {
    "SimpleRNN": {"units": 3},
    "GRU": {"units": 3, "return_sequences": True},
    "LSTM": {"units": 3},
    "RNN": lambda layers: layers.RNN(layers.LSTMCell(3)),
    "StackedRNNCells": lambda layers: layers.RNN(
        layers.StackedRNNCells([layers.GRUCell(3), layers.SimpleRNNCell(2)])
    ),
    "Bidirectional": lambda layers: layers.Bidirectional(layers.GRU(2)),
}
# Of sequences of which some end with zeros, [batch, 5, 4].
_MASKED: dict[str, Any] = {
    "Masking": lambda layers: lambda x: layers.GRU(3)(layers.Masking()(x)),
    "GlobalAveragePooling1D": lambda layers: (
        lambda x: layers.GlobalAveragePooling1D()(layers.Masking()(x))
    ),
}
# Of queries, and of values that are another layer's output: [batch, 5, 4] each.
_ATTENTION: dict[str, Any] = {
    "Attention": {"use_scale": True},
    "AdditiveAttention": {},
    "MultiHeadAttention": {"num_heads": 2, "key_dim": 3},
    "GroupQueryAttention": {"head_dim": 3, "num_query_heads": 4, "num_key_value_heads": 2},
}
# [batch, 6, 6, 3]
_IMAGES: dict[str, Any] = {
    "Conv2D": {"filters": 3, "kernel_size": 2, "strides": 2},
    "Conv2DTranspose": {"filters": 3, "kernel_size": 2, "strides": 2},
    "DepthwiseConv2D": {"kernel_size": 2},
    "SeparableConv2D": {"filters": 3, "kernel_size": 2},
    "LocallyConnected2D": {"filters": 2, "kernel_size": 2, "strides": 2, "implementation": 2},
    "AveragePooling2D": {"pool_size": 2},
    "MaxPooling2D": {},
    "GlobalAveragePooling2D": {},
    "GlobalMaxPooling2D": {},
    "AdaptiveAveragePooling2D": {"output_size": 2},
    "AdaptiveMaxPooling2D": {"output_size": 2},
    "Cropping2D": {"cropping": 1},
    "ZeroPadding2D": {"padding": 1},
    "UpSampling2D": {"interpolation": "bilinear"},
    "CenterCrop": {"height": 3, "width": 2},
    "Resizing": {"height": 4, "width": 3},
}
# [batch, 4, 4, 4, 2]
_VOLUMES: dict[str, Any] = {
    "Conv3D": {"filters": 2, "kernel_size": 2, "strides": 2},
    "Conv3DTranspose": {"filters": 2, "kernel_size": 2, "strides": 2},
    "AveragePooling3D": {"pool_size": 2},
    "MaxPooling3D": {},
    "GlobalAveragePooling3D": {},
    "GlobalMaxPooling3D": {},
    "AdaptiveAveragePooling3D": {"output_size": 2},
    "AdaptiveMaxPooling3D": {"output_size": 2},
    "Cropping3D": {"cropping": 1},
    "ZeroPadding3D": {"padding": 1},
    "UpSampling3D": {},
}
# [batch, 2, 3, 3, 3, 2], of which each takes what it can.
_FILMS: dict[str, Any] = {
    "ConvLSTM1D": {"filters": 2, "kernel_size": 2},
    "ConvLSTM2D": {"filters": 2, "kernel_size": 2},
    "ConvLSTM3D": {"filters": 2, "kernel_size": 2},
}
# Integers from 0 to 10, [batch, 4].
_WORDS: dict[str, Any] = {
    "Embedding": {"input_dim": 11, "output_dim": 3},
    "ReversibleEmbedding": {"input_dim": 11, "output_dim": 3},
    "CategoryEncoding": {"num_tokens": 11, "output_mode": "count"},
    "Hashing": {"num_bins": 5},
}
# Of the same, with a table of TensorFlow, which copies of a clone refuse.
_TABLES: dict[str, Any] = {"IntegerLookup": {"vocabulary": [3, 1, 4, 5, 9]}}
# Of the examples themselves, as no gradient passes, [batch, 8, 8, 3].
_PREPARATION: dict[str, Any] = {
    "Discretization": {"bin_boundaries": [-0.5, 0.0, 0.5]},
    "AutoContrast": {"value_range": (-1, 1)},
    "ContrastLimitedAdaptiveHistogramEqualization": {"value_range": (-1, 1)},
}
_NORMS: dict[str, Any] = {
    "BatchNormalization": {"momentum": 0.9},
    "after another": lambda layers: layers.BatchNormalization(momentum=0.8, scale=False),
}
# Draw random numbers, of colours between 0 and 1, [batch, 6, 6, 3].
_RATE, _FACTOR, _COLOURS = {"rate": 0.3}, {"factor": 0.2}, {"value_range": (0, 1)}
_RANDOM: dict[str, Any] = {
    "Dropout": _RATE,
    "AlphaDropout": _RATE,
    "GaussianDropout": _RATE,
    "GaussianNoise": {"stddev": 0.3},
    "SpatialDropout1D": lambda layers: layers.TimeDistributed(layers.SpatialDropout1D(0.3)),
    "SpatialDropout2D": _RATE,
    "RandomBrightness": {**_FACTOR, **_COLOURS},
    "RandomContrast": _FACTOR,
    "RandomCrop": {"height": 4, "width": 4},
    "RandomFlip": {},
    "RandomRotation": _FACTOR,
    "RandomTranslation": {"height_factor": 0.2, "width_factor": 0.2},
    "RandomZoom": {"height_factor": 0.2},
    "RandomColorDegeneration": {**_FACTOR, **_COLOURS},
    "RandomColorJitter": {**_COLOURS, "brightness_factor": 0.2, "hue_factor": 0.2},
    "RandomElasticTransform": {"factor": 1.0, **_COLOURS},
    "RandomErasing": {"factor": 1.0, **_COLOURS},
    "RandomGaussianBlur": {"factor": 1.0, **_COLOURS},
    "RandomGrayscale": {"factor": 0.5},
    "RandomHue": {**_FACTOR, **_COLOURS},
    "RandomInvert": {"factor": 0.5, **_COLOURS},
    "RandomPerspective": {"factor": 0.5},
    "RandomPosterization": {"factor": 4, **_COLOURS},
    "RandomSaturation": {**_FACTOR, **_COLOURS},
    "RandomSharpness": {**_FACTOR, **_COLOURS},
    "RandomShear": {"x_factor": 0.2, "y_factor": 0.2},
    "Solarization": {"threshold_factor": 0.5, **_COLOURS},
    "MixUp": {},
    "CutMix": {},
    "RandomHeight": lambda layers: _resized(layers, layers.RandomHeight(0.2)),
    "RandomWidth": lambda layers: _resized(layers, layers.RandomWidth(0.2)),
}
KINDS: dict[str, Any] = {
    "vectors": (_VECTORS | small_models.OF_VECTORS, (6,)),
    "pairs": (_PAIRS, (6,)),
    "sequences": (_SEQUENCES, (5, 4)),
    "loops": (_LOOPS, (5, 4)),
    "masked": (_MASKED, (5, 4)),
    "attention": (_ATTENTION, (5, 4)),
    "images": (_IMAGES | small_models.OF_IMAGES, (6, 6, 3)),
    "volumes": (_VOLUMES, (4, 4, 4, 2)),
    "words": (_WORDS | small_models.OF_WORDS, (4,)),
    "tables": (_TABLES, (4,)),
    "films": (_FILMS, (2, 3, 3, 3, 2)),
    "preparation": (_PREPARATION, (8, 8, 3)),
    "norms": (_NORMS, (4, 4, 3)),
    "random": (_RANDOM, (6, 6, 3)),
}
# Those of one graph; activations are those of the libraries' lists, and losses come with them.
GROUPS = {
    "vectors": ("vectors", "pairs", "activations", "words"),
    "sequences": ("sequences", "loops", "masked", "attention", "films"),
    "images": ("images", "volumes", "preparation"),
    "tables": ("tables",),
    "norms": ("norms",),
    "random": ("random",),
}
ONLY_KERAS_3 = ("LoRA",)
# Settings of activations that have no defaults.
ACTIVATIONS = {"threshold": {"threshold": 0.1, "default_value": 0.2}}
# What a loss takes, shares or numbers of classes, and its settings.
LOSSES: dict[str, tuple[str, dict[str, Any]]] = {
    **{
        name: ("shares", {})
        for name in (
            *("BinaryCrossentropy", "BinaryFocalCrossentropy", "CategoricalCrossentropy"),
            *("CategoricalFocalCrossentropy", "CategoricalHinge", "CosineSimilarity", "Hinge"),
            *("Huber", "KLDivergence", "LogCosh", "MeanAbsoluteError", "MeanSquaredError"),
            *("MeanAbsolutePercentageError", "MeanSquaredLogarithmicError", "Poisson"),
            "SquaredHinge",
        )
    },
    "Dice": ("shares", {"axis": 1}),
    "Tversky": ("shares", {"axis": 1}),
    "SparseCategoricalCrossentropy": ("classes", {}),
    "CategoricalGeneralizedCrossEntropy": ("classes", {}),
}
# Why a loss has no row.
LOSSES_LEFT_OUT = {
    "Circle": "compares the examples of a batch with each other",
    "CTC": "compares tensors by `!=`, which in a graph asks whether they are the same object",
}
_OWN = "is for layers of one's own"
_CELL = "is called by `RNN`, whose rows have it"
_OTHER = "runs another framework"
_DRAWS = "draws which of the random layers it calls, which have rows"
# Why a class of layers has no row.
LEFT_OUT = {
    "Layer": _OWN,
    "Wrapper": _OWN,
    "AbstractRNNCell": _OWN,
    "InputLayer": "stands for the inputs of a model; every model here has one",
    "SimpleRNNCell": _CELL,
    "GRUCell": _CELL,
    "LSTMCell": _CELL,
    "FlaxLayer": _OTHER,
    "JaxLayer": _OTHER,
    "TorchModuleWrapper": _OTHER,
    "RandAugment": _DRAWS,
    "AugMix": _DRAWS,
    "TFSMLayer": "is a SavedModel",
    "Equalization": "makes one histogram of all images of a batch",
    "DenseFeatures": "takes feature columns",
    "Pipeline": "is a list of layers",
    "SpatialDropout3D": "is `SpatialDropout2D` with one more dimension",
    "MaxNumBoundingBoxes": "takes boxes, and changes no number",
    "StringLookup": "takes strings",
    "TextVectorization": "takes strings",
    "HashedCrossing": "takes strings",
}


def _resized(layers: Any, layer: Any) -> Any:
    """A layer whose images have any size, and then one size."""
    return lambda x: layers.Resizing(4, 4)(layer(x, training=True))
