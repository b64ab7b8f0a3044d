"""Prints a manifest with which Kubernetes runs a whole cluster.

    python -m model_deploy.launch.kubernetes --image=IMAGE --workers=4 --num_ps=2 -- COMMAND ... \\
        | kubectl apply -f -

The manifest has a JobSet (https://jobset.sigs.k8s.io must be installed) whose pods run COMMAND,
each with its place in TF_CONFIG, under the names of a headless service; a volume claim for the
folder of runs; and a rule by which the pods talk to each other and nobody else to them.
--kind=TFJob has a job for Kubeflow's training operator in the place of the JobSet.

Nothing is asked of Kubernetes: the manifest is text.
"""

import sys
from collections.abc import Sequence

import yaml

from model_deploy.commands import parse_options
from model_deploy.launch.flags_of_place import asked_for
from model_deploy.launch.kubernetes.job_set import job_set
from model_deploy.launch.kubernetes.options import ManifestOptions
from model_deploy.launch.kubernetes.surroundings import network_policy, volume_claim
from model_deploy.launch.kubernetes.tf_job import tf_job


def main(arguments: Sequence[str]) -> int:
    """Prints the manifest; returns the exit status, 2 for a mistake in the command line."""
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    own, command = list(arguments[:end]), list(arguments[end + 1 :])
    try:
        options = parse_options(["kubernetes", *own], ManifestOptions, __doc__)
        if options is None:
            return 0
        _check(command)
        job = (job_set if options.kind == "JobSet" else tf_job)(options, command)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    documents = [*volume_claim(options), network_policy(options), job]
    text = yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=1000)
    print(text, end="")
    return 0


def _check(command: Sequence[str]) -> None:
    if not command:
        raise ValueError("a command must follow after --, got none")
    if names := asked_for(command):
        raise ValueError(
            "a command must find its place in TF_CONFIG, which all pods have, "
            f"got {names[0]} for the launcher"
        )


class _Dumper(yaml.SafeDumper):
    """As PyYAML's, without names for parts that come twice."""

    def ignore_aliases(self, data: object) -> bool:
        return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
