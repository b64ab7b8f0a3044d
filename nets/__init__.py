"""The networks of TF-Slim, checkpoint-compatible: `from nets import nets_factory`."""
