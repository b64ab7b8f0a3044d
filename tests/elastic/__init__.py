"""Tests of model_deploy/elastic."""
