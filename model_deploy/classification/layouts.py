"""The order of axes in which a network computes, as its settings name it."""

from typing import Any


def layout_keywords(network_fn: Any, name: str, data_format: str) -> dict[str, Any]:
    """Keywords that let a network compute in a layout.

    Args:
      network_fn: what `nets_factory.get_network_fn` returned.
      name: of the network.
      data_format: that of `DeploymentConfig`; but for `NCHW` a network is as it is.

    Raises:
      ValueError: if the network does not have that layout.
    """
    if data_format != "NCHW":
        return {}
    settings = getattr(network_fn, "settings", None)
    if settings is None:
        raise ValueError(
            f"data_format must be auto or NHWC with model_name={name!r}, whose layers name the "
            "axes of NHWC, got 'NCHW'"
        )
    config = settings()
    config.data_format = data_format
    return {"config": config}
