"""`python -m model_deploy.cluster`: prints the cluster as understood, and what is wrong.

It takes the flags and the environment that the training command gets, so run it in the
place of that command.  Exit status 1 says that something is wrong.
"""

import dataclasses
import os
import sys
from collections.abc import Mapping, Sequence

from model_deploy.cluster import listening
from model_deploy.cluster.checks import check_tasks
from model_deploy.cluster.options import ClusterOptions
from model_deploy.cluster.sources import resolve
from model_deploy.commands import option, parse_options
from model_deploy.processes import Cluster


@dataclasses.dataclass(frozen=True)
class CommandOptions(ClusterOptions):
    """The settings of a cluster, and further settings of this command."""

    task: int = option(0, "another name for --task_id", minimum=0, topic="cluster")
    master: str = option(
        "", "address of a TensorFlow server that was started elsewhere", topic="cluster"
    )
    num_ps_tasks: int = option(
        0, "how many of SLURM's tasks are parameter servers", minimum=0, topic="cluster"
    )
    timeout: float = option(
        5.0, "seconds to wait for an answer of another machine", above=0, topic="cluster"
    )


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Prints the cluster and its problems; returns the exit status, 0 without a problem."""
    try:
        options = parse_options(["cluster", *arguments], CommandOptions, __doc__)
        if options is None:
            return 0
        resolved = resolve(
            options,
            environ,
            task=options.task,
            master=options.master,
            num_ps_tasks=options.num_ps_tasks,
        )
    except (ValueError, OSError) as error:
        print(f"wrong: {error}")
        return 1
    print(resolved.note)
    return 0 if resolved.cluster is None else _check(resolved.cluster, options.timeout)


def _check(cluster: Cluster, timeout: float) -> int:
    where = "outside of the cluster" if cluster.is_evaluator else f"at {cluster.own.address}"
    print(f"this process is {cluster.own} {where}")
    findings = check_tasks(cluster, timeout)
    width = max(len(finding.task.address) for finding in findings)
    for finding in findings:
        print(f"  {finding.task!s:17} {finding.task.address:{width}}  {finding.state}")
    problems = [finding.problem for finding in findings if finding.problem]
    if not cluster.is_evaluator and listening.allows_public(cluster):
        if warning := listening.warning_of(cluster.own):
            print(f"warning: {warning}")
    elif not cluster.is_evaluator and (refusal := listening.refusal_of(cluster.own)):
        problems.append(refusal)
    for problem in problems:
        print(f"wrong: {problem}")
    if not problems:
        print("nothing is wrong")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
