"""Small programs to launch; isolated, so that they start in milliseconds."""

import io
import sys

from model_deploy.launch import LaunchOptions, ReservedPorts

_PRELUDE = """
import json, os, signal, subprocess, sys, time
task = json.loads(os.environ.get("TF_CONFIG", '{"task": {}}'))["task"]
def first_time(name):
    try:
        open(name, "x").close()
    except FileExistsError:
        return False
    return True
def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.01)
def note_pid(name):
    with open(f"{name}.new", "w") as file:
        file.write(str(os.getpid()))
    os.rename(f"{name}.new", name)
def wait_for_end_of(name):
    wait_for(name)
    pid = open(name).read()
    while os.path.exists(f"/proc/{pid}"):
        time.sleep(0.001)
"""
# What a worker of an elastic run does, without the training: it looks at the worlds.
WORKER = """
number = os.environ.get("MODEL_DEPLOY_WORKER")
def world():
    try:
        with open(os.environ["MODEL_DEPLOY_WORLD"]) as file:
            return json.load(file)
    except OSError:
        return {"workers": {}}
def wait_for_world(*numbers):
    while sorted(world()["workers"]) != sorted(numbers):
        time.sleep(0.01)
def ready(after=""):
    with open(os.environ["MODEL_DEPLOY_WORLD"] + ".ready-" + number, "w") as file:
        file.write(after)
"""


def program(source):
    """The command of a program that knows its `task` and what it did before, `first_time`."""
    return [sys.executable, "-I", "-S", "-u", "-c", _PRELUDE + source]


def launch(kind, folder, source, **options):
    """Runs a launcher in this process; its exit status, and its own lines.

    Args:
      kind: class of the launcher.
      folder: of logs, and the current one of the programs.
      source: of the program.
      **options: those of the launcher.
    """
    given, terminal = LaunchOptions(**options), io.BytesIO()
    command = program(f"os.chdir({str(folder)!r})\n{source}")
    with ReservedPorts(given.num_addresses) as ports:
        status = kind(given, ports.addresses, command, folder, terminal).run()
    lines = terminal.getvalue().decode().splitlines()
    return status, [line.removeprefix("launch| ") for line in lines if line.startswith("launch|")]
