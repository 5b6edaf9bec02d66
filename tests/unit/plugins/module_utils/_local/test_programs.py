# SPDX-License-Identifier: GPL-3.0-or-later
"""Where programs come from: released files by checksum from a mirror with every fault, or Go modules by their pins."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import socket
import tarfile
import threading
import time
import types
import typing as t
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import (
    Causes,
    CommandFailed,
    InvalidInput,
    MusterError,
    NotFound,
    Rejected,
    Unauthorized,
    Unreachable,
)
from ansible_collections.muster.ml.plugins.module_utils._local import download, gobuild, programs, sources
from ansible_collections.muster.ml.plugins.module_utils._local.host import failure


def archive(**members: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(f"./bin/{name}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()


FILES = {"/kubeadm": b"the program", "/etcd.tgz": archive(etcd=b"from the archive", etcdctl=b"beside it")}


class Site(BaseHTTPRequestHandler):
    """A mirror. The first folder of a path is its fault."""

    def do_GET(self) -> None:
        # Of a proxy, the path is a whole URL.
        fault, name = self.path.removeprefix("http://dl.example").split("/")[1], self.path.rpartition("/")[2]
        content = FILES.get(f"/{name}")
        if fault == "silent":
            self.server.quiet.wait(20)  # type: ignore[attr-defined]
            return
        if fault.isdecimal():
            self.send_error(int(fault))
            return
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write({"half": content[: len(content) // 2], "other": content[::-1]}.get(fault, content))

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *_args: object) -> None:
        """No log."""


@pytest.fixture
def site() -> t.Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        server.daemon_threads = True
        server.quiet = threading.Event()  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.quiet.set()  # type: ignore[attr-defined]
        server.shutdown()
        thread.join()


def checksum(name: str) -> str:
    return f"sha256:{hashlib.sha256(FILES[name]).hexdigest()}"


def release(url: str, tmp_path: Path, members: t.Mapping[str, str] | None = None) -> programs.Release:
    name = "/" + url.rpartition("/")[2]
    return programs.Release(name="etcd", url=url, checksum=checksum(name), program_paths=members or {"kubeadm": ""}, cache_dir=tmp_path)


def left(tmp_path: Path) -> list[str]:
    return sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())


def test_a_released_program_is_kept_executable_and_not_asked_for_again(site: str, tmp_path: Path) -> None:
    desired = release(f"{site}/kubeadm", tmp_path)
    programs.fetch(desired, time)
    path = desired.folder / "kubeadm"
    assert path.read_bytes() == b"the program"
    assert path.stat().st_mode & 0o777 == 0o755
    programs.fetch(release("http://127.0.0.1:1/kubeadm", tmp_path), time)


def test_programs_are_taken_out_of_their_archive(site: str, tmp_path: Path) -> None:
    desired = release(f"{site}/etcd.tgz", tmp_path, {"etcd": "bin/etcd", "etcdctl": "./bin/etcdctl"})
    programs.fetch(desired, time)
    assert {path.name: path.read_bytes() for path in desired.folder.iterdir()} == {"etcd": b"from the archive", "etcdctl": b"beside it"}


FAULTS: list[tuple[str, type[MusterError], str]] = [
    ("other", Rejected, r"/other/kubeadm has sha256 \w{64}, expected \w{64}\. The file is not the one that was pinned"),
    ("half", Unreachable, r"/half/kubeadm could not be fetched: the connection ended after 5 of 11 bytes\. Check the network"),
    (
        "404",
        NotFound,
        r"/404/kubeadm: the server answers HTTP 404 Not Found\. Give a mirror that has this file in local",
    ),
    ("403", Unauthorized, r"/403/kubeadm: the server answers HTTP 403 Forbidden\. Give a mirror that asks for no login"),
    ("503", Unreachable, r"/503/kubeadm: the server answers HTTP 503 Service Unavailable\. Run again later"),
    ("silent", Unreachable, r"/silent/kubeadm could not be fetched: no answer for 0 s\. Check the network"),
    ("slow", Unreachable, r"/slow/kubeadm could not be fetched: only 0\.0 KiB a second arrived\. Check the network"),
]


@pytest.mark.parametrize(("fault", "kind", "told"), FAULTS)
def test_a_fault_of_a_mirror_is_told_with_the_next_step_and_leaves_nothing(
    fault: str, kind: type[MusterError], told: str, site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the clock of ``slow`` half a minute passes from look to look; only ``silent`` is waited for."""
    clock = types.SimpleNamespace(monotonic=itertools.count(step=31 if fault == "slow" else 0).__next__)
    monkeypatch.setattr(download.request, "__defaults__", (None, "GET", 0.2 if fault == "silent" else 30))
    with pytest.raises(kind, match=told) as caught:
        programs.fetch(release(f"{site}/{fault}/kubeadm", tmp_path), clock)
    assert "set local_cluster_source to build" in str(caught.value)
    assert left(tmp_path) == []


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "ftp://127.0.0.1", "file://"])
def test_what_cannot_be_reached_is_told(url: str, tmp_path: Path) -> None:
    (tmp_path / "kubeadm").write_bytes(FILES["/kubeadm"])
    with pytest.raises(Unreachable, match="/kubeadm could not be fetched: "):
        programs.fetch(release(f"{url}{tmp_path}/kubeadm", tmp_path / "cache"), time)


def test_a_proxy_is_named_without_its_login(site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", site.replace("//", "//user:canary@"))
    with pytest.raises(NotFound, match=r"the server, or the proxy 127\.0\.0\.1:\d+, answers HTTP 404") as caught:
        programs.fetch(release("http://dl.example/404/kubeadm", tmp_path), time)
    assert "canary" not in str(caught.value)
    monkeypatch.setenv("http_proxy", "http://user:canary@127.0.0.1:1")
    with pytest.raises(Unreachable, match=r"refused \(asked: the server, or the proxy 127\.0\.0\.1:1\)") as gone:
        programs.fetch(release("http://dl.example/kubeadm", tmp_path), time)
    assert "canary" not in str(gone.value)


def test_a_redirect_to_an_address_without_tls_is_not_followed() -> None:
    asked = download.urllib.request.Request("https://dl.example/kubeadm")
    with pytest.raises(OSError, match="which has no TLS"):
        download._Redirects().redirect_request(asked, None, 302, "Found", {}, "http://dl.example/kubeadm")


def test_a_full_disk_is_no_fault_of_the_network(site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desired, to_open = release(f"{site}/kubeadm", tmp_path), Path.open

    def full(path: Path, *how: t.Any, **more: t.Any) -> t.IO[t.Any]:
        return to_open(Path("/dev/full") if path.name == "download" else path, *how, **more)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        programs.fetch(desired, time)
    assert str(caught.value.filename).startswith(str(desired.folder))
    assert left(tmp_path) == []


def test_what_a_killed_run_left_is_deleted(site: str, tmp_path: Path) -> None:
    desired = release(f"{site}/kubeadm", tmp_path)
    draft = desired.folder / ".download.muster-killed" / "download"
    draft.parent.mkdir(parents=True)
    draft.write_text("half")
    programs.fetch(desired, time)
    assert [path.name for path in desired.folder.iterdir()] == ["kubeadm"]


@pytest.mark.parametrize("given", ["", "sha256:", "sha256:12", "md5:" + "0" * 32, "sha256:" + "/" * 64])
def test_nothing_goes_unverified(given: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no checksum is pinned"):
        programs.Release(name="etcd", url="https://x/etcd", checksum=given, program_paths={"etcd": ""}, cache_dir=tmp_path)


@pytest.mark.parametrize("name", ["", "..", "../etcd", "/etcd"])
def test_a_program_stays_in_its_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is no name of a program or an image"):
        release("https://x/kubeadm", tmp_path, {name: ""})
    with pytest.raises(InvalidInput, match="the path of etcd in the archive is 7, which is no text"):
        release("https://x/kubeadm", tmp_path, {"etcd": t.cast("str", 7)})


def test_a_missing_member_is_named(site: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="has no file nowhere/etcd"):
        programs.fetch(release(f"{site}/etcd.tgz", tmp_path, {"etcd": "nowhere/etcd"}), time)
    with pytest.raises(Rejected, match="is no archive"):
        programs.fetch(release(f"{site}/kubeadm", tmp_path, {"kubeadm": "kubeadm"}), time)
    assert left(tmp_path) == []


@pytest.mark.parametrize(
    "url", ["dl.k8s.io", "ftp://x", "https://", "https://user:canary@x", "https://x?a", "https://x/#b", "https://x y", "http://x:y"]
)
def test_a_base_url_is_one(url: str) -> None:
    with pytest.raises(InvalidInput, match=r"local_cluster_release_urls: github '.*' is not the URL of a mirror") as caught:
        download.base_url("github", url)
    assert "canary" not in str(caught.value)
    assert download.base_url("github", "https://x:1/mirror/") == "https://x:1/mirror"


def test_a_probe_says_why_a_file_cannot_be_had_within_its_time(site: str) -> None:
    assert download.why_unreachable([f"{site}/kubeadm", f"{site}/401/v2/etcd/manifests/1"], time) == ""
    assert "HTTP 404" in download.why_unreachable([f"{site}/kubeadm", f"{site}/404/kubeadm"], time)
    assert "HTTP 401" in download.why_unreachable([f"{site}/401/kubeadm"], time)
    assert "refused" in download.why_unreachable(["http://127.0.0.1:1/etcd"], time)
    began = time.monotonic()
    told = download.why_unreachable([f"{site}/silent/kubeadm"], time, 0.2)
    assert told.endswith(("no answer within 0 s.", "is kept.", "no answer for 0 s."))
    with socket.create_server(("127.0.0.1", 0), backlog=1) as listening:
        mute = f"http://127.0.0.1:{listening.getsockname()[1]}/kubeadm"
        assert "no answer" in download.why_unreachable([mute, mute, mute], time, 0.2)
    assert time.monotonic() - began < 15


@pytest.fixture
def module(tmp_path: Path) -> Path:
    folder = tmp_path / "kubelet"
    folder.mkdir()
    (folder / "go.mod").write_text("module x\n\ngo 1.26.0\n")
    (folder / "go.sum").write_text("")
    return folder


def row(name: str, base: str, path: str, sha256: str) -> dict[str, t.Any]:
    return {"name": name, "base": base, "path": path, "sha256_by_arch": {gobuild.architecture(): sha256}}


def choice(module: Path, cache: Path, url: str, source: str = "auto") -> sources.Sources:
    """kubelet and kubeadm are released, etcd is an image, and storage is neither."""
    sha256 = checksum("/kubeadm")[7:]
    names = ("kubelet", "kubeadm", "etcd", "storage")
    return sources.Sources(
        table=[{"name": name, "module_dir": str(module), "package": f"./{name}", "needed_for": "x"} for name in names],
        files=[
            {**row("nodes", "kubernetes", "{arch}/kubeadm", sha256), "program_paths": {"kubeadm": ""}},
            {**row("both", "github", "kubeadm", "0" * 64), "program_paths": {"kubelet": "", "runc": ""}},
        ],
        urls=dict.fromkeys(sources.URLS, url),
        source=source, cache_dir=cache, version="v1.36.3", clock=time,
    )  # fmt: skip


def ways(found: tuple[list[sources.Row], str]) -> dict[str, str]:
    return {row["name"]: row["way"] for row in found[0]}


def test_released_files_come_first_where_they_can_be_reached(
    site: str, module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FILES, "/v1.36.3", b"a manifest")
    rows, reason = choice(module, tmp_path, site).rows({})
    images = dict.fromkeys(sources.IMAGES, "image")
    assert ways((rows, "")) == {"kubeadm": "released", "kubelet": "released", "runc": "released", **images, "storage": "build"}
    assert reason == ""
    (file,) = {row["file"].url for row in rows if row["name"] == "kubeadm"}
    assert file == f"{site}/{gobuild.architecture()}/kubeadm"
    monkeypatch.delitem(FILES, "/v1.36.3")
    rows, reason = choice(module, tmp_path, site).rows({})
    assert set(ways((rows, "")).values()) == {"build"}
    assert reason == f"Released files are not used: {site}/v2/kube-apiserver/manifests/v1.36.3: the server answers HTTP 404 Not Found."
    assert ways(choice(module, tmp_path, site, "released").rows({}))["etcd"] == "image"
    assert set(ways(choice(module, tmp_path, site, "build").rows({})).values()) == {"build"}


def test_a_cluster_and_a_full_cache_keep_their_source_without_the_network(module: Path, tmp_path: Path) -> None:
    unreachable = choice(module, tmp_path, "http://127.0.0.1:1")
    released, _reason = choice(module, tmp_path / "elsewhere", "http://127.0.0.1:1", "released").rows({})
    linked = {row["name"]: row["path"] for row in released}
    assert ways(unreachable.rows(linked))["kubelet"] == "released"
    assert ways(unreachable.rows({}))["kubelet"] == "build"
    for row in choice(module, tmp_path, "http://127.0.0.1:1", "released").rows({})[0]:
        Path(row["path"]).parent.mkdir(parents=True, exist_ok=True)
        Path(row["path"]).touch()
    assert ways(unreachable.rows({}))["kubelet"] == "released"
    for row in choice(module, tmp_path, "http://127.0.0.1:1", "build").rows({})[0]:
        Path(row["path"]).parent.mkdir(parents=True, exist_ok=True)
        Path(row["path"]).touch()
    assert ways(unreachable.rows({}))["kubelet"] == "build"


def test_what_is_missing_comes_with_the_options_that_provide_it(module: Path, tmp_path: Path) -> None:
    rows, _reason = choice(module, tmp_path, "https://x", "released").rows({})
    ahead = sources.to_provide([{**row, "missing": row["name"] != "kubeadm"} for row in rows], "not used")
    (both,) = ahead["to_fetch"]
    assert both == {
        "name": "both",
        "url": "https://x/kubeadm",
        "checksum": "sha256:" + "0" * 64,
        "program_paths": {"kubelet": "", "runc": ""},
    }
    assert ahead["to_pull"] == list(sources.IMAGES)
    assert ahead["to_build"] == [{"name": "storage", "module_dir": str(module), "package": "./storage", "ldflags": "", "tags": []}]
    assert ahead["programs_ahead"] == (
        "not used To fetch: 1 released files and 7 images of Kubernetes. Programs to build from Go modules: 1."
    )
    assert sources.to_provide([{**row, "missing": False} for row in rows], "not used")["programs_ahead"] == ""


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
    def go(argv: list[str], env: dict[str, str], causes: Causes, **_options: t.Any) -> str:
        assert env["CGO_ENABLED"] == "1"
        raise failure(argv, 1, said, causes)

    with pytest.raises(CommandFailed) as caught:
        gobuild.build(build_of(module, tmp_path, cgo=True), runner=go)
    assert hint in str(caught.value)


ETCD, API = "go.etcd.io/etcd/server/v3 v3.6.8 h1:s=\n", "go.etcd.io/etcd/api/v3 v3.6.8 h1:a=\n"


class Go:
    """Go, which has etcd's module and the one beside it in FOLDER."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.calls = folder, [[""]]
        folder.mkdir()
        (folder / "go.mod").write_text("module etcd\n")
        (folder / "go.sum").write_text("x v1 h1:00=\n")

    def __call__(self, argv: list[str], *, env: dict[str, str], cwd: str, **_options: t.Any) -> str:
        self.calls.append(argv)
        assert env["GONOSUMDB"] == "*"
        if argv[1] == "build":
            added = "{0} h1:s=\n{0}/go.mod h1:m=\n{1} h1:a=\n{1}/go.mod h1:m=\n".format(
                *(line.partition(" h1:")[0] for line in (ETCD, API))
            )
            assert (Path(cwd) / "go.sum").read_text() == f"x v1 h1:00=\n{added}"
            assert (Path(cwd) / "main.go").read_text() == "package main\n"
            Path(argv[argv.index("-o") + 1]).write_text("binary")
        if argv[2] != "download":
            return ""
        assert [path.name for path in Path(cwd).iterdir()] == ["go.mod"]
        rows = ((*one.split("@"), str(self.folder)) for one in argv[4:])
        return "".join(
            json.dumps({"Path": path, "Version": version, "Dir": folder, "Sum": f"h1:{path[16]}=", "GoModSum": "h1:m="}, indent="\t") + "\n"
            for path, version, folder in rows
        )


@pytest.fixture
def pinned(module: Path) -> Path:
    """A folder with pins of etcd and of the module in its repository, and a program of ours."""
    (module / "go.mod").unlink()
    (module / "go.sum").write_text(ETCD + API)
    (module / "main.go").write_text("package main\n")
    return module


def test_a_module_brings_the_pins_of_what_it_needs(pinned: Path, tmp_path: Path) -> None:
    go = Go(tmp_path / "go")
    assert gobuild.build(build_of(pinned, tmp_path), runner=go).read_text() == "binary"
    assert go.calls[2][3:] == [
        "-module=muster.local/build", "-toolchain=none", "-dropreplace=go.etcd.io/etcd/api/v3",
        "-require=go.etcd.io/etcd/server/v3@v3.6.8", "-require=go.etcd.io/etcd/api/v3@v3.6.8",
    ]  # fmt: skip
    assert gobuild.build(build_of(pinned, tmp_path), runner=lambda *_words, **_more: pytest.fail("built again")).is_file()
    key = build_of(pinned, tmp_path).key()
    for path in (pinned / "go.sum", pinned / "main.go"):
        path.write_text(path.read_text() * 2)
        assert key != (key := build_of(pinned, tmp_path).key())


def test_two_builds_at_once_build_once(pinned: Path, tmp_path: Path) -> None:
    go, both = Go(tmp_path / "go"), threading.Barrier(2, timeout=60)

    def build(_number: int) -> Path:
        both.wait()
        return gobuild.build(build_of(pinned, tmp_path), runner=go)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(build, range(2))
    assert first == second
    assert [call[1] for call in go.calls[1:]] == ["mod", "mod", "build"]


@pytest.mark.parametrize(
    ("pins", "missing", "error", "said"),
    [
        (ETCD + API.replace("h1:a", "h1:b"), "", Rejected, r"etcd/api/v3 v3.6.8 has the sum h1:a=, and go.sum in \S+ pins h1:b=.* GOPROXY"),
        (ETCD, "go.sum", InvalidInput, "server/v3 v3.6.8 has no go.sum. Give etcd a go.mod"),
        ("", "", InvalidInput, "is not a line for each module"),
        (ETCD + ETCD.replace(" h1:", "/go.mod h1:"), "", InvalidInput, "is not a line for each module"),
        (f"-x{ETCD}", "", InvalidInput, "is not a line for each module"),
    ],
)
def test_what_is_not_the_pinned_module_is_not_built(pinned: Path, tmp_path: Path, pins: str, missing: str, error: type, said: str) -> None:
    go = Go(tmp_path / "go")
    (pinned / "go.sum").write_text(pins)
    (go.folder / (missing or "x")).unlink(missing_ok=True)
    desired = build_of(pinned, tmp_path)
    with pytest.raises(error, match=said):
        gobuild.build(desired, runner=go)
    assert {"build", "edit"}.isdisjoint(word for call in go.calls for word in call)
    assert list(desired.path.parent.iterdir()) == []


def test_a_program_must_be_pinned(module: Path, tmp_path: Path) -> None:
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
    assert gobuild.version_problem(installed, toolchain, "1.26.8") == problem
