"""`connect`: the machines of a launch, as its options name them."""

from pathlib import Path

from model_deploy.launch.following import FollowedMachines
from model_deploy.launch.machines import FarSettings, Machines
from model_deploy.launch.options import LaunchOptions


def connect(options: LaunchOptions, log_dir: Path) -> Machines:
    """Reaches all hosts of a launch.

    Args:
      options: the settings.
      log_dir: folder of the logs, which workers of an elastic run must see.

    Raises:
      ValueError: for fewer slots than workers, and as `Machines`.
      OSError: if the file of hosts cannot be read.
    """
    hosts = options.read_hosts()
    slots = sum(host.slots for host in hosts)
    if options.most_workers > slots and not (options.is_elastic and options.hosts_file):
        field = "num_workers" if options.max_workers is None else "max_workers"
        raise ValueError(
            f"{field} must be at most {slots}, the slots of the hosts, got {options.most_workers}"
        )
    settings = FarSettings(
        options.connection,
        options.network or "",
        options.port_range,
        divide_gpus=options.divide_gpus,
    )
    if not options.is_elastic:
        return Machines(hosts, settings)
    settings = settings._replace(shared=str(log_dir.absolute()))
    if options.hosts_file is None or options.num_ps:
        return Machines(hosts, settings)
    return FollowedMachines(hosts, settings, options.hosts_file)
