"""Tests of `model_deploy.cluster`."""
