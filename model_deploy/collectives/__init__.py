"""Exchange between the clones of all replicas: collective ops, packs, sums of gradients."""

from model_deploy.collectives import packing
from model_deploy.collectives.carriers import CARRIED, can_be_sent, carried_as, carrier, largest
from model_deploy.collectives.exchange import Left, exchange_gradients
from model_deploy.collectives.in_process import InProcess, collectives_in_process
from model_deploy.collectives.low_rank import LowRankSums, numbers_sent, sizes_of
from model_deploy.collectives.members import add_missing_members
from model_deploy.collectives.narrow import sum_narrow
from model_deploy.collectives.ops import Collectives, PerClone, collectives_of
from model_deploy.collectives.pack_sizes import (
    FEW_MEMBERS_MOST_BYTES,
    LEAST_BYTES,
    MOST_BYTES,
    left_packs,
    packs_of,
)
from model_deploy.collectives.rows import fill_up, gather_rows, rows_to_send, without_filling

__all__ = [
    "CARRIED",
    "FEW_MEMBERS_MOST_BYTES",
    "LEAST_BYTES",
    "MOST_BYTES",
    "Collectives",
    "InProcess",
    "Left",
    "LowRankSums",
    "PerClone",
    "add_missing_members",
    "can_be_sent",
    "carried_as",
    "carrier",
    "collectives_in_process",
    "collectives_of",
    "exchange_gradients",
    "fill_up",
    "gather_rows",
    "largest",
    "left_packs",
    "numbers_sent",
    "packing",
    "packs_of",
    "rows_to_send",
    "sizes_of",
    "sum_narrow",
    "without_filling",
]
