"""Datasets by name, and their conversion to TFRecords."""
