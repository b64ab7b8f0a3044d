"""What is in a checkpoint, for tests that compare runs."""

import tensorflow.compat.v1 as tf


def checkpoint_values(path):
    """Arrays by name of a checkpoint, or of the newest one in a folder."""
    reader = tf.train.load_checkpoint(str(path))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
