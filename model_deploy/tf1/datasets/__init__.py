"""`datasets` of TF-Slim: `from datasets import dataset_factory`."""
