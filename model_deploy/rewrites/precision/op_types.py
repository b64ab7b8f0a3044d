"""Which types of ops compute in 16 bits."""

from model_deploy.internals import NewOp

# Types that take most of the time; they sum products of 16-bit values in 32 bits.
COMPUTE = frozenset(
    """
    BatchMatMul BatchMatMulV2 Conv2D Conv2DBackpropInput Conv3D Conv3DBackpropInputV2
    DepthwiseConv2dNative Einsum MatMul
    """.split()  # noqa: SIM905 - not one a line
)

# Types that may follow those in 16 bits.  All others, such as softmax, exponentials, sums and
# means, need more digits or a larger range than 16 bits have.  So does `AvgPool`: TensorFlow's CPU
# kernel sums in bfloat16, and the mean of 49 numbers is already 2% off.
BETWEEN = frozenset(
    """
    Add AddV2 BatchToSpaceND BiasAdd ConcatV2 DepthToSpace ExpandDims
    FusedBatchNormV3 Identity LeakyRelu MaxPool MaxPool3D Maximum Minimum MirrorPad Mul Neg Pack Pad
    PadV2 Relu Relu6 Reshape Select SelectV2 Sigmoid Slice SpaceToBatchND SpaceToDepth Split
    SplitV Squeeze StopGradient StridedSlice Sub Tanh Tile Transpose Unpack
    """.split()  # noqa: SIM905 - not one a line
)

# TensorFlow fuses these into a convolution; the fused CPU kernel takes 1,000 times as long in
# float16 as in float32.
SLOW_IN_FLOAT16 = frozenset(["BiasAdd"])

# Depthwise convolutions, and activations whose CPU kernels take two to nine times as long in
# bfloat16 as in float32, their gradients two to ten times.  Sums take three times as long; but one
# of two values in 16 bits takes no longer than the casts of these.
_SLOW = frozenset(["DepthwiseConv2dNative", "Relu6", "Sigmoid", "Tanh"])
_SUMS = frozenset(["Add", "AddV2", "Sub"])

# TensorFlow's CPU kernel of batch norm works on groups of so many channels; with a remainder it
# takes 3 times as long in 16 bits as in float32, and its gradient 4 to 9 times.
_CHANNELS_AT_ONCE = 16
# A convolution sums (filter rows x columns x input channels) products per output value; with fewer
# than this the casts cost more than 16 bits save.
_LEAST_PRODUCTS = 64


def is_slow_on_cpus(new: NewOp) -> bool:
    """Whether an op is slower in 16 bits on CPUs whatever its inputs are.

    These are depthwise convolutions, smooth and bounded activations and the shifts before them (a
    sum with a number), and batch norms whose channels have a remainder.
    """
    if new.type in _SUMS:
        return any(each.op.type == "Const" and each.shape.rank == 0 for each in new.inputs)
    if new.type == "FusedBatchNormV3":
        return _has_a_remainder(new.inputs[1].shape.num_elements())
    return new.type in _SLOW


def is_little_work(new: NewOp) -> bool:
    """Whether an op with float32 inputs is slower in 16 bits on CPUs, casts included.

    These are convolutions of 1 x 1 with few input channels or a remainder, and larger ones with
    both.
    """
    if new.type != "Conv2D" or not new.inputs[1].shape.rank:
        return False
    shape = new.inputs[1].shape
    products, positions = shape[:3].num_elements(), shape[:2].num_elements()
    of_few = products is not None and products < _LEAST_PRODUCTS
    reasons = of_few, _has_a_remainder(shape[3:].num_elements())
    return any(reasons) if positions == 1 else all(reasons)


def lacks_float16_on_cpus(new: NewOp) -> bool:
    """Whether an op has a float16 kernel only on few CPUs: ops of images with channels first.

    TensorFlow's own kernels need channels last; oneDNN's need a CPU with AVX512-FP16.
    """
    return "data_format" in new.attrs and new.attrs["data_format"].s.startswith(b"NC")


def _has_a_remainder(channels: int | None) -> bool:
    return channels is not None and channels % _CHANNELS_AT_ONCE != 0
