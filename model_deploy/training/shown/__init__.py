"""What a run displays: progress, `metrics.jsonl`, `training.png`, TensorBoard."""
