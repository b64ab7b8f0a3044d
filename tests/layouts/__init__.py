"""Tests of `model_deploy.layouts`."""
