"""Manifests of Kubernetes for a cluster: `python -m model_deploy.launch.kubernetes -- COMMAND`."""

from model_deploy.launch.kubernetes.job_set import job_set
from model_deploy.launch.kubernetes.options import ManifestOptions
from model_deploy.launch.kubernetes.tf_job import tf_job

__all__ = ["ManifestOptions", "job_set", "tf_job"]
