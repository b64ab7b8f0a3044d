"""The confusion matrix: which classes are mistaken for which, and its picture."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from model_deploy.commands import without_font_notices

# With more classes the picture has no names at the axes, and no numbers in the cells.
_MOST_NAMES = 40
_MOST_NUMBERS = 20


def confusion_matrix(labels: np.ndarray, predicted: np.ndarray, num_classes: int) -> np.ndarray:
    """Counts the examples of each class by predicted class.

    >>> confusion_matrix(np.array([0, 0, 1]), np.array([0, 1, 1]), 2).tolist()
    [[1, 1], [0, 1]]

    Args:
      labels: int [n], in [0, num_classes).
      predicted: int [n], in [0, num_classes).
      num_classes: number of classes.

    Returns:
      int64 [num_classes, num_classes]; rows are labels, columns are predictions.

    Raises:
      ValueError: for a label outside of [0, num_classes).
    """
    outside = labels[(labels < 0) | (labels >= num_classes)]
    if outside.size:
        raise ValueError(f"labels must be from 0 to {num_classes - 1}, got {outside[0]}")
    cells = np.bincount(labels * num_classes + predicted, minlength=num_classes**2)
    return cells.reshape(num_classes, num_classes)


def confusion_figure(confusion: np.ndarray, class_names: Sequence[str], title: str) -> Any:
    """Draws a confusion matrix; the color is the fraction of a label's examples.

    Args:
      confusion: what `confusion_matrix` returns, int64 [num_classes, num_classes].
      class_names: one name per class.
      title: title of the figure.

    Returns:
      A `matplotlib.figure.Figure`, for `savefig`.
    """
    # Imported here, as it takes half a second; not pyplot, which would keep state and windows.
    from matplotlib.figure import Figure  # noqa: PLC0415

    num_classes = len(class_names)
    side = min(16.0, 4.0 + 0.4 * num_classes)
    figure = Figure(figsize=(side + 1, side), layout="constrained")
    axes = figure.add_subplot()
    examples = np.maximum(1, confusion.sum(axis=1, keepdims=True))
    image = axes.imshow(confusion / examples, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(image, ax=axes, label="share of the label's examples", shrink=0.8)
    axes.set(title=title, xlabel="predicted class", ylabel="label")
    if num_classes <= _MOST_NAMES:
        axes.set_xticks(range(num_classes), class_names, rotation=90)
        axes.set_yticks(range(num_classes), class_names)
    if num_classes <= _MOST_NUMBERS:
        for (row, column), count in np.ndenumerate(confusion):
            colour = "white" if count > examples[row, 0] / 2 else "black"
            axes.text(column, row, str(count), ha="center", va="center", color=colour)
    return figure


@without_font_notices()
def confusion_png(
    confusion: np.ndarray, class_names: Sequence[str], title: str, dpi: int = 80
) -> bytes:
    """Draws a confusion matrix as PNG, with so many dots per inch, see `confusion_figure`."""
    content = io.BytesIO()
    confusion_figure(confusion, class_names, title).savefig(content, format="png", dpi=dpi)
    return content.getvalue()
