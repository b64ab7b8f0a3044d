"""Tables of embeddings: fixed ones and ones that grow, whose rows all clones look up together."""

from model_deploy.embeddings.columns import embedding_column
from model_deploy.embeddings.feature import SharedLookUps
from model_deploy.embeddings.index import scatter
from model_deploy.embeddings.initial_rows import Constant, Normal, Uniform
from model_deploy.embeddings.layouts import moved_variables
from model_deploy.embeddings.lookup import look_up
from model_deploy.embeddings.shards import GrowingShard, connect_slots, growing_shards
from model_deploy.embeddings.table import FixedTable, GrowingTable

__all__ = [
    "Constant",
    "FixedTable",
    "GrowingShard",
    "GrowingTable",
    "Normal",
    "SharedLookUps",
    "Uniform",
    "connect_slots",
    "embedding_column",
    "growing_shards",
    "look_up",
    "moved_variables",
    "scatter",
]
