"""`tf.contrib.legacy_seq2seq`: sequences as lists of steps, made of `tf.nn.static_rnn`."""

from model_deploy.tf1.contrib.written.legacy_seq2seq.attention import (
    attention_decoder,
    embedding_attention_decoder,
    embedding_attention_seq2seq,
)
from model_deploy.tf1.contrib.written.legacy_seq2seq.decoders import (
    basic_rnn_seq2seq,
    embedding_rnn_decoder,
    embedding_rnn_seq2seq,
    rnn_decoder,
    tied_rnn_seq2seq,
)
from model_deploy.tf1.contrib.written.legacy_seq2seq.losses import (
    model_with_buckets,
    sequence_loss,
    sequence_loss_by_example,
)

__all__ = [
    "attention_decoder",
    "basic_rnn_seq2seq",
    "embedding_attention_decoder",
    "embedding_attention_seq2seq",
    "embedding_rnn_decoder",
    "embedding_rnn_seq2seq",
    "model_with_buckets",
    "rnn_decoder",
    "sequence_loss",
    "sequence_loss_by_example",
    "tied_rnn_seq2seq",
]
