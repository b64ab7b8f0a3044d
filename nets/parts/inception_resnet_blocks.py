"""The blocks of Inception-ResNet-v2 that change the size of the map, or its depth.

After C. Szegedy, S. Ioffe, V. Vanhoucke, A. Alemi, "Inception-v4, Inception-ResNet and the Impact
of Residual Connections on Learning" (2016), https://arxiv.org/abs/1602.07261, figures 7 and 18;
the widths are those of the published checkpoint.
"""

from typing import Any

from nets.parts.branches import Layer, avg_pool, branches, chain, conv, max_pool


def mixed_5b() -> Layer:
    """Inception-v3's first block: 35 x 35 x 192 to 35 x 35 x 320."""
    return branches(
        conv("", 1, 1, 96),
        chain(conv("0a", 1, 1, 48), conv("0b", 5, 5, 64)),
        chain(conv("0a", 1, 1, 64), conv("0b", 3, 3, 96), conv("0c", 3, 3, 96)),
        chain(avg_pool(), conv("0b", 1, 1, 64)),
    )


def mixed_6a(stride: int, padding: str) -> Layer:
    """Reduction-A: 35 x 35 x 320 to 17 x 17 x 1088 (figure 7)."""
    halving: dict[str, Any] = {"stride": stride, "padding": padding}
    return branches(
        conv("1a", 3, 3, 384, **halving),
        chain(conv("0a", 1, 1, 256), conv("0b", 3, 3, 256), conv("1a", 3, 3, 384, **halving)),
        max_pool("1a", **halving),
    )


def mixed_7a(padding: str) -> Layer:
    """Reduction-B: 17 x 17 x 1088 to 8 x 8 x 2080 (figure 18)."""
    halving: dict[str, Any] = {"stride": 2, "padding": padding}
    return branches(
        chain(conv("0a", 1, 1, 256), conv("1a", 3, 3, 384, **halving)),
        chain(conv("0a", 1, 1, 256), conv("1a", 3, 3, 288, **halving)),
        chain(conv("0a", 1, 1, 256), conv("0b", 3, 3, 288), conv("1a", 3, 3, 320, **halving)),
        max_pool("1a", **halving),
    )
