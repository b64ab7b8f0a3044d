"""Starts a whole cluster on this machine, on free ports of the loopback, or on several by ssh.

    python -m model_deploy.launch --num_workers 3 --num_ps 2 -- COMMAND ...

runs COMMAND once for each task, which finds its place in the cluster in `TF_CONFIG`.  Each
task's lines go to a log file of its own and, with the task's name, to the terminal.  When a
task fails, and no restart is left, all are ended and the exit status is that task's.  The workers
divide the GPUs of CUDA_VISIBLE_DEVICES, or else of the machine; parameter servers see none.  With
--divide_cores the workers of a machine divide its cores, too.

    python -m model_deploy.launch --num_workers 2 --num_ps 1 --evaluator -- COMMAND ...

also runs COMMAND as the evaluator, which follows the checkpoints of the run.  Its loss does not end
the run, and it ends soon after the workers.  And in the place of horovodrun

    python -m model_deploy.launch -np 4 COMMAND ...

runs COMMAND in 4 workers without parameter servers, each of which sees all GPUs; -H localhost:4 may
stand beside it.  On machines that ssh reaches, and that share a folder,

    python -m model_deploy.launch -H host1:2,host2:2 --num_ps 1 -- COMMAND ...

runs as many workers as there are slots.

A program that takes its place by flags gets it in the words of COMMAND,

    python -m model_deploy.launch --num_workers 2 --num_ps 1 -- python program.py
        --ps_hosts={ps_hosts} --worker_hosts={worker_hosts}
        --job_name={job_name} --task_index={task_index}

with the chief as worker 0.  A task finds in its environment TF_CONFIG, with the addresses of all
and its own type and index; CUDA_VISIBLE_DEVICES, where GPUs are divided or not to be seen;
PYTHONUNBUFFERED; and in an elastic run MODEL_DEPLOY_WORLD and MODEL_DEPLOY_WORKER.  On one
machine a worker's local rank is its number: 0 for the chief, 1 + index for another.
`cluster_from_tf_config(...).workers_here`, of model_deploy.cluster, has the workers of a machine in
the order of their local ranks.

    python -m model_deploy.launch --min_workers 2 --max_workers 8 -- COMMAND ...

runs COMMAND in 8 workers that train by `model_deploy.elastic`.  When one is lost the others go on,
at least 2; SIGUSR1 lets the launcher start one more in the place of a lost one.  With --num_ps

    python -m model_deploy.launch --num_ps 1 --num_workers 2 --max_workers 8 -- COMMAND ...

starts 2 workers of asynchronous parameter servers, to which SIGUSR1 adds up to 6 more.  And

    python -m model_deploy.launch --elastic --num_ps 1 --max_workers 8 -- COMMAND ...

is as without --num_ps, with the variables on parameter servers.
"""

import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from model_deploy.commands import make_folder, parse_options
from model_deploy.launch import flags_of_place, guard
from model_deploy.launch.arguments import split
from model_deploy.launch.connecting import connect
from model_deploy.launch.elastic import ElasticLauncher, check_log_dir
from model_deploy.launch.elastic_servers import ElasticServersLauncher
from model_deploy.launch.joining import JoiningLauncher
from model_deploy.launch.launcher import Launcher
from model_deploy.launch.options import LaunchOptions
from model_deploy.launch.ports import ReservedPorts
from model_deploy.launch.this_machine import ThisMachine
from model_deploy.processes import visible_gpus


def main(arguments: Sequence[str]) -> int:
    """Runs the command line; returns the exit status, 2 for a mistake in it."""
    with contextlib.ExitStack() as stack:
        try:
            own, command = split(arguments)
            options = parse_options(["launch", *own], LaunchOptions, __doc__)
            if options is None:
                return 0
            _check(command, options)
            log_dir = _log_dir(options)
            guard.adopt_orphans()
            with contextlib.ExitStack() as connected:
                machines, addresses = _machines(options, log_dir, connected)
                # Not before: the descendants of who only asked, and is refused, are its own affair.
                stack.callback(guard.kill_descendants)
                stack.push(connected.pop_all())
        except (ValueError, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:  # while hosts are waited for
            return 128 + signal.SIGINT
        print(f"launch| logs in {log_dir}", flush=True)
        try:
            launcher = _kind(options)(
                options, addresses, command, log_dir, sys.stdout.buffer, machines=machines
            )
            return launcher.run()
        except BrokenPipeError:
            # The reader of the lines is gone, as after `| head`. Python flushes stdout at its exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 128 + signal.SIGPIPE


def _log_dir(options: LaunchOptions) -> Path:
    log_dir = Path(options.log_dir or tempfile.mkdtemp(prefix="launch-"))
    make_folder("log_dir", log_dir)
    if options.is_elastic:
        check_log_dir(log_dir)
    return log_dir


def _machines(
    options: LaunchOptions, log_dir: Path, stack: contextlib.ExitStack
) -> tuple[ThisMachine, Sequence[str]]:
    """Where the tasks are, and the addresses of those that keep one for the whole launch."""
    if not options.is_remote:
        gpus = _visible(os.environ) if options.divide_gpus else None
        ports = stack.enter_context(ReservedPorts(options.num_addresses))
        return ThisMachine(gpus), ports.addresses
    machines = connect(options, log_dir)
    stack.callback(machines.close)
    num_ps = options.num_ps if options.num_addresses else 0
    return machines, machines.addresses(options.num_addresses - num_ps, num_ps)


def _kind(options: LaunchOptions) -> type[Launcher]:
    if options.is_elastic:
        return ElasticServersLauncher if options.num_ps else ElasticLauncher
    return Launcher if options.max_workers is None else JoiningLauncher


def _visible(environ: Mapping[str, str]) -> list[str] | None:
    """The GPUs that this process sees; None if they are not known."""
    named = visible_gpus.listed(environ)
    return visible_gpus.on_this_machine() if named is None else named


def _check(command: Sequence[str], options: LaunchOptions) -> None:
    if sys.platform != "linux":
        raise ValueError(f"the system must be Linux for a launch, got {sys.platform}")
    if not command:
        raise ValueError("a command must follow after --, got none")
    names = flags_of_place.asked_for(command)
    if names and not options.has_addresses:
        raise ValueError(
            f"a command with {names[0]} must be run by workers that have an address for the whole "
            "launch, got an elastic run"
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
