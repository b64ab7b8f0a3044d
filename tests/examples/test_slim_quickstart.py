"""Slim's quick start: where its parts are."""

import types

import tensorflow.compat.v1 as tf

from examples import slim_quickstart as script


def test_placement(tmp_path, monkeypatch):
    """Each clone takes a batch of its own from the one queue, which is on the CPU."""
    graphs = []
    result = types.SimpleNamespace(global_step=0, accuracy=0.0)
    monkeypatch.setattr(script.training, "evaluate", lambda *_: result)
    monkeypatch.setattr(
        script.slim.learning, "train", lambda *_, **__: graphs.append(tf.get_default_graph())
    )
    assert script.main(["quickstart", f"--train_dir={tmp_path}", "--num_clones=3"]) == 0
    (graph,) = graphs
    taken = [op for op in graph.get_operations() if op.type == "QueueDequeueV2"]
    assert [op.name.split("/")[0] for op in taken] == ["clone_0", "clone_1", "clone_2"]
    (queue,) = {op.inputs[0].op for op in taken}
    assert queue.device == "/device:CPU:0"
