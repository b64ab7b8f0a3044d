"""`tf.data` pipelines that feed clones, in training and evaluation."""
