"""Steps cut elsewhere: what is left of an exchange is done beside the next forward pass."""

from model_deploy.rotation.cut import Rotated, rotate
from model_deploy.rotation.passage import local_variable
from model_deploy.rotation.rest import Rest

__all__ = ["Rest", "Rotated", "local_variable", "rotate"]
