"""Rows that ops of a model gather on a parameter server: all ids, and all rows, in one message."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals
from model_deploy.config import DeploymentConfig
from model_deploy.parameter_servers.messages import keep_indices, send_ids, send_rows
from model_deploy.parameter_servers.shared_reads import is_remote


def share_gathers(config: DeploymentConfig, ops: Sequence[Any]) -> None:
    """Makes `tf.nn.embedding_lookup` and the like send one message to each server, and one back.

    A model with many tables, such as one of feature columns, sends ids to each table, gets rows and
    sends gradients, each by a message of its own.

    Each part has messages of its own: the gradient of one goes through no other.  Copied parts have
    none, as their gradients are copies of one that knows nothing of a message.

    Left alone are gathers by other gathers' results or under control dependencies, in loops and
    conditions, of indices that are no vector, and of rows that stay on the server.

    Args:
      config: the deployment; without parameter servers nothing is changed.
      ops: the ops of one part.
    """
    by_server: dict[tuple[str, Any], list[Any]] = {}
    for op in ops:
        if config.num_ps_tasks and _can_be_shared(config, op):
            by_server.setdefault((op.device, op.inputs[1].dtype), []).append(op)
    for (server, _), gathers in by_server.items():
        if apart := _apart(gathers):
            _share(apart, server, config.inputs_device())


def _can_be_shared(config: DeploymentConfig, op: Any) -> bool:
    """Whether an op gathers rows on a server, by indices of a worker and for one."""
    if op.type != "ResourceGather" or op.control_inputs or internals.in_old_control_flow(op):
        return False
    uses = [use.device for _, use in graph_walk.uses_of(op.outputs[0])]
    return (
        op.inputs[0].op.type == "VarHandleOp"
        and op.inputs[1].shape.rank == 1
        and is_remote(config, op.device)
        and not is_remote(config, op.inputs[1].op.device)
        and not any(is_remote(config, device) for device in uses)
    )


def _apart(gathers: Sequence[Any]) -> list[Any]:
    """Returns the gathers whose indices need no result of another one."""
    others = set(gathers)
    return [op for op in gathers if not graph_walk.ancestors([op.inputs[1].op]) & (others - {op})]


def _share(gathers: Sequence[Any], server: str, worker: str) -> None:
    uses = [list(graph_walk.uses_of(op.outputs[0])) for op in gathers]
    graph = tf.get_default_graph()
    with (
        tf.control_dependencies(None),
        tf.name_scope("shared_gathers"),
        graph.colocate_with(None, ignore_existing=True),
    ):
        for op, ids in zip(
            gathers, send_ids([op.inputs[1] for op in gathers], worker, server), strict=True
        ):
            internals.replace_input(op, 1, ids)
            keep_indices(op)
        for places in _by_kind(gathers):
            rows = send_rows([gathers[i].outputs[0] for i in places], server, worker)
            for i, received in zip(places, rows, strict=True):
                received.set_shape(gathers[i].outputs[0].shape)
                for index, op in uses[i]:
                    internals.replace_input(op, index, received)


def _by_kind(gathers: Sequence[Any]) -> list[list[int]]:
    """Returns the places of gathers of rows of one dtype and shape, for each of them."""
    kinds: dict[Any, list[int]] = {}
    for place, op in enumerate(gathers):
        rows = op.outputs[0]
        kinds.setdefault((rows.dtype, tuple(rows.shape.as_list()[1:])), []).append(place)
    return list(kinds.values())
