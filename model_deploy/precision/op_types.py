"""Which types of ops compute in 16 bits."""

PRECISIONS = ("float32", "bfloat16", "float16")

# They multiply and add up in 32 bits what comes in 16, and take most of the time.
COMPUTE = frozenset(
    """
    BatchMatMul BatchMatMulV2 Conv2D Conv2DBackpropInput Conv3D Conv3DBackpropInputV2
    DepthwiseConv2dNative Einsum MatMul
    """.split()  # noqa: SIM905 - not one a line
)

# What lies between these.  All else, such as softmax, exponentials, norms, sums and means, needs
# more digits or a larger range than 16 bits have.
BETWEEN = frozenset(
    """
    Add AddV2 AvgPool AvgPool3D BatchToSpaceND BiasAdd ConcatV2 DepthToSpace ExpandDims
    FusedBatchNormV3 Identity LeakyRelu MaxPool MaxPool3D Maximum Minimum MirrorPad Mul Neg Pack Pad
    PadV2 Relu Relu6 Reshape Select SelectV2 Sigmoid Slice SpaceToBatchND SpaceToDepth Split
    SplitV Squeeze StopGradient StridedSlice Sub Tanh Tile Transpose Unpack
    """.split()  # noqa: SIM905 - not one a line
)
