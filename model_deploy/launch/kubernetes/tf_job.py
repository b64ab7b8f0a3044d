"""The cluster as a TFJob of Kubeflow's training operator, which sets `TF_CONFIG` by itself."""

from collections.abc import Sequence
from typing import Any

from model_deploy.launch.kubernetes.options import ManifestOptions
from model_deploy.launch.kubernetes.pods import pod_spec

_TYPES = {"chief": "Chief", "worker": "Worker", "ps": "PS", "evaluator": "Evaluator"}


def tf_job(options: ManifestOptions, command: Sequence[str]) -> dict[str, Any]:
    """A TFJob, `kubeflow.org/v1`; a pod that fails is started again, on its machine.

    Without parameter servers the other workers fail for want of it, and start again as well.

    Args:
      options: the settings.
      command: the program and its arguments.
    """
    replicas = {
        _TYPES[kind]: {
            "replicas": count,
            "restartPolicy": "OnFailure",
            "template": {"spec": pod_spec(options, kind, command, [])},
        }
        for kind, count in options.tasks.items()
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": options.metadata(options.name),
        "spec": {
            "runPolicy": {"backoffLimit": options.max_restarts, "cleanPodPolicy": "Running"},
            "tfReplicaSpecs": replicas,
        },
    }
