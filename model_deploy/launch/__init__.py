"""Starts a whole cluster, here or by ssh: `python -m model_deploy.launch -- COMMAND`."""

from model_deploy.launch.again import launched_again
from model_deploy.launch.elastic import ElasticLauncher
from model_deploy.launch.elastic_servers import ElasticServersLauncher
from model_deploy.launch.joining import JoiningLauncher
from model_deploy.launch.launcher import Launcher
from model_deploy.launch.options import LaunchOptions
from model_deploy.launch.ports import ReservedPorts

__all__ = [
    "ElasticLauncher",
    "ElasticServersLauncher",
    "JoiningLauncher",
    "LaunchOptions",
    "Launcher",
    "ReservedPorts",
    "launched_again",
]
