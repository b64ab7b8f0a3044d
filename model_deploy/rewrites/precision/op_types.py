"""Which types of ops compute in 16 bits."""

import tensorflow.compat.v1 as tf

from model_deploy.internals import NewOp

# They multiply and add up in 32 bits what comes in 16, and take most of the time.
COMPUTE = frozenset(
    """
    BatchMatMul BatchMatMulV2 Conv2D Conv2DBackpropInput Conv3D Conv3DBackpropInputV2
    DepthwiseConv2dNative Einsum MatMul
    """.split()  # noqa: SIM905 - not one a line
)

# What lies between these.  All else, such as softmax, exponentials, norms, sums and means, needs
# more digits or a larger range than 16 bits have.  So does the mean of a pool: TensorFlow's kernel
# for CPUs adds up in bfloat16, and 49 numbers already come out 2% off.
BETWEEN = frozenset(
    """
    Add AddV2 BatchToSpaceND BiasAdd ConcatV2 DepthToSpace ExpandDims
    FusedBatchNormV3 Identity LeakyRelu MaxPool MaxPool3D Maximum Minimum MirrorPad Mul Neg Pack Pad
    PadV2 Relu Relu6 Reshape Select SelectV2 Sigmoid Slice SpaceToBatchND SpaceToDepth Split
    SplitV Squeeze StopGradient StridedSlice Sub Tanh Tile Transpose Unpack
    """.split()  # noqa: SIM905 - not one a line
)

# TensorFlow fuses a convolution with these, and that kernel for CPUs takes 1,000 times as long in
# float16 as in float32.
SLOW_IN_FLOAT16 = frozenset(["BiasAdd"])

# Channels of a batch norm come in groups of this many; with a remainder TensorFlow's kernel for
# CPUs takes 3 times as long in 16 bits as in float32, and that of its gradient 4 to 9 times.
_CHANNELS_AT_ONCE = 16
# A convolution adds up as many products for each number that it gives as its filter has positions,
# times the channels that it takes.  With fewer than these casts cost more than they bring.
_LEAST_PRODUCTS = 64


def is_slow_on_cpus(new: NewOp) -> bool:
    """Whether an op whose inputs are in float32 is better left so on CPUs.

    Such are batch norms of channels that make no whole groups; and convolutions that are little
    work: depthwise ones, those of 1 x 1 that take few channels or give no whole groups, and larger
    ones for which both is so.  Casts before and behind take what they gain.
    """
    shape = new.inputs[1].shape if len(new.inputs) > 1 else tf.TensorShape(None)
    if new.type == "DepthwiseConv2dNative":
        return True
    if new.type == "FusedBatchNormV3":
        return _has_a_remainder(shape.num_elements())
    if new.type != "Conv2D" or not shape.rank:
        return False
    products, positions = shape[:3].num_elements(), shape[:2].num_elements()
    of_few = products is not None and products < _LEAST_PRODUCTS
    reasons = of_few, _has_a_remainder(shape[3:].num_elements())
    return any(reasons) if positions == 1 else all(reasons)


def lacks_float16_on_cpus(new: NewOp) -> bool:
    """Whether an op has a kernel in float16 on few CPUs only: one of images with channels first.

    TensorFlow's own kernels take channels last; those of oneDNN need a CPU with AVX512-FP16.
    """
    return "data_format" in new.attrs and new.attrs["data_format"].s.startswith(b"NC")


def _has_a_remainder(channels: int | None) -> bool:
    return channels is not None and channels % _CHANNELS_AT_ONCE != 0
