"""Fine-tuning from a Keras file, with the same table and flags as from a checkpoint."""

from collections.abc import Callable
from typing import Any

from model_deploy import internals
from model_deploy.checkpoints import (
    MISSING,
    RESTORED,
    SKIPPED,
    FineTuneOptions,
    VariableRow,
    check_rows,
    excluded_names,
    table,
)
from model_deploy.keras.weights import loading, read_weights


def restore_fn(
    options: FineTuneOptions, model: Any, show: Callable[[str], object] = print
) -> Callable[[Any], None]:
    """Returns a function that loads the Keras file `checkpoint_path`, for `train(init_fn=...)`.

    Args:
      options: the options; `checkpoint_path` is a `.weights.h5`, `.keras` or `.h5` file.
      model: a built Keras model in the default graph, with variables of any shapes.
      show: called with a table of all variables, before any error is raised.

    Returns:
      A function of a session.

    Raises:
      ValueError: if the file cannot be read; if an excluded scope has no variable; or if a variable
        outside of excluded scopes is missing or has another shape.
    """
    path = options.checkpoint_path or ""
    values = read_weights(model, path)
    variables = [internals.tf_variable(each) for each in model.weights]
    excluded = excluded_names(options, [each.op.name for each in variables])
    rows = []
    for variable, value in zip(variables, values, strict=True):
        name, shape = variable.op.name, str(variable.shape.as_list())
        state = MISSING if value is None else RESTORED
        saved = None if value is None else str(list(value.shape))
        rows.append(VariableRow(name, shape, saved, SKIPPED if name in excluded else state))
    show(table(path, rows))
    check_rows(options, path, rows)
    restored = [place for place, row in enumerate(rows) if row.state == RESTORED]
    return loading([variables[i] for i in restored], [values[i] for i in restored])
