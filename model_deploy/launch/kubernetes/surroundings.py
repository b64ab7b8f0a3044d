"""What stands around the job: the volume claim of its runs, and who may talk to its pods."""

from typing import Any

from model_deploy.launch.kubernetes.options import ManifestOptions

# The label by which the pods of a job are known, by kind.
_POD_LABELS = {
    "JobSet": "jobset.sigs.k8s.io/jobset-name",
    "TFJob": "training.kubeflow.org/job-name",
}


def volume_claim(options: ManifestOptions) -> list[dict[str, Any]]:
    """A `PersistentVolumeClaim` that many pods write; none where one is there already."""
    if options.volume is not None:
        return []
    storage = {} if options.storage_class is None else {"storageClassName": options.storage_class}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": options.metadata(options.claim),
            "spec": {
                "accessModes": ["ReadWriteMany"],
                **storage,
                "resources": {"requests": {"storage": options.volume_size}},
            },
        }
    ]


def network_policy(options: ManifestOptions) -> dict[str, Any]:
    """A `NetworkPolicy`: TensorFlow's servers let everybody in who can connect."""
    pods = {"matchLabels": {_POD_LABELS[options.kind]: options.name}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": options.metadata(options.name),
        "spec": {
            "podSelector": pods,
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [{"podSelector": pods}]}],
        },
    }
