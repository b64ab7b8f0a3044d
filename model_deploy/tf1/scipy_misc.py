"""`scipy.misc`: images as arrays, gone since SciPy 1.3, by Pillow as it was."""

# ruff: noqa: PLR0917 - the order of arguments is SciPy's
import functools
import importlib
from typing import Any

import numpy as np

_FILTERS = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "cubic": 3}


_SPECIAL = ("comb", "factorial", "factorial2", "factorialk", "logsumexp")


def __getattr__(name: str) -> Any:
    """Functions that `scipy.special` has today."""
    if name in _SPECIAL:
        return getattr(importlib.import_module("scipy.special"), name)
    raise AttributeError(f"module 'scipy.misc' has no attribute {name!r}")


@functools.cache
def _pillow() -> Any:
    try:
        return importlib.import_module("PIL.Image")
    except ImportError:
        raise ImportError(
            "scipy.misc is gone since SciPy 1.3; what it did with images is done here by Pillow, "
            "which is not installed: pip install pillow"
        ) from None


def imread(name: Any, flatten: bool = False, mode: str | None = None) -> np.ndarray:
    """Reads an image.

    Args:
      name: a file or its path.
      flatten: whether colours become grey, as float32.
      mode: Pillow's mode to convert to, such as "RGB" or "L".

    Returns:
      An array [h, w] or [h, w, c], uint8 unless the file has another type.
    """
    with _pillow().open(name) as image:
        return fromimage(image, flatten, mode)


def imsave(name: Any, arr: Any, format: str | None = None) -> None:  # noqa: A002 - SciPy's
    """Writes an image.

    Args:
      name: a file or its path.
      arr: an array, see `toimage`.
      format: of the file; by default that of its name.
    """
    toimage(arr, channel_axis=2 if np.ndim(arr) == 3 else None).save(
        name, **({} if format is None else {"format": format})
    )


def imresize(arr: Any, size: Any, interp: str = "bilinear", mode: str | None = None) -> np.ndarray:
    """Resizes an image; as ever, values that are not uint8 are first scaled from 0 to 255.

    Args:
      arr: an array [h, w] or [h, w, 3 or 4].
      size: percent as an integer, a factor as a float, or (height, width).
      interp: "nearest", "lanczos", "bilinear", "bicubic" or "cubic".
      mode: Pillow's mode for the array, such as "L" or "F".

    Returns:
      An array of the new size, uint8 unless the mode is of another type.

    Raises:
      ValueError: for another `interp`.
    """
    if interp not in _FILTERS:
        raise ValueError(f"interp must be one of {', '.join(_FILTERS)}, got {interp!r}")
    image = toimage(arr, mode=mode)
    if np.issubdtype(np.asarray(size).dtype, np.integer) and np.ndim(size) == 0:
        size = size / 100.0
    if np.ndim(size) == 0:
        width, height = (int(side * size) for side in image.size)
    else:
        height, width = size
    return fromimage(image.resize((int(width), int(height)), resample=_FILTERS[interp]))


def imrotate(arr: Any, angle: float, interp: str = "bilinear") -> np.ndarray:
    """Turns an image counterclockwise, within its size.

    Args:
      arr: an array, see `toimage`.
      angle: in degrees.
      interp: see `imresize`.
    """
    return fromimage(toimage(arr).rotate(angle, resample=_FILTERS[interp]))


def fromimage(im: Any, flatten: bool = False, mode: str | None = None) -> np.ndarray:
    """An image of Pillow as an array, see `imread`."""
    if mode is not None and mode != im.mode:
        im = im.convert(mode)
    elif im.mode == "P":
        im = im.convert("RGBA" if "transparency" in im.info else "RGB")
    if flatten:
        im = im.convert("F")
    elif im.mode == "1":
        im = im.convert("L")  # else the array is of bool
    return np.array(im)


def bytescale(
    data: Any, cmin: Any = None, cmax: Any = None, high: int = 255, low: int = 0
) -> np.ndarray:
    """Values scaled from `cmin` ... `cmax` to `low` ... `high`, as uint8; uint8 stays as it is.

    Args:
      data: an array.
      cmin: what becomes `low`; the least value by default.
      cmax: what becomes `high`; the greatest value by default.
      high: up to 255.
      low: from 0.

    Raises:
      ValueError: for bounds that are out of range or the wrong way round.
    """
    data = np.asarray(data)
    if data.dtype == np.uint8:
        return data
    if not 0 <= low <= high <= 255:
        raise ValueError(f"low and high must be from 0 to 255 and in order, got {low} and {high}")
    cmin = data.min() if cmin is None else cmin
    cmax = data.max() if cmax is None else cmax
    if cmax < cmin:
        raise ValueError(f"cmax must be at least cmin, got {cmax} and {cmin}")
    scale = float(high - low) / (float(cmax) - float(cmin) or 1.0)
    scaled = (data - cmin) * scale + low
    return (scaled.clip(low, high) + 0.5).astype(np.uint8)


def toimage(
    arr: Any,
    high: int = 255,
    low: int = 0,
    cmin: Any = None,
    cmax: Any = None,
    pal: Any = None,
    mode: str | None = None,
    channel_axis: int | None = None,
) -> Any:
    """An array as an image of Pillow.

    Args:
      arr: an array [h, w], or of three dimensions of which one is of size 3 or 4.
      high: see `bytescale`.
      low: see there.
      cmin: see there.
      cmax: see there.
      pal: None; palettes are not done.
      mode: "F" for float32, "I" for int32, "L" or "RGB" or "RGBA" for bytes.
      channel_axis: the dimension of the colours; by default the first one of size 3, or else 4.

    Raises:
      ValueError: for another array, or a palette.
    """
    data = np.asarray(arr)
    if pal is not None:
        raise ValueError(f"pal must be None, got {pal!r}")
    if np.iscomplexobj(data) or data.ndim not in (2, 3):
        raise ValueError(f"arr must be real, [h, w] or [h, w, c], got {data.dtype} {data.shape}")
    if mode in ("F", "I"):
        return _pillow().fromarray(data.astype(np.float32 if mode == "F" else np.int32))
    data = bytescale(data, cmin, cmax, high, low)
    if data.ndim == 3:
        axes = [axis for size in (3, 4) for axis in range(3) if data.shape[axis] == size]
        if channel_axis is None and not axes:
            raise ValueError(f"arr must have a dimension of 3 or 4, got shape {data.shape}")
        data = np.moveaxis(data, axes[0] if channel_axis is None else channel_axis, 2)
    image = _pillow().fromarray(np.ascontiguousarray(data))
    return image if mode is None or image.mode == mode else image.convert(mode)
