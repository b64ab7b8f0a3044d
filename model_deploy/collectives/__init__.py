"""Exchange between the clones of all replicas: collective ops, packs, sums of gradients."""

from model_deploy.collectives import packing
from model_deploy.collectives.exchange import exchange_gradients
from model_deploy.collectives.members import add_missing_members
from model_deploy.collectives.ops import Collectives, PerClone, collectives_of
from model_deploy.collectives.pack_sizes import LEAST_BYTES, MOST_BYTES, packs_of

__all__ = [
    "LEAST_BYTES",
    "MOST_BYTES",
    "Collectives",
    "PerClone",
    "add_missing_members",
    "collectives_of",
    "exchange_gradients",
    "packing",
    "packs_of",
]
