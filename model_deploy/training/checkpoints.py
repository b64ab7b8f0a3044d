"""Whether a checkpoint is one of the model that is about to restore it."""

import tensorflow.compat.v1 as tf

_SHOWN = 3


def check_fits(train_dir: str) -> None:
    """Compares the newest checkpoint in `train_dir` with the graph's global variables.

    Raises:
      ValueError: naming the first variables that it lacks or has in another shape.
    """
    path = tf.train.latest_checkpoint(train_dir)
    if path is None:
        return
    shapes = tf.train.load_checkpoint(path).get_variable_to_shape_map()
    wrong = []
    for variable in tf.global_variables():
        if getattr(variable, "_save_slice_info", None) is not None:
            continue  # a part of a variable; the checkpoint has the whole one
        name, shape = variable.op.name, variable.shape.as_list()
        if name not in shapes:
            wrong.append(f"{name} is missing")
        elif shapes[name] != shape:
            wrong.append(f"{name} has shape {shapes[name]}, not {shape}")
    if wrong:
        more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise ValueError(
            f"train_dir must be empty or hold checkpoints of this model, got {path}, where "
            f"{', '.join(wrong[:_SHOWN])}{more}"
        )
