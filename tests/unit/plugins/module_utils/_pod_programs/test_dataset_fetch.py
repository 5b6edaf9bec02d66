# SPDX-License-Identifier: GPL-3.0-or-later
"""dataset_fetch.py, against a web server of its own."""

from __future__ import annotations

import datetime as dt
import gzip
import hashlib
import http.server
import io
import json
import os
import re
import tarfile
import threading
import typing as t
import zipfile
from pathlib import Path

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import pytest

from ansible_collections.muster.ml.plugins.module_utils._pod_programs import dataset_fetch as program
from ansible_collections.muster.ml.tests.unit.fakes.served import Answering


def archive(*names: str, link: str | None = None) -> bytes:
    """Files that say their own name; a name with an arrow is a symbolic link, one with = a hard one, one with / at its end a folder."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in (*names, *([f"link->{link}"] if link is not None else [])):
            path, arrow, target = name.partition("->") if "->" in name else name.partition("=")
            member = tarfile.TarInfo(path)
            if arrow:
                member.type, member.linkname = tarfile.SYMTYPE if arrow == "->" else tarfile.LNKTYPE, target
            elif path.endswith("/"):
                member.type, member.mode = tarfile.DIRTYPE, 0o755
            else:
                member.size = len(name)
            tar.addfile(member, io.BytesIO(name.encode()))
    return gzip.compress(buffer.getvalue(), mtime=0)


def tree(folder: Path) -> dict[str, str]:
    """Path -> what the file says, or where the link points to."""
    return {
        str(path.relative_to(folder)): f"-> {path.readlink()}" if path.is_symlink() else path.read_text()
        for path in folder.rglob("*")
        if (path.is_file() or path.is_symlink()) and path.name != program.MARKER
    }


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Server(http.server.ThreadingHTTPServer):
    content = b""
    cut_at: int | None = None
    ranges = True
    # By path: status, headers and body of an answer that is no part of the content.
    others: t.ClassVar[dict[str, tuple[int, dict[str, str], str]]] = {}
    asked: t.ClassVar[list[str]] = []
    seen: t.ClassVar[list[tuple[str, dict[str, str]]]] = []


class Handler(Answering):
    protocol_version = "HTTP/1.0"
    server: Server

    def do_POST(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        self.server.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        if path in self.server.others:
            status, headers, body = self.server.others[path]
            self.reply(status, body, headers)
            return
        asked = self.headers.get("Range", "") if self.server.ranges else ""
        self.server.asked.append(self.headers.get("Range", ""))
        content = self.server.content
        if self.path.startswith("/no"):
            self.send_error(403)
            return
        begin = int(re.sub(r"\D", "", asked) or 0)
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        if not self.path.startswith("/untold"):
            self.send_header("Content-Length", "many" if self.path.startswith("/wrong") else str(len(content) - begin))
        self.end_headers()
        cut, self.server.cut_at = self.server.cut_at, None
        self.wfile.write(content[begin:cut])


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> t.Iterator[Server]:
    monkeypatch.setattr(program.time, "sleep", lambda _seconds: None)
    found = Server(("127.0.0.1", 0), Handler)
    for noted in (found.asked, found.seen, found.others):
        noted.clear()
    thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


def address(server: Server, name: str = "data.tar.gz") -> str:
    return f"http://127.0.0.1:{server.server_port}/{name}"


BLOB = bytes(range(256)) * 400


def fetch_blob(server: Server, root: Path, name: str = "blob.bin") -> None:
    server.content = BLOB
    program.fetch(root, address(server, name), sha(BLOB), "blob")


def draft_of_blob(root: Path, run: str = "", content: bytes = BLOB[:5000]) -> Path:
    """What an earlier run left of it."""
    part = root / ".muster/blob" / f"{sha(BLOB)[:16]}{run}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(content)
    return part


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
    server.cut_at = 1000
    fetch_blob(server, tmp_path)
    assert (tmp_path / "blob/blob.bin").read_bytes() == BLOB
    assert server.asked == ["", "bytes=1000-"]


def test_another_pod_goes_on_where_the_first_was(server: Server, tmp_path: Path) -> None:
    draft_of_blob(tmp_path)
    fetch_blob(server, tmp_path)
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


@pytest.mark.parametrize(
    "members",
    [
        ("a->b/c/../..", "x/", "b->.", "c->x"),
        ("a->b/c/../..", "x/y/", "b->x", "x/c->y/../.."),
        ("a->.", "a->..", "x"),
        ("up->sub/..", "sub->../..", "x"),
    ],
    ids=["as found", "through two", "the same name twice", "one step"],
)
def test_a_link_that_a_later_member_points_outside(server: Server, tmp_path: Path, members: tuple[str, ...]) -> None:
    server.content = archive(*members)
    with pytest.raises(program.Permanent, match=r"would leave its folder|contradicts itself"):
        program.fetch(tmp_path / "claim", address(server), sha(server.content), "x")
    assert not (tmp_path / "claim/x").exists()


@pytest.mark.parametrize(
    ("members", "told"),
    [
        (("a->sub", "sub/", "a/evil"), "contradicts itself"),
        (("a/b", "a->x"), "contradicts itself"),
        (("a->x", "a/b->c", "x/"), "below a link|contradicts itself"),
        (("a", "a/b"), "contradicts itself"),
        (("a=nothing",), "is of no file"),
        (("a=../../etc/passwd",), "would leave"),
    ],
)
def test_no_member_is_written_through_a_link(server: Server, tmp_path: Path, members: tuple[str, ...], told: str) -> None:
    server.content = archive(*members)
    with pytest.raises(program.Permanent, match=told):
        program.fetch(tmp_path, address(server), sha(server.content), "x")
    assert not (tmp_path / "x").exists()


def test_links_that_stay_inside_are_kept(server: Server, tmp_path: Path) -> None:
    server.content = archive("now->v2/data", "v2/data/f", "v2/back->../v1", "v1/g", "same=v1/g", program.MARKER)
    note = program.fetch(tmp_path, address(server), sha(server.content), "x")
    assert tree(tmp_path / "x") == {"now": "-> v2/data", "v2/data/f": "v2/data/f", "v2/back": "-> ../v1", "v1/g": "v1/g", "same": "v1/g"}
    assert note["files"] == 5
    assert (tmp_path / "x/same").samefile(tmp_path / "x/v1/g")


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
    with pytest.raises(program.Permanent, match="Correct option size_bytes"):
        program.fetch(tmp_path, address(server), sha(server.content), "x", size=7)
    usage = program.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(program.shutil, "disk_usage", lambda _path: usage._replace(free=3))
    with pytest.raises(program.Permanent, match="has 3 free"):
        program.fetch(tmp_path, address(server), sha(server.content), "x")


def test_an_answer_of_untold_length_is_not_read_beyond_the_size(server: Server, tmp_path: Path) -> None:
    server.content = b"x" * 100_000
    with pytest.raises(program.Permanent, match="more than the 1000 bytes"):
        program.fetch(tmp_path, address(server, "untold"), sha(server.content), "x", size=1000)
    assert all(path.stat().st_size <= 1000 for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", ["wrong", "\u00e4/%C3%A4"])
def test_odd_lengths_and_paths_are_no_errors(server: Server, tmp_path: Path, name: str) -> None:
    server.content = b"data"
    program.fetch(tmp_path, address(server, name), sha(server.content), "x", "none")
    assert server.seen[-1][0].isascii()


@pytest.mark.parametrize("url", ["http://127.0.0.1:abc/x", "http://[::1/x", "http://h h/x", "http://127.0.0.1:99999/x"])
def test_an_address_that_is_none_is_not_tried_again(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(program.Permanent, match=r"no URL|no address"):
        program.download(url, tmp_path / "part", None)
    assert "attempt" not in capsys.readouterr().out


def test_what_others_put_there_stays(server: Server, tmp_path: Path) -> None:
    server.content = archive("a")
    (tmp_path / "x").mkdir()
    (tmp_path / "x/mine").touch()
    with pytest.raises(program.Permanent, match="holds other data"):
        program.fetch(tmp_path, address(server), sha(server.content), "x")


def data(server: Server, root: Path, *names: str, path: str = "vision", unpack: str = "auto") -> dict[str, t.Any]:
    """Fetch an archive of these members."""
    server.content = archive(*names)
    return program.fetch(root, address(server), sha(server.content), path, unpack)


@pytest.mark.parametrize(("first", "second"), [("vision", "vision/tiny"), ("vision/tiny/x", "vision")])
def test_data_sets_that_would_lie_in_each_other_are_refused(server: Server, tmp_path: Path, first: str, second: str) -> None:
    data(server, tmp_path, "a", path=first)
    before = tree(tmp_path)
    with pytest.raises(program.Permanent, match=f"data sets {second} and {first} would lie in each other"):
        data(server, tmp_path, "b", path=second)
    assert tree(tmp_path) == before
    assert len(server.asked) == 1


def test_data_sets_side_by_side_are_fine(server: Server, tmp_path: Path) -> None:
    data(server, tmp_path, "a", path="vision/tiny")
    data(server, tmp_path, "b", path="vision/large")
    data(server, tmp_path, "c", path="vision_tiny")
    assert tree(tmp_path / "vision") == {"tiny/a": "a", "large/b": "b"}


def test_one_that_got_there_while_the_other_was_fetched(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched = program.complete

    def meanwhile(*args: t.Any) -> None:
        fetched(*args)
        (tmp_path / "vision/tiny").mkdir(parents=True)
        (tmp_path / "vision/tiny" / program.MARKER).write_text("{}")

    monkeypatch.setattr(program, "complete", meanwhile)
    with pytest.raises(program.Permanent, match="would lie in each other"):
        data(server, tmp_path, "a")
    assert tree(tmp_path / "vision") == {}


def test_what_others_put_beside_the_data_stays_when_they_are_updated(server: Server, tmp_path: Path, capsys: t.Any) -> None:
    data(server, tmp_path, "train/a", "train/gone", "old/deep/b", "turns")
    for name in ("checkpoint/epoch9", "train/notes", "old/deep/mine"):
        (tmp_path / "vision" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "vision" / name).write_text("weights")
    (tmp_path / "vision/checkpoint/empty").mkdir()
    note = data(server, tmp_path, "train/a", "train/new", "turns/c")
    assert tree(tmp_path / "vision") == {
        "train/a": "train/a", "train/new": "train/new", "turns/c": "turns/c",
        "checkpoint/epoch9": "weights", "train/notes": "weights", "old/deep/mine": "weights",
    }  # fmt: skip
    assert (tmp_path / "vision/checkpoint/empty").is_dir()
    assert note["kept"] == ["checkpoint/epoch9", "old/deep/mine", "train/notes"]
    assert "kept what others put there: checkpoint/epoch9, old/deep/mine, train/notes" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("theirs", "desired"),
    [("model", "model"), ("model", "model/a"), ("model/x", "model"), ("train/x/model", "train/x"), ("train/model", "train")],
)
def test_what_others_put_where_the_data_must_be_stops_it(server: Server, tmp_path: Path, theirs: str, desired: str) -> None:
    data(server, tmp_path, "train/a", "b")
    (tmp_path / "vision" / theirs).parent.mkdir(exist_ok=True, parents=True)
    (tmp_path / "vision" / theirs).write_text("weights")
    before, marker = tree(tmp_path / "vision"), (tmp_path / "vision" / program.MARKER).read_text()
    with pytest.raises(program.Permanent, match=r"Others put (model|train/)") as told:
        data(server, tmp_path, "b2", desired)
    assert "Nothing was changed" in str(told.value)
    assert (tree(tmp_path / "vision"), (tmp_path / "vision" / program.MARKER).read_text()) == (before, marker)


def test_a_folder_that_became_a_link_to_elsewhere_is_not_followed(server: Server, tmp_path: Path) -> None:
    data(server, tmp_path, "train/a", "b")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "vision/train").rename(tmp_path / "elsewhere/train")
    (tmp_path / "vision/train").symlink_to(tmp_path / "elsewhere/train")
    data(server, tmp_path, "b2")
    assert (tmp_path / "elsewhere/train/a").read_text() == "train/a"
    assert tree(tmp_path / "vision").keys() == {"b2", "train"}


def test_another_way_to_unpack_is_another_result(server: Server, tmp_path: Path) -> None:
    data(server, tmp_path, "f", unpack="none")
    assert list(tree_names(tmp_path / "vision")) == ["data.tar.gz"]
    data(server, tmp_path, "f", unpack="tar")
    assert tree(tmp_path / "vision") == {"f": "f"}


def tree_names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.name != program.MARKER)


def test_the_same_file_from_another_server_is_there_already(server: Server, tmp_path: Path) -> None:
    server.content = archive("f")
    program.fetch(tmp_path, address(server, "data.tar"), sha(server.content), "x")
    program.fetch(tmp_path, address(server, "mirror/data.tar"), sha(server.content), "x")
    assert server.asked == [""]
    program.fetch(tmp_path, address(server, "one.bin"), sha(server.content), "y")
    program.fetch(tmp_path, address(server, "other.bin"), sha(server.content), "y")
    assert tree_names(tmp_path / "y") == ["other.bin"]


class Power(BaseException):
    """It went."""


@pytest.mark.parametrize("others", [False, True], ids=["new", "update"])
def test_power_that_goes_between_any_two_steps(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: bool) -> None:
    """Every call that changes the claim is the last one once; a rerun completes it, and what others put there is always there."""
    monkeypatch.setenv("DATASET_RUN", "job")
    changing = ((Path, "unlink"), (Path, "rename"), (Path, "replace"), (Path, "rmdir"), (Path, "mkdir"), (Path, "write_text"))
    steps = 0
    while True:
        root = tmp_path / str(steps)
        root.mkdir()
        if others:
            data(server, root, "train/a", "train/gone", "sub/b", "c")
            (root / "vision/sub/epoch9").write_text("weights")
        left = [steps]

        def dies(real: t.Callable[..., t.Any], left: list[int]) -> t.Callable[..., t.Any]:
            def call(*args: t.Any, **kwargs: t.Any) -> t.Any:
                left[0] -= 1
                if left[0] < 0:
                    raise Power
                return real(*args, **kwargs)

            return call

        desired = ("train/a", "train/new", "c/d")
        with monkeypatch.context() as patch:
            for owner, name in changing:
                patch.setattr(owner, name, dies(getattr(owner, name), left))
            try:
                data(server, root, *desired)
            except Power:
                pass
            else:
                break
        weights = {"sub/epoch9": "weights"} if others else {}
        assert weights.items() <= tree(root / "vision").items() if others else True
        data(server, root, *desired)
        assert tree(root / "vision") == {**{name: name for name in desired}, **weights}
        assert tree_names(root / ".muster") in (["vision"], [])
        steps += 1
    assert steps > 10


def test_a_marker_that_cannot_be_read_is_no_leave_to_replace(server: Server, tmp_path: Path) -> None:
    data(server, tmp_path, "a")
    (tmp_path / "vision" / program.MARKER).write_text('{"key": ')
    with pytest.raises(program.Permanent, match="holds other data"):
        data(server, tmp_path, "b")
    assert tree(tmp_path / "vision") == {"a": "a"}


def test_a_folder_that_leads_out_of_the_claim(server: Server, tmp_path: Path) -> None:
    (tmp_path / "claim").mkdir()
    (tmp_path / "host").mkdir()
    (tmp_path / "claim/out").symlink_to(tmp_path / "host")
    with pytest.raises(program.Permanent, match="leads out of the claim"):
        data(server, tmp_path / "claim", "a", path="out/x")
    assert list((tmp_path / "host").iterdir()) == []


def test_two_runs_at_once_never_share_a_draft(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second begins while the first is in the middle; both write what they fetch, and both end well."""
    server.content = bytes(range(256)) * 4000
    url, want, first = address(server, "blob.bin"), sha(server.content), [True]
    copied = program._copy

    def in_the_middle(answer: program.Answer, part: Path, *more: t.Any) -> None:
        part.write_bytes(server.content[:1000])
        if first and first.pop():
            monkeypatch.setenv("DATASET_RUN", "second")
            program.fetch(tmp_path, url, want, "x")
            assert part.read_bytes() == server.content[:1000]
        copied(answer, part, *more)

    monkeypatch.setattr(program, "_copy", in_the_middle)
    monkeypatch.setenv("DATASET_RUN", "first")
    program.fetch(tmp_path, url, want, "x")
    assert server.asked == ["", ""]
    assert (tmp_path / "x/blob.bin").read_bytes() == server.content


def test_a_pod_that_was_killed_leaves_its_draft_to_the_next_of_its_job(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = draft_of_blob(tmp_path, ".job-1")
    monkeypatch.setenv("DATASET_RUN", "job-2")
    fetch_blob(server, tmp_path)
    assert server.asked == [""]
    assert left.exists()
    monkeypatch.setenv("DATASET_RUN", "job-1")
    fetch_blob(server, tmp_path, "other.bin")
    assert server.asked == ["", "bytes=5000-"]


def test_a_draft_that_nobody_writes_to_any_more_is_gone_on_with(server: Server, tmp_path: Path) -> None:
    left = draft_of_blob(tmp_path, ".of-another")
    os.utime(left, (0, left.stat().st_mtime - program._QUIET - 10))
    fetch_blob(server, tmp_path)
    assert server.asked == ["bytes=5000-"]


def test_what_was_left_and_does_not_fit_is_no_reason_to_refuse_the_file(server: Server, tmp_path: Path) -> None:
    draft_of_blob(tmp_path, content=b"\xff" * 5000)
    fetch_blob(server, tmp_path)
    assert server.asked == ["bytes=5000-", ""]


def test_an_interrupted_run_leaves_its_draft_to_whoever_comes(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "_ATTEMPTS", 1)
    server.cut_at = 5000
    with pytest.raises(program.Temporary):
        fetch_blob(server, tmp_path)
    fetch_blob(server, tmp_path)
    assert server.asked == ["", "bytes=5000-"]


def test_what_nobody_came_back_for_goes_after_a_day_and_nothing_else(server: Server, tmp_path: Path) -> None:
    work = tmp_path / ".muster/other"
    ours = [f"{'a' * 16}.part", f"{'b' * 16}.run.part", "marker.run"]
    for name in (*ours, "mine.part", "old", f"{'c' * 16}.part"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("x")
        if not name.startswith("c"):
            os.utime(work / name, (0, (work / name).stat().st_mtime - program._ABANDONED - 10))
    (work / "fresh.run/deep").mkdir(parents=True)
    os.utime(work / "fresh.run", (0, 0))
    data(server, tmp_path, "a")
    assert sorted(path.name for path in work.iterdir()) == [f"{'c' * 16}.part", "mine.part", "old"]


def test_a_turn_that_another_run_has_is_waited_for(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: t.Any) -> None:
    turn = tmp_path / ".muster/vision/turn"
    turn.parent.mkdir(parents=True)
    turn.write_text("another")
    monkeypatch.setattr(program.time, "sleep", lambda _seconds: turn.unlink())
    data(server, tmp_path, "a")
    assert "another run changes this folder: waits" in capsys.readouterr().out


@pytest.mark.parametrize("holder", ["job", "another"])
def test_a_turn_whose_run_is_gone_is_taken_over(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holder: str) -> None:
    monkeypatch.setenv("DATASET_RUN", "job")
    turn = tmp_path / ".muster/vision/turn"
    turn.parent.mkdir(parents=True)
    turn.write_text(holder)
    if holder == "another":
        os.utime(turn, (0, turn.stat().st_mtime - program._QUIET - 10))
    data(server, tmp_path, "a")
    assert tree_names(turn.parent) == []


def test_a_run_whose_turn_was_taken_over_stops(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data(server, tmp_path, "a")
    written = program.write_marker

    def taken(draft: Path, target: Path, marker: dict[str, t.Any]) -> None:
        written(draft, target, marker)
        (draft.parent / "turn").write_text("another")

    monkeypatch.setattr(program, "write_marker", taken)
    with pytest.raises(program.Temporary, match="another run changes this folder now"):
        data(server, tmp_path, "b")
    assert tree(tmp_path / "vision") == {"a": "a"}
    assert (tmp_path / ".muster/vision/turn").read_text() == "another"


def test_a_refusal_names_the_address_without_its_secret(server: Server, tmp_path: Path) -> None:
    with pytest.raises(program.Permanent, match="answers 403") as told:
        program.fetch(tmp_path, address(server, "no?sig=geheim"), "0" * 64, "x")
    assert "geheim" not in str(told.value)


def test_no_space_in_the_middle_ends_it(server: Server, tmp_path: Path) -> None:
    """The device that is always full stands in for a claim that others fill meanwhile."""
    server.content = bytes(1 << 20)
    full = tmp_path / "x.part"
    full.symlink_to("/dev/full")
    with pytest.raises(program.Permanent, match="no space left on the claim"):
        program.download(address(server, "blob.bin"), full, None)


def test_a_server_without_ranges_is_told_as_such(server: Server, tmp_path: Path, capsys: t.Any) -> None:
    server.ranges, server.cut_at = False, 1000
    fetch_blob(server, tmp_path)
    assert (tmp_path / "blob/blob.bin").read_bytes() == BLOB
    assert "begins again" in capsys.readouterr().out
    part = tmp_path / "p"
    part.write_bytes(b"before")
    server.cut_at = 500
    with pytest.raises(program.Temporary, match=r"ended at byte 500 of 102400. The server serves no ranges"):
        program._download_once(address(server, "blob.bin"), part, None)


def test_a_host_that_does_not_answer(server: Server, tmp_path: Path) -> None:
    server.server_close()
    with pytest.raises(program.Temporary, match=r"no answer: .*refused.*Can pods of this cluster reach it") as told:
        program.download(f"http://127.0.0.1:{server.server_port}/x?sig=geheim", tmp_path / "x", None)
    assert "geheim" not in str(told.value)
    assert "after 8 attempts" in str(told.value)


def test_credentials_stay_where_they_were_meant_for(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTHORIZATION", "Bearer geheim")
    server.content = b"x"
    server.others["/from.bin"] = (302, {"Location": address(server, "to.bin")}, "")
    program.fetch(tmp_path, address(server, "from.bin"), sha(b"x"), "x")
    assert [headers.get("authorization") for _path, headers in server.seen] == ["Bearer geheim", None]


# Clouds


@pytest.fixture
def s3(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    for name in [n for n in os.environ if n.startswith(("AWS_", "DATASET_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("DATASET_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    server.content = b"content"
    return server


@pytest.mark.parametrize("token", [None, "session/token=="])
def test_signed_as_amazons_own_library_does(token: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    url, keys = "https://b.s3.eu-central-1.amazonaws.com/a%20b/c~d+e.tar", program.Keys("AKIA", "geheim/+", token)
    ours = program.signed(url, keys, "eu-central-1", "20261121T160000Z")
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: dt.datetime(2026, 11, 21, 16, tzinfo=dt.UTC).replace(tzinfo=None))
    request = botocore.awsrequest.AWSRequest("GET", url)
    given = botocore.credentials.Credentials(keys.access, keys.secret, keys.token)
    botocore.auth.S3SigV4Auth(given, "s3", "eu-central-1").add_auth(request)
    assert request.headers["X-Amz-Date"] == "20261121T160000Z"
    assert request.headers["Authorization"] == ours["Authorization"]


def test_an_object_of_s3_with_the_keys_of_the_secret(s3: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "geheim")
    s3.cut_at = 3
    program.fetch(tmp_path, "s3://bucket/some key/x.bin", sha(s3.content), "x")
    assert [path for path, _headers in s3.seen] == ["/bucket/some%20key/x.bin"] * 2
    assert s3.asked == ["", "bytes=3-"]
    scope = "AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/"
    assert all(h["authorization"].startswith(scope) and "/eu-central-1/s3/" in h["authorization"] for _p, h in s3.seen)


def test_one_file_as_the_script_of_an_elastic_job(s3: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: t.Any) -> None:
    s3.cut_at = 3
    monkeypatch.setattr(program.sys, "argv", ["fetch.py", "s3://bucket/elastic/x.py", str(tmp_path / "x.py")])
    assert program.main() == 0
    assert [path.name for path in tmp_path.iterdir()] == ["x.py"]
    assert (tmp_path / "x.py").read_bytes() == s3.content
    monkeypatch.setattr(program.sys, "argv", ["fetch.py", "s3://no/x.py", str(tmp_path / "y.py")])
    assert program.main() == program.EXIT_PERMANENT
    assert "s3://no/x.py: the server answers 403" in capsys.readouterr().out


def test_a_script_with_another_sum_is_refused(s3: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: t.Any) -> None:
    script = tmp_path / "x.py"
    monkeypatch.setattr(program.sys, "argv", ["fetch.py", "s3://bucket/elastic/x.py", str(script), "0" * 64])
    assert program.main() == program.EXIT_PERMANENT
    assert list(tmp_path.iterdir()) == []
    assert f"s3://bucket/elastic/x.py has the SHA-256 {sha(s3.content)}, not {'0' * 64}" in capsys.readouterr().out
    script.with_name("x.py.part").write_bytes(b"what an earlier attempt left of another object")
    monkeypatch.setattr(program.sys, "argv", ["fetch.py", "s3://bucket/elastic/x.py", str(script), sha(s3.content)])
    assert program.main() == 0
    assert script.read_bytes() == s3.content


def test_without_keys_it_is_public(s3: Server, tmp_path: Path) -> None:
    program.fetch(tmp_path, "s3://bucket/x.bin", sha(s3.content), "x")
    assert "authorization" not in s3.seen[0][1]


def test_the_accounts_role_by_irsa(s3: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "<AccessKeyId>ASIA1</AccessKeyId><SecretAccessKey>geheim</SecretAccessKey><SessionToken>tok</SessionToken>"
    s3.others["/sts"] = (200, {}, f"<Credentials>{said}</Credentials>")
    (tmp_path / "token").write_text("jwt")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/reads")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://127.0.0.1:{s3.server_port}/sts")
    program.fetch(tmp_path, "s3://bucket/x.bin", sha(s3.content), "x")
    assert s3.seen[1][1]["x-amz-security-token"] == "tok"
    assert "Credential=ASIA1/" in s3.seen[1][1]["authorization"]
    s3.others["/sts"] = (403, {}, "<Error><Code>AccessDenied</Code><Message>geheim</Message></Error>")
    with pytest.raises(program.Permanent, match=r"credentials of the ServiceAccount.* 403 .*\(AccessDenied\)") as told:
        program.fetch(tmp_path, "s3://bucket/y.bin", sha(s3.content), "y")
    assert "geheim" not in str(told.value)


def test_the_accounts_role_by_pod_identity(s3: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s3.others["/v1/credentials"] = (200, {}, json.dumps({"AccessKeyId": "ASIA2", "SecretAccessKey": "geheim", "Token": "tok2"}))
    (tmp_path / "token").write_text("jwt\n")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"http://127.0.0.1:{s3.server_port}/v1/credentials")
    program.fetch(tmp_path, "s3://bucket/x.bin", sha(s3.content), "x")
    assert s3.seen[0][1]["authorization"] == "jwt"
    assert s3.seen[1][1]["x-amz-security-token"] == "tok2"


def test_a_bucket_elsewhere_is_asked_in_its_region(s3: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    s3.others["/bucket/x.bin"] = (400, {"x-amz-bucket-region": "us-west-2"}, "")
    with pytest.raises(program.Permanent):
        program.fetch(tmp_path, "s3://bucket/x.bin", sha(s3.content), "x")
    assert ["/us-west-2/s3/" in headers["authorization"] for _path, headers in s3.seen] == [False, True]


@pytest.mark.parametrize(
    ("bucket", "region", "address"),
    [
        ("b", "eu-west-1", "https://b.s3.eu-west-1.amazonaws.com/k/x"),
        ("b.c", "eu-west-1", "https://s3.eu-west-1.amazonaws.com/b.c/k/x"),
        ("b", "cn-north-1", "https://b.s3.cn-north-1.amazonaws.com.cn/k/x"),
    ],
)
def test_addresses_of_amazon(s3: Server, monkeypatch: pytest.MonkeyPatch, bucket: str, region: str, address: str) -> None:
    monkeypatch.delenv("DATASET_ENDPOINT_URL")
    assert program._s3_address(f"s3://{bucket}/k/x", region) == address


def test_an_object_of_google_with_the_accounts_token(s3: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GCE_METADATA_HOST", f"127.0.0.1:{s3.server_port}")
    s3.others["/computeMetadata/v1/instance/service-accounts/default/token"] = (200, {}, '{"access_token": "ya29"}')
    program.fetch(tmp_path, "gs://bucket/a/x.bin", sha(s3.content), "x")
    (_path, metadata), (path, headers) = s3.seen
    assert (metadata["metadata-flavor"], headers["authorization"]) == ("Google", "Bearer ya29")
    assert path == "/storage/v1/b/bucket/o/a%2Fx.bin?alt=media"
