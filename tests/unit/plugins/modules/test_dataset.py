# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""dataset: the program that runs in the pod, against a web server of its own; and the Job that runs it."""

from __future__ import annotations

import copy
import hashlib
import http.server
import io
import json
import re
import tarfile
import threading
import types
import typing as t
import zipfile
from pathlib import Path

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.muster.ml.plugins.module_utils._kube.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._module import dataset as edge
from ansible_collections.muster.ml.plugins.module_utils._module import dataset_fetch as program
from ansible_collections.muster.ml.plugins.module_utils._module.run import Context
from ansible_collections.muster.ml.plugins.modules import dataset
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster


def archive(*names: str, link: str | None = None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(name)
            tar.addfile(member, io.BytesIO(name.encode()))
        if link is not None:
            member = tarfile.TarInfo("link")
            member.type, member.linkname = tarfile.SYMTYPE, link
            tar.addfile(member)
    return buffer.getvalue()


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Server(http.server.ThreadingHTTPServer):
    content = b""
    cut_at: int | None = None
    asked: t.ClassVar[list[str]] = []


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_args: t.Any) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        asked = self.headers.get("Range", "")
        self.server.asked.append(asked)
        content = self.server.content
        if self.path.startswith("/no"):
            self.send_error(403)
            return
        begin = int(re.sub(r"\D", "", asked) or 0)
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        cut, self.server.cut_at = self.server.cut_at, None
        self.wfile.write(content[begin:cut])


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> t.Iterator[Server]:
    monkeypatch.setattr(program.time, "sleep", lambda _seconds: None)
    found = Server(("127.0.0.1", 0), Handler)
    found.asked.clear()
    thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


def address(server: Server, name: str = "data.tar.gz") -> str:
    return f"http://127.0.0.1:{server.server_port}/{name}"


def test_fetched_unpacked_marked_and_only_once(server: Server, tmp_path: Path) -> None:
    server.content = archive("train/a", "train/b")
    for _turn in range(2):
        note = program.fetch(tmp_path, address(server), sha(server.content), "vision/tiny")
    assert note["files"] == 2
    assert (tmp_path / "vision/tiny/train/a").read_text() == "train/a"
    assert json.loads((tmp_path / "vision/tiny" / program.MARKER).read_text())["sha256"] == sha(server.content)
    assert server.asked == [""]
    assert not list(tmp_path.rglob("*.part"))


def test_a_cut_connection_goes_on_where_it_ended(server: Server, tmp_path: Path) -> None:
    server.content, server.cut_at = bytes(range(256)) * 400, 1000
    program.fetch(tmp_path, address(server, "blob.bin"), sha(server.content), "blob")
    assert (tmp_path / "blob/blob.bin").read_bytes() == server.content
    assert server.asked == ["", "bytes=1000-"]


def test_another_pod_goes_on_where_the_first_was(server: Server, tmp_path: Path) -> None:
    server.content = bytes(range(256)) * 400
    url, digest = address(server, "blob.bin"), sha(server.content)
    work = tmp_path / ".muster/blob"
    work.mkdir(parents=True)
    (work / f"{program.key_of(url, digest)}.part").write_bytes(server.content[:5000])
    program.fetch(tmp_path, url, digest, "blob")
    assert server.asked == ["bytes=5000-"]


def test_a_wrong_checksum_leaves_nothing(server: Server, tmp_path: Path) -> None:
    server.content = archive("a")
    with pytest.raises(program.Permanent, match=f"has the SHA-256 {sha(server.content)}"):
        program.fetch(tmp_path, address(server), "0" * 64, "x")
    assert not (tmp_path / "x").exists()
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize(
    "content",
    [archive("../evil"), archive("/etc/evil"), archive("fine", link="../../etc"), archive("fine", link="/etc")],
    ids=["up", "absolute", "link up", "absolute link"],
)
def test_nothing_leaves_the_folder(server: Server, tmp_path: Path, content: bytes) -> None:
    server.content = content
    with pytest.raises(program.Permanent, match="nothing of it is used"):
        program.fetch(tmp_path / "claim", address(server), sha(content), "x")
    assert not (tmp_path / "claim/x").exists()
    assert not list(tmp_path.rglob("evil"))


def test_zip_too(server: Server, tmp_path: Path) -> None:
    for name, good in (("a/b", True), ("../evil", False)):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as packed:
            packed.writestr(name, "x")
        server.content = buffer.getvalue()
        try:
            program.fetch(tmp_path, address(server, "d.zip"), sha(server.content), "good" if good else "bad")
        except program.Permanent:
            assert not good
    assert (tmp_path / "good/a/b").exists()
    assert not (tmp_path / "bad").exists()


def test_size_and_space_are_looked_at_first(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.content = archive("a")
    with pytest.raises(program.Permanent, match="Correct dataset_size"):
        program.fetch(tmp_path, address(server), sha(server.content), "x", size=7)
    usage = program.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(program.shutil, "disk_usage", lambda _path: usage._replace(free=3))
    with pytest.raises(program.Permanent, match="has 3 free"):
        program.fetch(tmp_path, address(server), sha(server.content), "x")


def test_what_others_put_there_stays(server: Server, tmp_path: Path) -> None:
    server.content = archive("a")
    (tmp_path / "x").mkdir()
    (tmp_path / "x/mine").touch()
    with pytest.raises(program.Permanent, match="holds other data"):
        program.fetch(tmp_path, address(server), sha(server.content), "x")


def test_a_refusal_names_the_address_without_its_secret(server: Server, tmp_path: Path) -> None:
    with pytest.raises(program.Permanent, match="answers 403") as told:
        program.fetch(tmp_path, address(server, "no?sig=geheim"), "0" * 64, "x")
    assert "geheim" not in str(told.value)


# The Job


def run(cluster: FakeCluster, **params: t.Any) -> dict[str, t.Any]:
    base = {"name": "tiny", "namespace": "default", "sha256": "a" * 64, "claim_name": "c", "url": "https://e.org/x.tar"}
    validator = ArgumentSpecValidator(dataset.ARGUMENT_SPEC, **dataset.CONSTRAINTS)
    given = validator.validate(copy.deepcopy({**base, **params}))
    assert not given.error_messages
    context = Context(params=given.validated_parameters, check=False, connect=lambda: cluster)
    return t.cast("dict[str, t.Any]", dataset.execute(context))


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"sha256": "abc"}, "64 hexadecimal"),
        ({"path": "../x"}, "no folder"),
        ({"url": "ftp://e.org/x"}, "no address"),
        ({"url": "https://e.org/x?X-Amz-Signature=1"}, "url_secret"),
        ({"url": "https://me:word@e.org/x"}, "url_secret"),
        ({"storage_size": "5 GB"}, "not a quantity"),
    ],
)
def test_nonsense_is_refused(params: dict[str, t.Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        run(FakeCluster(), **params)


def test_the_program_is_whole_and_stands_alone() -> None:
    text = edge.program()
    compile(text, "fetch.py", "exec")
    assert "def fetch(" in text
    assert "ansible" not in re.sub(r"#.*", "", text)


def test_the_loader_of_collections_gives_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their text would be a program of one string, which runs, does nothing, and ends well."""
    text = edge.program()
    loader = t.cast("t.Any", types.SimpleNamespace(get_source=lambda _name: text.encode()))
    monkeypatch.setattr(edge.dataset_fetch.__spec__, "loader", loader)
    assert edge.program() == text


def test_a_second_run_changes_nothing_and_another_order_is_another_job() -> None:
    cluster = FakeCluster()
    run(cluster, storage_size="1Gi")
    again = run(cluster, storage_size="1Gi")
    assert {entry["action"] for entry in again["objects"]} == {"unchanged"}
    other = run(cluster, storage_size="1Gi", sha256="b" * 64)
    jobs = sorted(entry["action"] for entry in other["objects"] if entry["kind"] == "Job")
    assert jobs == ["created", "deleted"]
    assert not [e for e in other["objects"] if e["kind"] == "PersistentVolumeClaim" and e["action"] == "deleted"]
