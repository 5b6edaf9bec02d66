# SPDX-License-Identifier: GPL-3.0-or-later

"""Where programs come from: released files by checksum, Go modules by their pins."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
import typing as t
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import CommandFailed, InvalidInput, Rejected, Unreachable
from ansible_collections.muster.ml.plugins.module_utils._local import gobuild, programs, survey


def archive(member: str, content: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        entry = tarfile.TarInfo(member)
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()


FILES = {"/etcd": b"the program", "/etcd.tgz": archive("etcd-v3/etcd", b"from the archive")}


class Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        content = FILES.get(self.path)
        self.send_response(404 if content is None else 200)
        self.end_headers()
        if content and self.command == "GET":
            self.wfile.write(content)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *_args: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def site() -> t.Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def release(url: str, tmp_path: Path, *, member: str = "", checksum: str = "") -> programs.Release:
    digest = hashlib.sha256(FILES["/" + url.rpartition("/")[2]]).hexdigest()
    return programs.Release(name="etcd", url=url, checksum=checksum or f"sha256:{digest}", member=member, cache_dir=tmp_path)


def test_a_released_program_is_kept_executable(site: str, tmp_path: Path) -> None:
    path = programs.fetch(release(f"{site}/etcd", tmp_path))
    assert path.read_bytes() == b"the program"
    assert path.stat().st_mode & 0o777 == 0o755


def test_a_program_is_taken_out_of_its_archive(site: str, tmp_path: Path) -> None:
    path = programs.fetch(release(f"{site}/etcd.tgz", tmp_path, member="etcd-v3/etcd"))
    assert path.read_bytes() == b"from the archive"
    assert [one.name for one in path.parent.iterdir()] == ["etcd"]


def test_two_runs_that_fetch_the_same_do_not_share_a_draft(site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second begins and ends while the first is in the middle."""
    desired, first, downloaded = release(f"{site}/etcd", tmp_path), [True], programs._download

    def in_the_middle(one: programs.Release, target: Path, timeout: float) -> None:
        downloaded(one, target, timeout)
        if first and first.pop():
            programs.fetch(desired)
            assert target.read_bytes() == b"the program"

    monkeypatch.setattr(programs, "_download", in_the_middle)
    assert programs.fetch(desired).read_bytes() == b"the program"
    assert [path.name for path in desired.path.parent.iterdir()] == ["etcd"]


def test_a_full_disk_is_no_fault_of_the_network(site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desired, to_open = release(f"{site}/etcd", tmp_path), Path.open

    def full(path: Path, *how: t.Any, **more: t.Any) -> t.IO[t.Any]:
        return to_open(Path("/dev/full") if path.name == "download" else path, *how, **more)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        programs.fetch(desired)
    assert caught.value.filename == str(desired.path)
    assert list(desired.path.parent.iterdir()) == []


def test_another_file_than_the_pinned_one_is_thrown_away(site: str, tmp_path: Path) -> None:
    desired = release(f"{site}/etcd", tmp_path, checksum="sha256:" + "0" * 64)
    with pytest.raises(Rejected, match="is not the one that was pinned"):
        programs.fetch(desired)
    assert list(desired.path.parent.iterdir()) == []


@pytest.mark.parametrize("checksum", ["", "sha256:", "sha256:12", "md5:" + "0" * 32])
def test_nothing_goes_unverified(checksum: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no checksum is pinned"):
        programs.Release(name="etcd", url="https://x/etcd", checksum=checksum, member="", cache_dir=tmp_path)


def test_a_missing_member_is_named(site: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="has no file nowhere/etcd"):
        programs.fetch(release(f"{site}/etcd.tgz", tmp_path, member="nowhere/etcd"))


def test_a_file_of_the_host_is_no_release(tmp_path: Path) -> None:
    (tmp_path / "etcd").write_bytes(FILES["/etcd"])
    with pytest.raises(Unreachable, match="could not be fetched"):
        programs.fetch(release(f"file://{tmp_path}/etcd", tmp_path))


def test_a_probe_says_whether_a_file_can_be_had(site: str) -> None:
    assert programs.is_reachable(f"{site}/etcd")
    assert not programs.is_reachable(f"{site}/nothing")
    assert not programs.is_reachable("http://127.0.0.1:1/etcd", timeout=1)


@pytest.fixture
def module(tmp_path: Path) -> Path:
    folder = tmp_path / "etcd"
    folder.mkdir()
    (folder / "go.mod").write_text("module x\n\ngo 1.26.0\n")
    (folder / "go.sum").write_text("")
    return folder


def table(module: Path, **more: t.Any) -> list[dict[str, t.Any]]:
    return [{"name": "etcd", "module_dir": str(module), "package": "./etcd", **more}]


def test_released_files_come_first_where_they_can_be_reached(site: str, module: Path, tmp_path: Path) -> None:
    digest = hashlib.sha256(FILES["/etcd"]).hexdigest()
    rows = table(module, release={"url": f"{site}/etcd", "checksum": f"sha256:{digest}"})
    assert [row["way"] for row in survey.resolve_sources(rows, tmp_path, "auto")] == ["release"]
    unreachable = table(module, release={"url": f"{site}/nothing", "checksum": f"sha256:{digest}"})
    assert [row["way"] for row in survey.resolve_sources(unreachable, tmp_path, "auto")] == ["go"]


def test_without_a_checksum_modules_are_built_or_the_release_is_refused(module: Path, tmp_path: Path) -> None:
    assert [row["way"] for row in survey.resolve_sources(table(module), tmp_path, "auto")] == ["go"]
    with pytest.raises(InvalidInput, match="No released file with a checksum is pinned for etcd"):
        survey.resolve_sources(table(module), tmp_path, "release")


def test_what_was_built_before_decides(site: str, module: Path, tmp_path: Path) -> None:
    digest = hashlib.sha256(FILES["/etcd"]).hexdigest()
    rows = table(module, release={"url": f"{site}/etcd", "checksum": f"sha256:{digest}"})
    built = Path(survey.resolve_sources(rows, tmp_path, "go")[0]["path"])
    built.parent.mkdir(parents=True)
    built.touch()
    assert [row["way"] for row in survey.resolve_sources(rows, tmp_path, "auto")] == ["go"]


def test_missing_programs_come_with_the_options_that_make_them(module: Path) -> None:
    go = {"way": "go", "path": "/cache/x", **table(module, needed_for="storage")[0]}
    released = {**go, "way": "release", "release": {"url": "https://x/etcd", "checksum": "sha256:1", "member": None}}
    ahead = survey.programs_to_provide([{**go, "missing": True}, {**released, "missing": True}, {**go, "missing": False}])
    assert ahead["to_build"] == [{"name": "etcd", "module_dir": str(module), "package": "./etcd", "ldflags": "", "tags": []}]
    assert ahead["to_fetch"] == [{"name": "etcd", "url": "https://x/etcd", "checksum": "sha256:1", "member": ""}]
    assert ahead["programs_ahead"].startswith("Programs to fetch: 1. Programs to build from Go modules: 1,")
    assert survey.programs_to_provide([{**go, "missing": False}])["programs_ahead"] == ""


def build_of(module: Path, cache: Path, **more: t.Any) -> gobuild.GoBuild:
    return gobuild.GoBuild(name="etcd", module_dir=module, package="./etcd", cache_dir=cache, **more)


def test_the_same_pins_and_flags_are_one_program(module: Path, tmp_path: Path) -> None:
    one = build_of(module, tmp_path)
    assert one.path == build_of(module, tmp_path).path
    assert one.path != build_of(module, tmp_path, ldflags="-X a.b=c").path
    assert one.path != build_of(module, tmp_path, tags=("no_zfs",)).path
    assert one.path != build_of(module, tmp_path, cgo=True).path
    (module / "go.sum").write_text("x v1 h1:00=\n")
    assert one.path != tmp_path / "bin" / one.key()[::-1] / "etcd"
    assert one.key() == build_of(module, tmp_path).key()


def test_a_program_appears_whole_or_not_at_all(module: Path, tmp_path: Path) -> None:
    seen: dict[str, t.Any] = {}

    def go(argv: list[str], **options: t.Any) -> str:
        seen.update(argv=argv, **options)
        Path(argv[argv.index("-o") + 1]).write_text("binary")
        return ""

    path = gobuild.build(build_of(module, tmp_path, tags=("a", "b")), runner=go)
    assert path.read_text() == "binary"
    assert seen["env"]["CGO_ENABLED"] == "0"
    assert seen["argv"][seen["argv"].index("-tags") + 1] == "a,b"
    assert seen["cwd"] == str(module)

    def broken(argv: list[str], **_options: t.Any) -> str:
        Path(argv[argv.index("-o") + 1]).write_text("half")
        raise CommandFailed("go build exited with 1: no space left")

    desired = build_of(module, tmp_path, ldflags="-X other=1")
    with pytest.raises(CommandFailed, match=r"Building etcd .* no space left.* GOPROXY"):
        gobuild.build(desired, runner=broken)
    assert list(desired.path.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ('cgo: C compiler "gcc" not found: exec: "gcc": executable file not found in $PATH', "Install gcc and libc6-dev"),
        ("_cgo_export.c:3:10: fatal error: stdlib.h: No such file or directory", "Install gcc and libc6-dev"),
        ("dial tcp: no such host", "GOPROXY"),
    ],
)
def test_a_program_with_parts_in_c_needs_a_compiler(module: Path, tmp_path: Path, said: str, hint: str) -> None:
    def go(_argv: list[str], env: dict[str, str], **_options: t.Any) -> str:
        assert env["CGO_ENABLED"] == "1"
        raise CommandFailed(said)

    with pytest.raises(CommandFailed) as caught:
        gobuild.build(build_of(module, tmp_path, cgo=True), runner=go)
    assert hint in str(caught.value)


def test_a_module_must_be_pinned(module: Path, tmp_path: Path) -> None:
    (module / "go.sum").unlink()
    with pytest.raises(InvalidInput, match=r"has no go\.sum"):
        build_of(module, tmp_path).key()


@pytest.mark.parametrize(
    ("installed", "toolchain", "problem"),
    [
        ("go version go1.26.8 linux/amd64", "local", None),
        ("go version go1.27rc1 linux/amd64", "local", None),
        ("go version go1.21.0 linux/amd64", "auto", None),
        ("go version go1.21.0 linux/amd64", "local", "Go 1.21.0 is too old: 1.26.8 is needed"),
        ("go version go1.19.8 linux/amd64", "auto", "Go 1.19.8 is too old: 1.26.8 is needed"),
        ("nothing", "", "Go of unknown version is too old: 1.26.8 is needed"),
    ],
)
def test_an_old_go_may_fetch_a_newer_one(installed: str, toolchain: str, problem: str | None) -> None:
    needed = gobuild.required_version("module x\n\ngo 1.26.8\n")
    assert gobuild.version_problem(installed, toolchain, needed) == problem
