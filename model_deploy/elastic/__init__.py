"""Elastic runs: workers leave and join, and the weights equal those of an undisturbed run."""

from model_deploy.elastic.keeping import servers_of
from model_deploy.elastic.loop import Build, ElasticModel, train_elastic
from model_deploy.elastic.member import Member
from model_deploy.elastic.watch import WorldChanged, WorldWatch

__all__ = [
    "Build",
    "ElasticModel",
    "Member",
    "WorldChanged",
    "WorldWatch",
    "servers_of",
    "train_elastic",
]
