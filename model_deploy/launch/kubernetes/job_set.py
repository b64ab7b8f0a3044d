"""The cluster as a JobSet: a job for each type of task, whose pods number themselves."""

import json
from collections.abc import Sequence
from typing import Any

from model_deploy.commands import NOT_SAVED
from model_deploy.launch.kubernetes.options import ManifestOptions
from model_deploy.launch.kubernetes.pods import EVALUATOR, pod_spec

# Exit statuses after which no restart helps: a mistake in the command line, steps not saved.
_HOPELESS = (2, NOT_SAVED)
_INDEX = "TASK_INDEX"


def job_set(options: ManifestOptions, command: Sequence[str]) -> dict[str, Any]:
    """A JobSet, `jobset.x-k8s.io/v1alpha2`, with the rules of restarts of a launch on one machine.

    With parameter servers, which keep the variables, a pod that fails is made again by its job,
    under its name and with its number.  Without them the whole set is made again.  No restart is
    made after exit status 2, a mistake in the command line, and 74, steps that could not be saved.
    When the chief, and the evaluator if there is one, have ended well the set has, too, and the
    parameter servers are ended.

    Args:
      options: the settings.
      command: the program and its arguments.
    """
    restarts_all = options.num_ps == 0
    awaited = [kind for kind in ("chief", EVALUATOR) if kind in options.tasks]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": options.metadata(options.name),
        "spec": {
            "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
            "successPolicy": {"operator": "All", "targetReplicatedJobs": awaited},
            "failurePolicy": {
                "maxRestarts": options.max_restarts if restarts_all else 0,
                "rules": [
                    {
                        "name": "hopeless",
                        "action": "FailJobSet",
                        "onJobFailureReasons": ["PodFailurePolicy"],
                    }
                ],
            },
            "replicatedJobs": [
                {"name": kind, "replicas": 1, "template": {"spec": _job(options, kind, command)}}
                for kind in options.tasks
            ],
        },
    }


def tf_config(options: ManifestOptions, kind: str) -> str:
    """`TF_CONFIG` of all tasks of a type, in which Kubernetes puts each one's index.

    The hosts are those of a JobSet: its name, the job's, the number of the job, that of the pod, in
    the JobSet's own service.
    """
    cluster = {
        each: [f"{options.name}-{each}-0-{i}.{options.name}:{options.port}" for i in range(count)]
        for each, count in options.tasks.items()
        if each != EVALUATOR
    }
    text = json.dumps({"cluster": cluster, "task": {"type": kind, "index": 0}})
    return text.replace('"index": 0', f'"index": $({_INDEX})')


def _job(options: ManifestOptions, kind: str, command: Sequence[str]) -> dict[str, Any]:
    """The `JobSpec` of a type of task."""
    restarts_all = options.num_ps == 0 and kind != EVALUATOR
    count = options.tasks[kind]
    index = {
        "fieldRef": {
            "fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"
        }
    }
    variables: list[dict[str, Any]] = [
        {"name": _INDEX, "valueFrom": index},
        {"name": "TF_CONFIG", "value": tf_config(options, kind)},
    ]
    hopeless = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [*_HOPELESS]}}
    # A pod that a drained or preempted machine takes along has not crashed.
    moved = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    return {
        "completionMode": "Indexed",
        "completions": count,
        "parallelism": count,
        "backoffLimit": 0 if restarts_all else options.max_restarts,
        "podFailurePolicy": {"rules": [hopeless] if restarts_all else [hopeless, moved]},
        "template": {
            "spec": {
                "restartPolicy": "Never",  # the job, or the set, makes the pod again
                **pod_spec(options, kind, command, variables),
            }
        },
    }
