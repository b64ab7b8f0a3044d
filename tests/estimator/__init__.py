"""Tests of `model_deploy.estimator`."""
