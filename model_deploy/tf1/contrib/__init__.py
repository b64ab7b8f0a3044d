"""`tf.contrib`: from the packages that still have what was there, or written anew.

>>> from model_deploy.tf1 import contrib
>>> contrib.layers.l2_regularizer(0.1).__name__
'l2'
>>> contrib.training.HParams(rate=0.1, layers=2).parse("rate=0.5").rate
0.5
"""

from typing import Any

from model_deploy.tf1.contrib.table import contrib_module

__all__ = ["contrib_module"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(contrib_module("tensorflow.contrib"), name)
