"""The pod of a task: its container, what it may use, its volume, its probes."""

from collections.abc import Sequence
from typing import Any

from model_deploy.launch.kubernetes.options import ManifestOptions

EVALUATOR = "evaluator"
_PROBE_SECS = 10


def pod_spec(
    options: ManifestOptions, kind: str, command: Sequence[str], variables: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """The `PodSpec` of all tasks of a type, without a restart policy.

    Args:
      options: the settings.
      kind: type of the task in `TF_CONFIG`.
      command: the program and its arguments.
      variables: further environment variables, as `EnvVar`s.
    """
    container = {
        "name": "tensorflow",  # Kubeflow's operator looks for it
        "image": options.image,
        "command": [escaped(word) for word in command],
        "env": [
            {"name": "PYTHONUNBUFFERED", "value": "1"},
            *_without_gpus(options, kind),
            *variables,
        ],
        "resources": _resources(options, kind),
        "volumeMounts": [{"name": "runs", "mountPath": options.mount_path}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    if kind == "ps":
        # All pods are told to end at once, and a chief then saves what the parameter servers keep.
        container["lifecycle"] = {"preStop": {"sleep": {"seconds": -(-options.grace_secs // 2)}}}
    if kind != EVALUATOR:  # it has no server
        container |= _ports(options)
    return {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": options.grace_secs,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [{"name": "runs", "persistentVolumeClaim": {"claimName": options.claim}}],
    }


def escaped(word: str) -> str:
    """A word as Kubernetes takes it, which puts a variable's value in the place of `$(NAME)`.

    >>> escaped("--train_dir=$(pwd)/$HOME")
    '--train_dir=$$(pwd)/$HOME'
    """
    return word.replace("$(", "$$(")


def _without_gpus(options: ManifestOptions, kind: str) -> list[dict[str, Any]]:
    """A pod that asks for no GPU may see all of its machine, if its image says so."""
    has_gpus = options.gpus and kind in ("chief", "worker")
    return [] if has_gpus else [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]


def _resources(options: ManifestOptions, kind: str) -> dict[str, Any]:
    is_ps = kind == "ps"
    amounts: dict[str, Any] = {
        "cpu": options.ps_cpu if is_ps else options.cpu,
        "memory": options.ps_memory if is_ps else options.memory,
    }
    if options.gpus and kind in ("chief", "worker"):
        amounts["nvidia.com/gpu"] = options.gpus
    return {"requests": amounts, "limits": amounts}


def _ports(options: ManifestOptions) -> dict[str, Any]:
    """The port, and probes that connect to it.

    There is no probe of liveness: the kernel accepts connections for a task that is stuck, too. One
    that makes no step ends by itself (`--stall_timeout`).
    """
    connects = {"tcpSocket": {"port": options.port}, "periodSeconds": _PROBE_SECS}
    failures = -(-options.start_timeout // _PROBE_SECS)
    return {
        "ports": [{"name": "tfjob-port", "containerPort": options.port}],
        "startupProbe": {**connects, "failureThreshold": failures},
        "readinessProbe": {**connects},
    }
