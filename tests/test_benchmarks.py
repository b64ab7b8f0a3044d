"""The frame of the benchmarks: arithmetic, tables, goals, processes. Nothing about speed."""

import contextlib
import importlib
import importlib.util
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as all_benchmarks
from benchmarks import child as child_lib
from benchmarks import frame, machine, picture, traffic

pytestmark = pytest.mark.one_mode

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    """The machine is not idle while other tests run."""
    monkeypatch.setattr(frame, "wait_until_idle", lambda: None)


def _benchmark(start, goals=(), quantities=("steps/s",)):
    return frame.Benchmark("Title", "What it does.", quantities, "ours", lambda _: start, goals)


def _result(goals=(), absent=None, **rates):
    values = {name: {"steps/s": each} for name, each in rates.items()}
    return frame.Result(_benchmark({}, goals), values, absent or {})


def test_contenders_take_turns():
    """In each round every contender is measured once, in the same order; what was started is ended
    after the last.
    """
    measured = []

    def contender(name):
        def measure():
            measured.append(name)
            return {"steps/s": len(measured)}

        return measure

    def start(stack):
        stack.callback(measured.append, "end")
        return {name: contender(name) for name in ("ours", "its")}

    result = frame.run(frame.Benchmark("Title", "", ("steps/s",), "ours", start), 3)
    assert measured == [*["ours", "its"] * 3, "end"]
    assert result.values == {"ours": {"steps/s": [1, 3, 5]}, "its": {"steps/s": [2, 4, 6]}}


def test_ratios():
    """They are medians of those within rounds: a machine that is ten times slower in one round does
    not change them. There is none to a contender that is absent or whose value is 0.
    """
    result = _result(ours=[30.0, 3.0, 36.0], its=[10.0, 1.0, 12.0])
    assert result.ratio("steps/s", "ours", "its") == 3.0
    assert result.ratio("steps/s", "its", "ours") == pytest.approx(1 / 3)
    result = _result(ours=[2.0, 5.0, 3.0], its=[1.0, 1.0, 1.0], zero=[0.0, 0.0, 0.0])
    assert result.ratio("steps/s", "ours", "its") == 3.0
    for other in ("absent", "zero"):
        assert result.ratio("steps/s", "ours", other) is None


@pytest.mark.parametrize(
    ("bound", "at_most", "ratio", "ends"),
    [
        (3, False, 3.0, "at least 3 times its; it is 3.00 times: reached"),
        (3, False, 2.99, "at least 3 times its; it is 2.99 times: short"),
        (1.2, True, 1.2, "at most 1.2 times its; it is 1.20 times: reached"),
        (1.2, True, 1.3, "at most 1.2 times its; it is 1.30 times: short"),
        (3, False, None, "at least 3 times its: not measured"),
    ],
)
def test_verdict(bound, at_most, ratio, ends):
    """A goal says what is to be, what is, and whether that is enough."""
    goal = frame.Goal("steps/s", "ours", "its", bound, at_most)
    assert goal.verdict(ratio) == f"steps/s: ours is to be {ends}"


def test_first_is_a_goal_for_each_peer():
    """To be first is to be at least as fast as each of the others."""
    goals = frame.first("steps/s", "ours", ["slow", "fast"])
    result = _result(goals, ours=[2.0], slow=[1.0], fast=[4.0])
    assert [verdict.rpartition(" ")[2] for verdict in result.verdicts()] == ["reached", "short"]


def test_text():
    """The table has medians, the lowest, the highest and ratios; then absences and goals."""
    goals = (frame.Goal("steps/s", "ours", "torch", 8),)
    text = _result(
        goals, {"torch": "PyTorch is not installed"}, ours=[1.0, 4.0, 2.0], its=[2000.0] * 3
    ).text()
    assert text == (
        "## Title\n"
        "\n"
        "What it does.\n"
        "\n"
        "| contender | steps/s | lowest | highest | times ours |\n"
        "| --------- | ------: | -----: | ------: | ---------: |\n"
        "| ours      |       2 |      1 |       4 |       1.00 |\n"
        "| its       |   2,000 |  2,000 |   2,000 |    1000.00 |\n"
        "| torch     |       - |      - |       - |          - |\n"
        "\n"
        "- torch was not measured: PyTorch is not installed\n"
        "- steps/s: ours is to be at least 8 times torch: not measured\n"
    )


def test_absent_contender():
    """A contender that cannot be measured does not stop the others; a measurement without a
    quantity of its benchmark is an error that names both.
    """
    start = {"ours": lambda: {"steps/s": 1.0}, "torch": frame.Absent("it is not installed")}
    result = frame.run(_benchmark(start), 2)
    assert result.values == {"ours": {"steps/s": [1.0, 1.0]}}
    assert result.absent == {"torch": "it is not installed"}
    start = {"ours": lambda: {"images/s": 1.0}}
    with pytest.raises(ValueError, match=r"of ours must have steps/s, got \['images/s'\]"):
        frame.run(_benchmark(start), 1)


def test_command(capsys):
    """The command of a file prints the tables of its benchmarks, with the rounds asked for; a quick
    run makes one round of the smaller amount; rounds must be positive.
    """
    given = []

    def describe(settings):
        given.append(settings)
        yield _benchmark({"ours": lambda: {"steps/s": 1.0}})

    frame.run_command(describe, "Help.", ["--rounds=2", "--data_dir=photos"])
    frame.run_command(describe, "Help.", ["--quick"])
    long, quick = frame.Settings(rounds=2, data_dir="photos"), frame.Settings(rounds=1, quick=True)
    assert given == [long, quick]
    assert capsys.readouterr().out.count("## Title") == 2
    assert [each.amount(2000, quick=40) for each in given] == [2000, 40]
    with pytest.raises(ValueError, match="rounds must be at least 1, got 0"):
        frame.Settings(rounds=0)


def test_turns_wait_for_an_idle_machine(monkeypatch):
    """Each turn of a run waits before it, those of a quick run do not."""
    done = []
    monkeypatch.setattr(frame, "wait_until_idle", lambda: done.append("idle"))

    def measure(name):
        return lambda: done.append(name) or {"steps/s": 1.0}

    def describe(settings):
        del settings
        yield _benchmark({name: measure(name) for name in ("ours", "its")})

    frame.run_command(describe, "Help.", ["--rounds=2"])
    assert done == ["idle", "ours", "idle", "its"] * 2
    frame.run_command(describe, "Help.", ["--quick"])
    assert done[8:] == ["ours", "its"]


def test_a_machine_that_stays_busy(monkeypatch, capsys):
    """When the patience is over a line says so; an idle machine is waited for in silence."""
    busy = itertools.count()
    monkeypatch.setattr(machine, "busy_secs", lambda: next(busy))
    machine.wait_until_idle(patience_secs=0.5)
    assert capsys.readouterr().err == "this machine was busy for 0.5 s: measuring anyway\n"
    monkeypatch.setattr(machine, "busy_secs", lambda: 7.0)
    machine.wait_until_idle(patience_secs=0.5)
    assert capsys.readouterr().err == ""


def serve_counts(requests, start):
    """A child that counts its measurements from `start`, and prints what nobody asked for."""
    counts = iter(range(start, start + 100))
    print("a library's notice")
    requests.serve(lambda: {"count": next(counts)})


def serve_failure(requests):
    """A child that fails before it is ready."""
    raise ValueError("rank must be at least 0, got -1")


def test_children_take_turns():
    """Children answer when they are asked, keep their state, and may print; start-up is measured
    from outside, peak memory from inside. One that ends before its answer is an error with its last
    words.
    """
    with contextlib.ExitStack() as stack:
        low, high = (
            child_lib.start_child(stack, "tests.test_benchmarks", "serve_counts", start=start)
            for start in (0, 50)
        )
        asked = [low(), high(), low(), high()]
    assert [each["count"] for each in asked] == [0, 50, 1, 51]
    with child_lib.Child("tests.test_benchmarks", "serve_counts", start=0) as child:
        ready = child.wait_until_ready()
    assert ready["seconds"] > 0
    assert ready["peak MB"] > 5
    with (
        child_lib.Child("tests.test_benchmarks", "serve_failure") as child,
        pytest.raises(RuntimeError, match=r"serve_failure(.|\n)*rank must be at least 0, got -1"),
    ):
        child.wait_until_ready()


def test_requests_end_with_the_parent():
    """A child whose parent is gone is asked for nothing more."""
    program = (
        "from benchmarks.child import Requests\n"
        "requests = Requests()\n"
        "requests.serve(lambda: {'count': 1})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input="\n\n",
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    ready, *answers = map(json.loads, done.stdout.splitlines())
    assert list(ready) == ["peak MB"]
    assert [each["count"] for each in answers] == [1, 1]


def test_received_bytes():
    """The counter is the first number of the interface's line."""
    counters = "Inter-|   Receive\n face |bytes packets\n  eth0:  1 2 3\n    lo: 123456 78 0\n"
    assert traffic.parse_received_bytes(counters, "lo") == 123456
    assert traffic.parse_received_bytes(counters, "eth0") == 1
    with pytest.raises(ValueError, match="must have a line for lo, got '  eth0: 1'"):
        traffic.parse_received_bytes("  eth0: 1", "lo")


def test_bytes_of_a_step():
    """784 x 500 + 500 + 500 x 10 + 10 floats are read, and as many gradients sent."""
    ps_network = importlib.import_module("benchmarks.ps_network")
    assert ps_network.BYTES_PER_STEP == 2 * 4 * 397_510
    assert ps_network.TOUCHED_BYTES_PER_STEP == 2 * 1280 * (64 * 4 + 8)


def test_pytorch_is_optional(monkeypatch):
    """Without PyTorch its contender says so."""
    torch_peer = importlib.import_module("benchmarks.torch_peer")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with contextlib.ExitStack() as stack:
        absent = torch_peer.start(stack, 2, network="tiny", steps=1)
    assert absent == frame.Absent("PyTorch is not installed")


def test_every_benchmark_is_in_the_command_and_the_document():
    """What has a command of its own runs with all others, and is documented."""
    files = (ROOT / "benchmarks").glob("*.py")
    with_command = {each.stem for each in files if "run_command(benchmarks," in each.read_text()}
    assert with_command == set(all_benchmarks.MODULES)
    document = all_benchmarks.DOCUMENT.read_text()
    for name in all_benchmarks.MODULES:
        assert f"`python -m benchmarks.{name}`" in document
    assert document.count(all_benchmarks.MARK) == 1


@pytest.mark.parametrize("name", all_benchmarks.MODULES)
def test_benchmarks_describe_themselves(name):
    """Each says what it does; its goals are about its quantities."""
    described = list(importlib.import_module(f"benchmarks.{name}").benchmarks(frame.Settings()))
    assert described
    for benchmark in described:
        assert benchmark.does.endswith(".")
        assert {goal.quantity for goal in benchmark.goals} <= set(benchmark.quantities)


def test_results_replace_older_ones():
    """A table takes the place of that with its title, or comes last; all else stays as it is, or
    goes where all was measured. What was written by hand stays; a document that has no place for
    results is not written.
    """
    document = f"# By hand\n\n{all_benchmarks.MARK}\n"
    for section in ("## A\n\nold\n", "## B\n\nold", "## A\n\nnew\n"):
        document = all_benchmarks.with_sections(document, [section])
    sections = ["# By hand", all_benchmarks.MARK, "## A", "new", "## B", "old"]
    assert document == "\n\n".join(sections) + "\n"
    text = _result(ours=[1.0]).text()
    written = all_benchmarks.with_sections(
        document, ["## Results\n\n- cores: 2", text], others=False
    )
    assert written.startswith(f"# By hand\n\n{all_benchmarks.MARK}\n\n## Results\n\n- cores: 2\n")
    assert "old" not in written
    assert written.endswith("1.00 |\n")
    assert all_benchmarks.with_sections(written, [text]) == written
    with pytest.raises(ValueError, match=r"must have the line .* once, got 0"):
        all_benchmarks.with_sections("# By hand\n", [])


def test_tables_are_written_when_they_are_complete(monkeypatch, tmp_path):
    """A table stays when a later benchmark fails; it says when it was measured, and how often."""
    document = tmp_path / "page.md"
    document.write_text(f"{all_benchmarks.MARK}\n")
    monkeypatch.setattr(all_benchmarks, "DOCUMENT", document)
    failing = frame.Benchmark("Failing", "It.", (), "ours", lambda _: 1 / 0)
    described = [_benchmark({"ours": lambda: {"steps/s": 1.0}}), failing]
    loop = importlib.import_module("benchmarks.loop")
    monkeypatch.setattr(loop, "benchmarks", lambda _: described)
    with pytest.raises(ZeroDivisionError):
        all_benchmarks.main(["--only=loop"])
    assert "Title" not in document.read_text()
    with pytest.raises(ZeroDivisionError):
        all_benchmarks.main(["--only=loop", "--write", "--rounds=2"])
    assert "## Title\n" in document.read_text()
    assert re.search(r"\nMeasured on \d{4}-\d\d-\d\d: .+; rounds: 2\.\n$", document.read_text())


def test_ratios_of_a_page():
    """The picture has the ratios of goals, or else of tables; twice the time is 1 / 2."""
    goals = (
        frame.Goal("steps/s", "ours", "Keras fit", 8),
        frame.Goal("seconds", "ours", "PyTorch", 1, at_most=True),
    )
    values = {"steps/s": [2.0], "seconds": [2.0]}
    others = {"steps/s": [1.0], "seconds": [1.0]}
    contenders = {"ours": values, "Keras fit": others, "PyTorch": others}
    started = _benchmark({}, goals, ("steps/s", "seconds"))
    free = frame.Benchmark("Free", "It.", ("images/s", "seconds"), "TF-Slim", lambda _: {})
    rows = {
        name: {"images/s": [rate], "seconds": [1 / rate]}
        for name, rate in {"TF-Slim": 1.0, "Keras fit": 2.0, "ours": 4.0}.items()
    }
    text = frame.Result(started, contenders).text() + "\n" + frame.Result(free, rows).text()
    assert picture.read_ratios(text) == {
        "Title": [picture.Ratio(2.0, "Keras", False), picture.Ratio(0.5, "PyTorch", False)],
        "Free": [picture.Ratio(4.0, "TF-Slim", True)] * 2,
    }


def test_picture_is_that_of_the_page():
    """Whoever writes new tables draws the picture anew: python -m benchmarks.picture."""
    image = pytest.importorskip("PIL.Image")
    document = picture.DOCUMENT.read_text()
    ratios = picture.read_ratios(document)
    verdicts = document.count(": reached\n") + document.count(": short\n")
    assert sum(map(len, ratios.values())) >= verdicts > 0
    with image.open(picture.PICTURE) as drawn:
        assert drawn.text["Description"] == picture.fingerprint(ratios)
    assert f"](images/{picture.PICTURE.name})" in document


def test_unknown_benchmark(capsys):
    """A name that is none stops at the command line."""
    with pytest.raises(SystemExit):
        all_benchmarks.main(["--only=loop,speed"])
    assert "--only must name some of loop," in capsys.readouterr().err
    with pytest.raises(SystemExit):
        all_benchmarks.main(["--only=", "--write"])
    assert capsys.readouterr().err.endswith(", got ''\n")
    with pytest.raises(SystemExit):
        all_benchmarks.main(["--only=loop", "--write", "--quick"])
    assert "--write must have figures that mean something, got --quick" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("network", ["cifarnet", "mobilenet_v1", "inception_v3", "resnet_v1_50"])
def test_pytorch_has_as_many_parameters(network):
    """A network in PyTorch has as many parameters as that of `nets`."""
    torch = pytest.importorskip("torch")
    tf1 = importlib.import_module("tensorflow").compat.v1  # not for the children of this file
    precision = importlib.import_module("benchmarks.precision")
    peers = importlib.import_module("benchmarks.torch_classifiers")
    deployed = importlib.import_module("benchmarks.deployed_classifiers")
    work = precision.works(frame.Settings(), network)[0]
    with torch.device("meta"):
        its = peers.count_parameters(peers.build(work))
    with tf1.Graph().as_default():
        deployed.build(work)
        assert deployed.count_parameters() == its


@pytest.mark.slow
@pytest.mark.parametrize("library", ["deploy", "PyTorch", "Keras"])
def test_classifiers_train(library):
    """Each library trains cifarnet in bfloat16, which has 1,756,426 parameters."""
    precision = importlib.import_module("benchmarks.precision")
    _, work = precision.works(frame.Settings(quick=True), "cifarnet")
    with contextlib.ExitStack() as stack:
        measure = precision.start(stack, library, work)
        if isinstance(measure, frame.Absent):
            pytest.skip(measure.reason)
        measured = measure()
    assert measured["images/s"] > 0
    # 5 x 5 x 3 x 64 + 64, 5 x 5 x 64 x 64 + 64, 4096 x 384 + 384, 384 x 192 + 192, 192 x 10 + 10.
    assert measured["parameters"] == 4864 + 102_464 + 1_573_248 + 73_920 + 1930


def test_loss_must_be_finite():
    """A network whose loss is not a number any more is not measured."""
    classifiers = importlib.import_module("benchmarks.classifiers")
    work = classifiers.Work("cifarnet", "float32", image_size=32, batch_size=2, secs=0)
    assert classifiers.measure(lambda: 2.3, work)["images/s"] > 0
    with pytest.raises(
        ValueError, match=r"the loss of Work\(.*'cifarnet'.*must be finite, got nan"
    ):
        classifiers.measure(lambda: float("nan"), work)
