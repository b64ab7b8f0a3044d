"""Manifests for Kubernetes are valid, and each pod finds its place in them."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import jsonschema
import pytest
import yaml

from model_deploy.cluster import cluster_from_tf_config
from model_deploy.launch.kubernetes.__main__ import main
from tests.processes.forking import ROOT

pytestmark = pytest.mark.one_mode

# Made by scripts/kubernetes_schemas.py of what JobSet, Kubeflow and Kubernetes publish.
DATA = json.loads((ROOT / "tests" / "data" / "kubernetes.json").read_text())
IMAGE = "--image=registry.example.com:5000/me/model_deploy:0.3"
COMMAND = ["train_image_classifier", "--train_dir=/runs/digits", "$(HOME) it's"]


def _manifest(capsys, *flags):
    """The documents of a manifest by their kinds."""
    assert main([IMAGE, *flags, "--", *COMMAND]) == 0
    return {each["kind"]: each for each in yaml.safe_load_all(capsys.readouterr().out)}


def _validate(kind, document):
    schema = {**DATA["schemas"][kind], "$defs": DATA["$defs"]}
    jsonschema.Draft202012Validator(schema).validate(document)


def _pods(job_set):
    """Each pod's name, its environment as Kubernetes makes it, and its `PodSpec`."""
    set_name = job_set["metadata"]["name"]
    for job in job_set["spec"]["replicatedJobs"]:
        spec = job["template"]["spec"]
        assert spec["completions"] == spec["parallelism"]
        for index in range(spec["completions"]):
            pod = spec["template"]["spec"]
            environ = {}
            for each in pod["containers"][0]["env"]:
                value = each["value"] if "value" in each else str(index)
                for name, known in environ.items():
                    value = value.replace(f"$({name})", known)
                environ[each["name"]] = value
            yield f"{set_name}-{job['name']}-0-{index}.{set_name}", environ, pod


@pytest.mark.parametrize("kind", ["JobSet", "TFJob"])
@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--workers=4", "--num_ps=2", "--evaluator"],
        ["--workers=2", "--gpus=1", "--volume=mine", "--namespace=ml", "--storage_class=nfs"],
    ],
)
def test_manifest_is_valid(kind, flags, capsys):
    """Each document is what the schema of its kind allows, which no other field is."""
    documents = _manifest(capsys, f"--kind={kind}", *flags)
    claims = [] if "--volume=mine" in flags else ["PersistentVolumeClaim"]
    assert [*documents] == [*claims, "NetworkPolicy", kind]
    for each, document in documents.items():
        _validate(each, document)
        assert document["metadata"].get("namespace") == ("ml" if "--gpus=1" in flags else None)


def test_schemas_find_mistakes(capsys):
    """A field of another name is not allowed by them."""
    job = _manifest(capsys)["JobSet"]
    [*_, (_, _, pod)] = _pods(job)
    pod["containers"][0]["volumeMount"] = pod["containers"][0].pop("volumeMounts")
    with pytest.raises(jsonschema.ValidationError, match="volumeMount"):
        _validate("JobSet", job)


@pytest.mark.parametrize(("workers", "num_ps"), [(1, 0), (3, 0), (4, 2)])
def test_each_pod_has_its_place(workers, num_ps, capsys):
    """The TF_CONFIG of a pod has the names of all pods, and this one's own."""
    flags = [f"--workers={workers}", f"--num_ps={num_ps}", "--evaluator", "--name=digits"]
    found = {}
    for host, environ, _ in _pods(_manifest(capsys, *flags)["JobSet"]):
        cluster = cluster_from_tf_config(environ["TF_CONFIG"])
        if not cluster.is_evaluator:
            assert cluster.own.address == f"{host}:2222"
        found[str(cluster.own)] = host
    expected = ["worker 0 (chief)", *(f"worker {i}" for i in range(1, workers))]
    expected += [*(f"ps {i}" for i in range(num_ps)), "evaluator 0"]
    assert [*found] == expected
    assert len(set(found.values())) == len(found)


def test_the_command_of_the_page(capsys):
    """The command in docs/kubernetes.md prints a manifest."""
    page = (ROOT / "docs" / "kubernetes.md").read_text()
    [line] = re.findall(r"^python -m model_deploy.launch.kubernetes (.*)$", page, re.MULTILINE)
    assert main(shlex.split(line)) == 0
    [*_, job] = yaml.safe_load_all(capsys.readouterr().out)
    assert [each["name"] for each in job["spec"]["replicatedJobs"]] == ["chief", "worker", "ps"]


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare"), reason="own names of hosts need root"
)
def test_the_cluster_command_accepts_each_pod(capsys, tmp_path):
    """`python -m model_deploy.cluster` finds nothing wrong where the names lead to the pods."""
    pods = list(_pods(_manifest(capsys, "--workers=2", "--num_ps=1")["JobSet"]))
    names = tmp_path / "hosts"
    names.write_text("".join(f"127.0.0.{i + 2} {pod[0]}\n" for i, pod in enumerate(pods)))
    script = f'mount --bind {names} /etc/hosts && exec "$@"'
    command = ["unshare", "-m", "sh", "-ec", script, "sh", sys.executable, "-m"]
    for host, environ, _ in pods:
        done = subprocess.run(
            [*command, "model_deploy.cluster"],
            env={**os.environ, **environ},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert re.search(rf"^.* {host}:2222 +this process, port free$", done.stdout, re.MULTILINE)
        assert done.stdout.endswith("nothing is wrong\n")


def test_rules_of_restarts(capsys):
    """Beside parameter servers a pod is made again, without them all are; as a launch does."""
    for num_ps, of_set, of_job in ((0, 5, 0), (1, 0, 5)):
        flags = ["--workers=2", f"--num_ps={num_ps}", "--max_restarts=5"]
        spec = _manifest(capsys, *flags)["JobSet"]["spec"]
        assert spec["failurePolicy"]["maxRestarts"] == of_set
        for job in spec["replicatedJobs"]:
            inner = job["template"]["spec"]
            assert inner["backoffLimit"] == of_job
            assert inner["podFailurePolicy"]["rules"][0]["onExitCodes"]["values"] == [2, 74]
            assert inner["template"]["spec"]["restartPolicy"] == "Never"  # as that policy asks for


def test_what_a_pod_may_use(capsys):
    """Limits, the folder of runs, and the command with its words as they are."""
    flags = ["--workers=2", "--num_ps=1", "--gpus=4", "--memory=64Gi", "--ps_memory=8Gi"]
    for host, environ, pod in _pods(_manifest(capsys, *flags, "--evaluator")["JobSet"]):
        [container] = pod["containers"]
        limits = container["resources"]["limits"]
        trains = "chief" in host or "worker" in host
        assert limits["memory"] == ("8Gi" if "-ps-" in host else "64Gi")
        assert limits.get("nvidia.com/gpu") == (4 if trains else None)
        assert (environ.get("NVIDIA_VISIBLE_DEVICES") is None) == trains
        assert [word.replace("$$(", "$(") for word in container["command"]] == COMMAND
        assert ("readinessProbe" in container) == ("evaluator" not in host)
        assert container["volumeMounts"] == [{"name": "runs", "mountPath": "/runs"}]
        assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == "model-deploy-runs"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--image=my image"], "image must be a name such as .*, got 'my image'"),
        (["--image=Registry/Name"], "image must be .*, got 'Registry/Name'"),
        ([], "image must be .*, got ''"),
        ([IMAGE, "--name=My_job"], "name must be of a-z, .* got 'My_job'"),
        ([IMAGE, f"--name={'a' * 41}"], "name must be .* at most 40 long, got 'aaa"),
        ([IMAGE, "--workers=0"], "workers must be at least 1, got 0"),
        ([IMAGE, "--memory=4 GB"], "memory must be a quantity such as .* got '4 GB'"),
        ([IMAGE, "--cpu=0"], "cpu must be a quantity such as .* got '0'"),
        ([IMAGE, "--mount_path=runs"], "mount_path must be a path from / on, got 'runs'"),
        ([IMAGE, "--kind=Job"], "kind must be one of JobSet, TFJob, got 'Job'"),
        ([IMAGE, "--"], "a command must follow after --, got none"),
        (
            [IMAGE, "--", "run", "--job={job_name}"],
            "a command must find .* TF_CONFIG, .* {job_name}",
        ),
    ],
)
def test_rejects(flags, message, capsys):
    """What makes no manifest is one line and status 2, and nothing is printed to be applied."""
    assert main(flags if "--" in flags else [*flags, "--", "x"]) == 2
    printed = capsys.readouterr()
    assert re.fullmatch(f"error: .*{message}.*\n", printed.err)
    assert printed.out == ""


def test_help_needs_no_tensorflow():
    """The command starts without TensorFlow, which takes seconds to import."""
    code = (
        "import sys; from model_deploy.launch.kubernetes.__main__ import main;"
        "main(['--help']); sys.exit('tensorflow' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
