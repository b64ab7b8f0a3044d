"""What people see of a run: progress, `metrics.jsonl`, `training.png`, TensorBoard."""
