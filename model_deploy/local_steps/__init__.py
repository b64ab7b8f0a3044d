"""Steps that replicas make by themselves, and the outer step that brings their changes together."""

from model_deploy.local_steps.exchanges import Exchanges
from model_deploy.local_steps.schedule import parts_by_bytes

__all__ = ["Exchanges", "parts_by_bytes"]
