"""Downloads from a server on loopback: whole, cut off, wrong, and malicious ones."""

import contextlib
import hashlib
import http.server
import io
import tarfile
import threading

import numpy as np
import pytest

from model_deploy import inputs
from model_deploy.inputs import download
from model_deploy.inputs.files import archives, downloading
from tests.inputs import files

pytestmark = pytest.mark.one_mode

pytest.importorskip("pooch", reason="pooch is not installed")


@contextlib.contextmanager
def serve(contents, cut=None):
    """An HTTP server of files by name; yields its URL and the list of requests.

    With `cut`, it announces the whole length, sends so many bytes and hangs up.
    """
    requests = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.path)
            content = contents.get(self.path.rsplit("/", 1)[-1])
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write((content or b"")[:cut])

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/files", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def tar(members, mode="w:gz"):
    """An archive of (name, content, changes of the member)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, content, changes in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            for key, value in changes.items():
                setattr(member, key, value)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def sha256(content):
    """The sum of some bytes."""
    return hashlib.sha256(content).hexdigest()


FLOWERS = tar(
    [
        ("flower_photos", b"", {"type": tarfile.DIRTYPE}),
        ("flower_photos/LICENSE.txt", b"words", {}),
        ("flower_photos/roses/1.png", files.encode(files.noise([5, 5, 3])), {}),
        ("flower_photos/daisy/2.png", files.encode(files.noise([5, 5, 3])), {}),
    ]
)


def get_flowers(url, folder, content=FLOWERS, **options):
    """Downloads flowers from a test server, with the right sum."""
    options = {"sha256": sha256(content), "progress": False} | options
    downloading.download_dataset("flowers", folder, base_url=url, **options)


def test_archive_is_fetched_once_and_extracted(tmp_path):
    """The dataset can be read after the download; a second one fetches nothing."""
    with serve({"flower_photos.tgz": FLOWERS}) as (url, requests):
        for _ in range(2):
            get_flowers(url, tmp_path)
    assert requests == ["/files/flower_photos.tgz"]
    counts = []
    for split in ("train", "validation"):
        with contextlib.suppress(ValueError):  # two images may all be in one split
            counts.append(inputs.get_dataset("flowers", split, tmp_path).num_examples)
    assert sum(counts) == 2


def test_mnist_files_are_fetched_with_their_own_sums(tmp_path, monkeypatch):
    """A dataset of several files gets each of them and checks each sum."""
    images, _ = files.write_mnist(tmp_path / "server", compress=True)
    contents = {path.name: path.read_bytes() for path in (tmp_path / "server").iterdir()}
    sums = {f"http://example.org/{name}": sha256(each) for name, each in contents.items()}
    monkeypatch.setitem(
        downloading.DOWNLOADS, "mnist", downloading.Download(sums, is_archive=False)
    )
    with serve(contents) as (url, _):
        downloading.download_dataset("mnist", tmp_path / "data", base_url=url, progress=False)
    dataset = inputs.get_dataset("mnist", "train", tmp_path / "data")
    np.testing.assert_array_equal(dataset.source.arrays[0][..., 0], images)


def test_failed_download_leaves_no_file(tmp_path):
    """What is missing, cut off or has another sum is an error, and no file is left; if nobody
    answers, the error names the URL.
    """
    for content, cut, message in (
        (None, None, "404"),
        (b"other", None, "hash .* does not match"),
        (FLOWERS, 100, "got"),
    ):
        with serve({"flower_photos.tgz": content}, cut=cut) as (url, _):
            error = f"download of {url}/flower_photos.tgz must "
            with pytest.raises(ValueError, match=f"{error}.*{message}"):
                get_flowers(url, tmp_path)
        with pytest.raises(ValueError, match=f"{error}succeed"):
            get_flowers(url, tmp_path)
        assert list(tmp_path.iterdir()) == []


MALICIOUS = {
    "parent": ([("../outside", b"x", {})], "inside the target, got '../outside'"),
    "hidden parent": ([("a/../../outside", b"x", {})], "inside the target, got 'a/../../outside'"),
    "absolute": ([("/tmp/outside", b"x", {})], "inside the target, got '/tmp/outside'"),
    "backslash": ([("..\\outside", b"x", {})], "inside the target"),
    "symbolic link": (
        [("link", b"", {"type": tarfile.SYMTYPE, "linkname": "/tmp"}), ("link/file", b"x", {})],
        "plain files or folders, got 'link'",
    ),
    "hard link": (
        [("link", b"", {"type": tarfile.LNKTYPE, "linkname": "/etc/passwd"})],
        "plain files or folders, got 'link'",
    ),
    "device": ([("null", b"", {"type": tarfile.CHRTYPE})], "plain files or folders, got 'null'"),
    "fifo": ([("pipe", b"", {"type": tarfile.FIFOTYPE})], "plain files or folders, got 'pipe'"),
}


@pytest.mark.parametrize("kind", MALICIOUS)
def test_malicious_archive_writes_nothing(kind, tmp_path):
    """An archive that reaches out of its folder is an error, before anything is extracted."""
    members, message = MALICIOUS[kind]
    content = tar([("good", b"good", {}), *members])
    target = tmp_path / "target"
    with (
        serve({"flower_photos.tgz": content}) as (url, _),
        pytest.raises(ValueError, match=message.replace("\\", "\\\\")),
    ):
        get_flowers(url, target, content)
    assert [each.name for each in tmp_path.rglob("*")] == ["target", "flower_photos.tgz"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (tar([("zeros", bytes(10_001), {})]), "at most 10000 bytes, got 10001"),
        *((each, r"a.tar.gz: must be a whole archive, got") for each in (b"", b"not an archive")),
        *((FLOWERS[:size], r"a.tar.gz: must be a whole") for size in (100, len(FLOWERS) // 2)),
    ],
    # The bytes of an archive hold the time: as names they differ between processes.
    ids=["huge", "empty", "text", "start", "half"],
)
def test_broken_archive_is_rejected(content, message, tmp_path):
    """What would take more than the limit, is no archive, or half of one, is an error and leaves
    nothing.
    """
    (tmp_path / "a.tar.gz").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        archives.extract(tmp_path / "a.tar.gz", tmp_path / "target", max_bytes=10_000)
    assert list((tmp_path / "target").iterdir()) == []


def test_extraction_replaces_what_was_there(tmp_path):
    """Extracting again gives what is in the archive, files and folders."""
    (tmp_path / "a.tar").write_bytes(tar([("x/y", b"new", {}), ("z", b"new", {})], mode="w"))
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "old").touch()
    archives.extract(tmp_path / "a.tar", tmp_path)
    names = sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*"))
    assert names == ["a.tar", "x", "x/y", "z"]
    assert (tmp_path / "x" / "y").read_bytes() == b"new"


@pytest.mark.parametrize(
    ("name", "sha", "message"),
    [
        ("imagenet", None, "dataset must be one of .*, got 'imagenet'"),
        ("flowers", None, r"sha256 must be given for .*tgz.* got None"),
        ("flowers", "abc", "must be 64 hexadecimal digits, got 'abc'"),
        ("mnist", "0" * 64, "must be for one file, got dataset 'mnist' of 4"),
    ],
)
def test_download_rejects(name, sha, message, tmp_path):
    """Nothing is fetched without the name of a dataset and a sum for each file."""
    with pytest.raises(ValueError, match=message):
        downloading.download_dataset(name, tmp_path, sha256=sha)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["mnist", "--data_dir={}/file"],
            "data_dir must be a folder that can be written, got {}/file: File exists",
        ),
        (["flowers", "--data_dir={}"], "sha256 must be given for https://"),
    ],
)
def test_command_reports_mistakes(tmp_path, capsys, arguments, words):
    """A mistake on the command line ends it with an error that begins with the flag."""
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit):
        download.main([each.format(tmp_path) for each in arguments])
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.partition("error: ")[2].startswith(words.format(tmp_path)), last


def test_command_downloads(tmp_path, capsys):
    """The command takes a mirror and a sum, and reports mistakes."""
    with serve({"flower_photos.tgz": FLOWERS}) as (url, _):
        arguments = ["flowers", f"--data_dir={tmp_path}", f"--base_url={url}"]
        with pytest.raises(SystemExit):
            download.main([*arguments, f"--sha256={'0' * 64}"])
        assert "must succeed with its sum" in capsys.readouterr().err
        download.main([*arguments, f"--sha256={sha256(FLOWERS)}"])
    assert (tmp_path / "flower_photos" / "roses" / "1.png").exists()
