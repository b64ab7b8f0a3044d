"""Parts of `tf.contrib` that no package has any more, written anew; `table.py` says which."""
