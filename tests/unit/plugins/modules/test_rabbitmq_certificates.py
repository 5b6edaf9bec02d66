# SPDX-License-Identifier: GPL-3.0-or-later
"""rabbitmq_certificates: one authority for brokers that come one after another, and the names that each is valid for."""

from __future__ import annotations

import base64
import concurrent.futures
import errno
import fcntl
import json
import os
import stat
import sys
import time
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args
from cryptography import x509

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed, InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext
from ansible_collections.muster.ml.plugins.module_utils._kube import certificates
from ansible_collections.muster.ml.plugins.modules import rabbitmq_certificates


def make(folder: Path, host: str, *addresses: str, **more: t.Any) -> list[str]:
    params = {"directory": str(folder), "brokers": {host: list(addresses)}, "trusted": {}, "state": "present", **more}
    context = HostContext(params=params, check=False, warn=pytest.fail)
    return t.cast("list[str]", rabbitmq_certificates.execute(context)["fresh"])


def test_brokers_that_come_later_get_their_certificate_of_the_same_authority(tmp_path: Path) -> None:
    assert make(tmp_path, "broker-a", "broker.example.com", "10.0.0.4") == ["ca", "broker-a/server"]
    assert make(tmp_path, "broker-b", "10.0.0.5") == ["broker-b/server"]
    assert make(tmp_path, "broker-a", "broker.example.com", "10.0.0.4") == []
    found = x509.load_pem_x509_certificate((tmp_path / "broker-a" / "server.crt").read_bytes())
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["broker.example.com", "broker-a", "localhost"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.4", "127.0.0.1"]


def test_another_authority_than_clients_trust_is_refused(tmp_path: Path) -> None:
    make(tmp_path / "old", "broker-a")
    theirs = {"content": base64.b64encode((tmp_path / "old" / "ca.crt").read_bytes()).decode()}
    with pytest.raises(Failed, match="broker-a trusts another certificate authority"):
        make(tmp_path / "new", "broker-a", trusted={"broker-a": theirs})
    assert not (tmp_path / "new").exists()


def test_two_runs_at_once_make_one_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = certificates._write

    def late(path: Path, content: bytes, mode: int) -> None:
        if path.name == "ca.key":
            time.sleep(0.05)  # long enough for another run that does not wait
        write(path, content, mode)

    monkeypatch.setattr(certificates, "_write", late)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(make, tmp_path, "broker-a") for _number in range(2)]
        made = sorted((run.result() for run in runs), key=len)
    assert made == [[], ["ca", "broker-a/server"]]


def test_a_file_system_that_locks_files_only_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As NFS, where the handle of a lock is one for writing."""
    lock = fcntl.flock

    def files_only(handle: t.Any, how: int) -> None:
        if stat.S_ISDIR(os.fstat(handle if isinstance(handle, int) else handle.fileno()).st_mode):
            raise OSError(errno.EBADF, "Bad file descriptor")
        lock(handle, how)

    monkeypatch.setattr(fcntl, "flock", files_only)
    assert make(tmp_path, "broker-a") == ["ca", "broker-a/server"]


def test_where_nothing_can_be_locked_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(_handle: t.Any, _how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.raises(Failed, match=r"muster\.json: No locks available"):
        make(tmp_path / "folder", "broker-a")
    assert [path.name for path in tmp_path.rglob("*.key")] == []


# Removing


def remove(folder: Path, host: str, *, check: bool = False, warnings: list[str] | None = None) -> dict[str, t.Any]:
    params = {"directory": str(folder), "brokers": {host: []}, "trusted": {}, "state": "absent"}
    warn = (warnings if warnings is not None else []).append
    done = rabbitmq_certificates.execute(HostContext(params=params, check=check, warn=warn, diff=True))
    assert done.pop("diff") == {"prepared": "".join(f"{one}\n" for one in done["removed"])}
    return done


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of the authority, with two brokers."""
    folder = tmp_path / "muster/rabbitmq"
    make(folder, "broker-a")
    make(folder, "broker-b")
    assert folder.stat().st_mode & 0o777 == 0o700
    return folder


def test_the_authority_stays_until_the_last_broker_goes(home: Path, tmp_path: Path) -> None:
    kept = {"muster.json", "ca.key", "ca.crt", "broker-b/server.key", "broker-b/server.crt"}
    assert remove(home, "broker-a", check=True)["changed"]
    assert (home / "broker-a/server.key").exists()
    found = remove(home, "broker-a")
    assert found["kept"] == [f"certificate authority in {home}: broker-b is there, too"]
    assert names(home) == kept
    assert not (home / "broker-a").exists()
    assert not remove(home, "broker-a")["changed"]
    planned = remove(home, "broker-b", check=True)
    assert f"file {home}/ca.key" in planned["removed"]
    assert remove(home, "broker-b")["changed"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("notes", "told"), [("notes.txt", []), ("broker-a/copy.key", ["copy.key"])])
def test_notes_beside_the_authority_keep_it(home: Path, notes: str, told: list[str]) -> None:
    """As the plan says, too, for which all is still there."""
    (home / notes).write_text("theirs")
    warnings: list[str] = []
    remove(home, "broker-b")
    planned = remove(home, "broker-a", check=True)
    done = remove(home, "broker-a", warnings=warnings)
    kept = f"certificate authority in {home}: {notes.partition('/')[0]} is there, too"
    assert [kept in one["kept"] for one in (planned, done)] == [True, True]
    assert names(home) == {"muster.json", "ca.key", "ca.crt", notes}
    assert warnings == [f"Kept {name} in {home}/broker-a: Muster did not create it." for name in told]


def test_an_authority_without_a_record_is_used_and_never_deleted(tmp_path: Path) -> None:
    make(tmp_path / "made", "broker-x")
    folder = tmp_path / "theirs"
    (folder / "broker-b").mkdir(parents=True)
    for name in ("ca.key", "ca.crt"):
        (tmp_path / "made" / name).rename(folder / name)
    (folder / "broker-b/server.key").write_text("theirs")
    assert remove(folder, "broker-a")["changed"] is False
    assert make(folder, "broker-a") == ["broker-a/server"]
    remove(folder, "broker-a")
    remove(folder, "broker-b")
    assert names(folder) == {"ca.key", "ca.crt", "broker-b/server.key"}


def test_a_key_that_was_put_in_the_place_of_ours_stays(home: Path) -> None:
    remove(home, "broker-b")
    (home / "broker-a/server.key").write_text("theirs")
    remove(home, "broker-a")
    assert names(home) == {"muster.json", "ca.key", "ca.crt", "broker-a/server.key"}


def test_a_renewed_certificate_goes_too(home: Path) -> None:
    make(home, "broker-a", "10.0.0.9")
    remove(home, "broker-b")
    remove(home, "broker-a")
    assert not home.exists()


@pytest.mark.parametrize("broker", ["", ".", "..", "a/b", "../x"])
def test_a_broker_whose_name_leads_out_of_the_folder_is_refused(home: Path, broker: str) -> None:
    before = names(home)
    for work in (make, remove):
        with pytest.raises(InvalidInput, match="cannot be the name of a folder"):
            work(home, broker)
    assert names(home) == before


def test_without_cryptography_the_message_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    options = {"directory": str(tmp_path), "brokers": {"broker-a": ["10.0.0.1"]}}
    with patch_module_args(options), pytest.raises(SystemExit):
        rabbitmq_certificates.main()
    said = json.loads(capsys.readouterr().out)
    assert said["failed"]
    assert "Python library (cryptography>=" in said["msg"]
