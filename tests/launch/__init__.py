"""Tests of `model_deploy.launch`."""
