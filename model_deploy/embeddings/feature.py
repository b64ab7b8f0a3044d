"""`SharedLookUps`: all clones of a worker look up rows of embeddings together."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.collectives import collectives_of, gather_rows
from model_deploy.config import DeploymentConfig
from model_deploy.embeddings.exchange import Asked, Request, answer
from model_deploy.embeddings.lookup import asking_for
from model_deploy.embeddings.shards import connect_slots
from model_deploy.feature import Build, Feature
from model_deploy.parts import Call, Part


class SharedLookUps(Feature):
    """Notes the look-ups of all parts, and answers them when all parts are built."""

    def __init__(self, config: DeploymentConfig) -> None:
        super().__init__(config)
        self._parts: list[tuple[Part, list[Request]]] = []

    def around_part(self, part: Part, call: Call, build: Build) -> Any:
        with asking_for(self.config) as requests:
            outputs = build(call)
        if part.counterparts is not None:
            _, of_first = self._parts[0]
            requests = [request.copied(part.counterparts) for request in of_first]
        self._parts.append((part, requests))
        return outputs

    def after_parts(self, ops: Sequence[Any]) -> None:
        del ops
        together: dict[int, list[Request]] = {}
        for part, requests in self._parts:
            # Else all clones of the worker make a step together, of the same variables.
            shares = self.config.clones_share_variables and not self.config.asynchronous
            together.setdefault(0 if shares else part.clone_index, []).extend(requests)
        groups = [group for group in together.values() if group]
        if not groups:
            return
        device = self.config.inputs_device()
        answer(groups, device, None if self.config.clones_share_variables else self._of_everyone)
        _, of_first = self._parts[0]
        for part, requests in self._parts:
            if part.counterparts is not None:
                for first, own in zip(of_first, requests, strict=True):
                    # Copies of gradients find the positions that they need by this.
                    part.counterparts.tensors[first.positions.name] = own.positions

    def after_update(self, computed: Sequence[Any]) -> None:
        del computed
        connect_slots()

    def _of_everyone(self, asked: Sequence[Asked]) -> list[Any]:
        """Returns for each clone the ids that all clones of all replicas ask one table for."""
        collectives = collectives_of(self.config, "look_up")
        name = asked[0].shards.table.name
        ids = [each.unique for each in asked]
        counts = collectives.gather(
            collectives.on_devices(lambda i: tf.size(ids[i])[tf.newaxis]), f"ids of {name}"
        )
        gathered = collectives.together(gather_rows(collectives, ids, counts, f"{name} ids"))
        return collectives.on_devices(lambda i: tf.unique(gathered[i]).y)
