"""Tests of `model_deploy.rewrites.layouts`."""
