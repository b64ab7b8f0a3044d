"""Numbers that all contenders share, whichever library they use."""

# Images in a step, over all clones.
BATCH_SIZE = 128
# cifarnet's input; of digits, 28 x 28, a part as large is cut from the padded image.
IMAGE_SIZE = 32
PADDING = 4
# The tiny network; its batch is that of one clone.
TINY_BATCH_SIZE, TINY_INPUTS, TINY_CLASSES = 8, 10, 4
# The embedding: a table of 256 MB, and the sentences of a step, over all clones.
ROWS, WIDTH, SENTENCES, WORDS = 1_000_000, 64, 64, 20
LEARNING_RATE = 0.01
# As TF-Slim and PyTorch count it: the loss has half of it times the squared weights.
WEIGHT_DECAY = 0.004
