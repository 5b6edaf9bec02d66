# SPDX-License-Identifier: GPL-3.0-or-later
"""host_file and host_record: what was recorded when it was created goes, and nothing of others, wherever a run was killed."""

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.muster.ml.plugins.module_utils._core import created, files
from ansible_collections.muster.ml.plugins.module_utils._core.errors import Causes, CommandFailed, Conflict, Failed
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext
from ansible_collections.muster.ml.plugins.module_utils._local import host, host_things
from ansible_collections.muster.ml.plugins.module_utils._local.host import failure
from ansible_collections.muster.ml.plugins.modules import host_file, host_record


class Killed(BaseException):
    """The run was ended by SIGKILL."""


class Machine:
    """A host below one folder, with packages and tables that exist only here."""

    def __init__(self, root: Path) -> None:
        self.root, self.record = root, root / "etc/muster/x.json"
        (root / "etc").mkdir()
        self.packages, self.dependents, self.tables = set[str](), set[str](), set[str]()
        self.enabled = set[str]()
        self.mounts: list[Path] = []
        self.warnings: list[str] = []

    def run(self, module: t.Any, *, check: bool = False, **params: t.Any) -> dict[str, t.Any]:
        given = ArgumentSpecValidator(module.ARGUMENT_SPEC, **getattr(module, "CONSTRAINTS", {})).validate(params)
        assert not given.error_messages
        ctx = HostContext(given.validated_parameters, check=check, warn=self.warnings.append, diff=True)
        return t.cast("dict[str, t.Any]", module.execute(ctx))

    def write(self, name: str = "etc/a", content: str = "ours\n", **params: t.Any) -> dict[str, t.Any]:
        path = self.root / name
        path.parent.mkdir(exist_ok=True, parents=True)
        return self.run(host_file, path=str(path), record=str(self.record), content=content, **params)

    def delete(self, name: str = "etc/a", **params: t.Any) -> dict[str, t.Any]:
        return self.run(host_file, path=str(self.root / name), record=str(self.record), state="absent", **params)

    def claim(self, **params: t.Any) -> dict[str, t.Any]:
        return self.run(host_record, path=str(self.record), **params)

    def remove(self, **params: t.Any) -> dict[str, t.Any]:
        return self.run(host_record, path=str(self.record), state="absent", **params)

    def command(self, argv: t.Sequence[str], causes: Causes = (), **_more: t.Any) -> str:
        """What dpkg-query, apt-get and nft do with packages and tables of these names."""
        name = argv[-1]
        if argv[0] == "dpkg-query":
            if name not in self.packages:
                raise failure(argv, 1, f"dpkg-query: no packages found matching {name}", causes)
            return "installed"
        if argv[0] == "apt-get" and "--simulate" in argv:
            return "".join(f"Remv {one} [1]\n" for one in (name, *self.dependents))
        if argv[0] == "apt-get":
            self.packages -= {name, *self.dependents}
            return ""
        if argv[0] == "systemctl":
            if name not in self.enabled:
                raise failure(argv, 1, "disabled", causes)
            self.enabled -= {name} if argv[1] == "disable" else set()
            return "enabled\n"
        if name not in self.tables:
            raise failure(argv, 1, "Error: No such file or directory", causes)
        self.tables -= {name} if argv[1] == "delete" else set()
        return "table"

    def tree(self) -> dict[str, str]:
        """All that is there, without the folder etc and what tests put beside it."""
        found = {}
        for path in sorted(self.root.rglob("*")):
            name = str(path.relative_to(self.root))
            found[name] = "link" if path.is_symlink() else "folder" if path.is_dir() else path.read_text()
        return {name: what for name, what in found.items() if name != "etc"}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    one = Machine(tmp_path)
    monkeypatch.setattr(host, "run", one.command)
    monkeypatch.setattr(created, "mount_points", lambda: {str(path) for path in one.mounts})
    return one


# Files


def test_a_file_is_written_once_and_goes_with_its_record(machine: Machine) -> None:
    assert machine.write(check=True)["changed"]
    assert machine.tree() == {}
    written, attributes = machine.write()["diff"]
    assert (written["before"], written["after"], attributes["after"]["mode"]) == ("", "ours\n", "0600")
    assert not machine.write()["changed"]
    assert stat.S_IMODE((machine.root / "etc/a").stat().st_mode) == 0o600
    (only,) = machine.write(mode="0644")["diff"]
    assert [only[side]["mode"] for side in ("before", "after")] == ["0600", "0644"]
    assert stat.S_IMODE((machine.root / "etc/a").stat().st_mode) == 0o644
    assert machine.remove(check=True)["removed"] == [f"file {machine.root}/etc/a"]
    assert machine.remove()["changed"]
    assert machine.tree() == {}
    assert not machine.remove()["changed"]
    assert machine.tree() == {}


def test_a_secret_is_in_no_result_and_in_no_record(machine: Machine) -> None:
    (machine.root / "etc/muster").mkdir()
    params = {"path": str(machine.root / "etc/muster/key"), "record": str(machine.record), "secret_content": "canary-1"}
    assert "canary" not in str(machine.run(host_file, **params))
    assert "canary" not in machine.record.read_text()
    assert host_file.ARGUMENT_SPEC["secret_content"]["no_log"]


def test_a_file_of_others_is_not_replaced_and_not_deleted(machine: Machine) -> None:
    (machine.root / "etc/a").write_text("theirs\n")
    with pytest.raises(Conflict, match=r"/etc/a: this file is there, and .*x\.json does not say that Muster wrote it"):
        machine.write()
    assert machine.delete()["kept"]
    assert machine.tree() == {"etc/a": "theirs\n"}
    assert machine.write(foreign="replace")["changed"]
    machine.remove()
    assert not machine.delete()["changed"]
    assert machine.tree() == {"etc/a": "ours\n"}


def test_the_same_file_of_others_is_not_deleted(machine: Machine) -> None:
    (machine.root / "etc/a").write_text("ours\n")
    assert not machine.write()["changed"]
    machine.remove()
    assert machine.tree() == {"etc/a": "ours\n"}


def test_an_empty_file_counts_as_none(machine: Machine) -> None:
    (machine.root / "etc/a").touch()
    assert machine.write()["changed"]
    assert [(one["before"]["state"], one["after"]) for one in machine.delete()["diff"]] == [("file", {"state": "absent"})]
    assert machine.tree() == {}


def test_a_file_that_was_changed_since_is_kept_and_named_until_it_is_gone(machine: Machine) -> None:
    machine.write()
    (machine.root / "etc/a").write_text("ours\nand theirs\n")
    for _time in range(2):
        machine.warnings.clear()
        assert not machine.remove()["removed"]
        assert machine.warnings == [f"Kept file {machine.root}/etc/a: it cannot be judged: it was changed since Muster wrote it."]
    (machine.root / "etc/a").unlink()
    machine.remove()
    assert machine.tree() == {}


@pytest.mark.parametrize("target", ["theirs", "etc/b"])
def test_a_link_is_neither_followed_nor_deleted(machine: Machine, target: str) -> None:
    machine.write()
    (machine.root / target).write_text("ours\n")
    (machine.root / "etc/a").unlink()
    (machine.root / "etc/a").symlink_to(machine.root / target)
    assert not machine.remove()["changed"]
    assert machine.tree()["etc/a"] == "link"
    assert machine.tree()[target] == "ours\n"
    with pytest.raises(Conflict):
        machine.write(foreign="replace", content="new\n")


def test_the_record_of_others_knows_nothing(machine: Machine) -> None:
    machine.write()
    own, machine.record = machine.record, machine.root / "home/other/x.json"
    assert not machine.delete()["changed"]
    assert machine.warnings == [f"Kept file {machine.root}/etc/a: {machine.record}, the record of what Muster created, does not have it."]
    machine.record = own
    machine.remove()
    assert machine.tree() == {}


@pytest.mark.parametrize("text", ["{", "[]", '{"muster": 2}', '{"muster": 1, "files": {"/x": {"digest": 1}}}', "\0"])
def test_a_record_that_cannot_be_read_ends_the_run_before_anything_changes(machine: Machine, text: str) -> None:
    machine.write()
    machine.record.write_text(text)
    for work in (machine.remove, machine.write, machine.claim):
        with pytest.raises(Failed, match="record of what Muster created, cannot be read"):
            work()
    assert machine.tree()["etc/a"] == "ours\n"


def test_a_removal_where_nothing_was_ever_recorded_creates_nothing(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_args: t.Any, **_more: t.Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", refused)
    assert not machine.remove(delete_data=True)["changed"]
    assert not machine.delete()["changed"]


def test_what_the_system_refuses_is_one_error(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path, *_args: t.Any, **_more: t.Any) -> None:
        raise OSError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "mkdir", refused)
    with pytest.raises(Failed, match=r"/etc/muster: Permission denied"):
        machine.claim(packages=["p"])
    assert machine.tree() == {}


# A run that is killed

MAY_STAY: tuple[dict[str, str], ...] = ({}, {"etc/muster": "folder"}, {"etc/conf.d": "folder"})
"""A folder alone: where the run ended between the record and its folder, nothing says that the empty folder is Muster's."""


def killed_at(moment: int, run: t.Callable[[], object]) -> bool:
    """Run in a process of its own, which ends by SIGKILL at the given call of those that change something; return whether it did.

    An exception would let a run tidy up (``finally``) as a killed one cannot.
    """
    left = [moment]

    def wrapped(work: t.Callable[..., t.Any]) -> t.Callable[..., t.Any]:
        def call(*args: t.Any, **more: t.Any) -> t.Any:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return work(*args, **more)

        return call

    child = os.fork()
    if child == 0:
        for name in ("replace", "unlink", "rmdir", "mkdir", "chmod"):
            setattr(Path, name, wrapped(getattr(Path, name)))
        for name in ("unlink", "rmdir", "write", "fsync"):
            setattr(os, name, wrapped(getattr(os, name)))
        status = 1
        with contextlib.suppress(BaseException):
            run()
            status = 0
        os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL)
    return status != 0


@pytest.mark.parametrize("moment", range(1, 32))
def test_a_run_that_is_killed_while_it_writes_leaves_nothing_behind_a_removal(machine: Machine, moment: int) -> None:
    def run() -> None:
        machine.claim(folders=[str(machine.root / "etc/conf.d")])
        machine.write("etc/conf.d/a")
        machine.write("etc/conf.d/a", "newer\n")

    killed_at(moment, run)
    machine.remove()
    assert machine.tree() in MAY_STAY


@pytest.mark.parametrize("moment", range(1, 32))
def test_a_run_that_is_killed_while_it_writes_is_finished_by_the_next(machine: Machine, moment: int) -> None:
    def run() -> None:
        machine.claim(folders=[str(machine.root / "etc/conf.d")])
        machine.write("etc/conf.d/a")

    killed_at(moment, run)
    run()
    assert set(machine.tree()) == {"etc/conf.d", "etc/conf.d/a", "etc/muster", "etc/muster/x.json"}
    machine.remove()
    assert machine.tree() in MAY_STAY


@pytest.mark.parametrize("moment", range(1, 32))
def test_a_removal_that_is_killed_is_completed_by_the_next(machine: Machine, moment: int) -> None:
    data = machine.root / "data"
    machine.claim(folders=[str(machine.root / "etc/conf.d")], contents=[{"path": str(data), "names": ["db"]}])
    machine.write("etc/conf.d/a")
    (data / "db/inner").mkdir(parents=True)
    (data / "db/inner/x").write_text("x")
    killed_at(moment, lambda: machine.remove(delete_data=True))
    machine.remove(delete_data=True)
    assert machine.tree() in MAY_STAY


def test_what_a_killed_run_was_writing_goes(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.write()
    (machine.root / "etc" / f"{files.draft_prefix(Path('a'))}x1").write_text("canary-key")
    (machine.root / "etc/muster" / f"{files.draft_prefix(Path('x.json'))}x1").write_text("{")
    machine.remove()
    assert machine.tree() == {}


def test_a_file_that_others_put_in_the_place_after_a_killed_run_is_kept(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_args: t.Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(host_file, "_write", killed)
        with pytest.raises(Killed):
            machine.write()
    (machine.root / "etc/a").write_text("theirs\n")
    machine.remove()
    assert machine.tree()["etc/a"] == "theirs\n"


# Folders, and what programs put into them


def test_a_folder_goes_when_it_is_empty_and_files_of_others_in_it_are_named(machine: Machine) -> None:
    conf = machine.root / "etc/conf.d"
    machine.claim(folders=[str(conf)])
    machine.write("etc/conf.d/a")
    (conf / "10-theirs").write_text("theirs\n")
    machine.remove()
    assert machine.warnings == [f"Kept 10-theirs in {conf}: Muster did not create it."]
    assert machine.tree() == {"etc/conf.d": "folder", "etc/conf.d/10-theirs": "theirs\n"}


def test_a_folder_that_was_there_stays(machine: Machine) -> None:
    conf = machine.root / "etc/conf.d"
    conf.mkdir()
    machine.claim(folders=[str(conf)])
    machine.write("etc/conf.d/a")
    machine.remove()
    assert machine.tree() == {"etc/conf.d": "folder"}


def filled(machine: Machine, *, before: t.Callable[[Path], object] = lambda _data: None) -> Path:
    """A folder in which a program of the package puts a database, after it was recorded."""
    data = machine.root / "data"
    before(data)
    machine.claim(packages=["p"], contents=[{"path": str(data), "names": ["db", "*.log"], "package": "p"}])
    machine.packages.add("p")
    (data / "db/inner").mkdir(parents=True, exist_ok=True)
    (data / "db/inner/x").write_text("x")
    (data / "a.log").write_text("x")
    return data


def test_data_stay_unless_they_are_to_be_deleted(machine: Machine) -> None:
    data = filled(machine)
    found = machine.remove()
    assert found["removed"] == ["package p"]
    assert found["kept"] == [f"a.log, db in {data}: it holds data; delete_data: true deletes it"]
    assert machine.warnings == []
    assert (data / "db/inner/x").exists()
    assert machine.remove(delete_data=True, check=True)["changed"]
    machine.remove(delete_data=True)
    assert machine.tree() == {}


def test_data_that_were_there_are_not_ours_nor_what_comes_to_them(machine: Machine) -> None:
    def before(data: Path) -> None:
        data.mkdir()
        (data / "theirs").write_text("x")

    data = filled(machine, before=before)
    machine.remove(delete_data=True)
    assert machine.packages == set()
    assert {path.name for path in data.iterdir()} == {"theirs", "db", "a.log"}


def test_files_of_others_among_the_data_stay(machine: Machine) -> None:
    data = filled(machine)
    (data / "notes.txt").write_text("theirs")
    machine.remove(delete_data=True)
    assert machine.tree() == {"data": "folder", "data/notes.txt": "theirs"}
    assert machine.warnings == [f"Kept notes.txt in {data}: Muster did not create it."]


def test_an_empty_disk_that_was_mounted_stays_and_its_data_go(machine: Machine) -> None:
    data = filled(machine, before=lambda data: (data / "lost+found").mkdir(parents=True))
    machine.mounts = [data]
    machine.remove(delete_data=True)
    assert machine.tree() == {"data": "folder", "data/lost+found": "folder"}


def test_a_disk_that_was_mounted_later_cannot_be_judged(machine: Machine) -> None:
    data = filled(machine)
    machine.mounts = [data]
    assert machine.remove(delete_data=True)["removed"] == ["package p"]
    assert (data / "db/inner/x").exists()
    assert "a disk was mounted there after Muster recorded the folder" in machine.warnings[0]


def test_what_is_mounted_among_the_data_is_not_entered(machine: Machine) -> None:
    data = filled(machine)
    theirs = data / "db/mounted"
    theirs.mkdir()
    (theirs / "x").write_text("theirs")
    machine.mounts = [theirs]
    found = machine.remove(delete_data=True)
    assert machine.tree() == {
        "data": "folder",
        "data/db": "folder",
        "data/db/mounted": "folder",
        "data/db/mounted/x": "theirs",
        "etc/muster": "folder",
        "etc/muster/x.json": machine.record.read_text(),
    }
    assert f"{theirs}: something is mounted there" in found["kept"]
    machine.mounts = []
    machine.remove(delete_data=True)
    assert machine.tree() == {}


def test_links_among_the_data_go_and_lead_nowhere(machine: Machine) -> None:
    data = filled(machine)
    theirs = machine.root / "theirs"
    theirs.mkdir()
    (theirs / "x").write_text("theirs")
    (data / "db/link").symlink_to(theirs)
    machine.remove(delete_data=True)
    assert machine.tree() == {"theirs": "folder", "theirs/x": "theirs"}


def test_a_folder_that_became_a_link_is_kept(machine: Machine) -> None:
    data = filled(machine)
    shutil.move(data, machine.root / "disk")
    data.symlink_to(machine.root / "disk")
    machine.remove(delete_data=True)
    assert (machine.root / "disk/db/inner/x").exists()
    assert data.is_symlink()
    assert "symbolic link" in machine.warnings[0]


@pytest.mark.parametrize("above", ["etc/conf.d", "etc/conf.d/inner"])
def test_files_in_a_folder_that_became_a_link_are_those_of_others(machine: Machine, above: str) -> None:
    """Another installation may have the same file, with the same content."""
    folders, theirs = [machine.root / "etc/conf.d", machine.root / "etc/conf.d/inner"], machine.root / "theirs"
    machine.claim(folders=list(map(str, folders)), files=[str(folders[1] / "of-a-program")])
    machine.write("etc/conf.d/inner/a")
    (folders[1] / "of-a-program").write_text("theirs")
    shutil.move(machine.root / above, theirs)
    (machine.root / above).symlink_to(theirs)
    before = machine.tree()
    machine.remove(delete_data=True)
    assert {name: what for name, what in machine.tree().items() if name in before} == before
    assert len([text for text in machine.warnings if "symbolic link" in text]) == 2


def test_what_cannot_be_deleted_does_not_keep_the_rest(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    data = filled(machine)
    machine.write("etc/z")
    machine.write("etc/b")
    real = Path.unlink

    def unlink(path: Path, *, missing_ok: bool = False) -> None:
        if path.name == "b":
            raise OSError(30, "Read-only file system")
        real(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)
    found = machine.remove(delete_data=True)
    assert f"file {machine.root}/etc/b: Read-only file system" in found["kept"]
    assert not (machine.root / "etc/z").exists()
    assert not data.exists()


# Packages and tables


def test_a_package_and_a_table_of_others_stay(machine: Machine) -> None:
    machine.packages, machine.tables = {"p"}, {"t"}
    assert not machine.claim(packages=["p"], nft_tables=["inet t"])["changed"]
    machine.remove(delete_data=True)
    assert (machine.packages, machine.tables) == ({"p"}, {"t"})
    assert machine.tree() == {}


def test_a_package_and_a_table_of_ours_go(machine: Machine) -> None:
    assert machine.claim(packages=["p"], nft_tables=["inet t"])["packages"] == ["p"]
    assert not machine.claim(packages=["p"])["changed"]
    machine.packages, machine.tables = {"p", "q"}, {"t", "u"}
    assert machine.remove()["removed"] == ["package p", "nftables table inet t"]
    assert (machine.packages, machine.tables) == ({"q"}, {"u"})
    assert machine.tree() == {}


def test_a_package_that_others_depend_on_stays_with_its_data(machine: Machine) -> None:
    data = filled(machine)
    machine.dependents = {"theirs"}
    machine.remove(delete_data=True)
    assert machine.packages == {"p"}
    assert (data / "db/inner/x").exists()
    assert "theirs depends on it and would be removed, too" in machine.warnings[0]
    assert "is used by the package p, which stays" in machine.warnings[1]


def test_data_of_a_package_that_others_installed_meanwhile_stay(machine: Machine) -> None:
    data = filled(machine)
    machine.remove()
    machine.packages.add("p")
    machine.remove(delete_data=True)
    assert machine.packages == {"p"}
    assert (data / "db/inner/x").exists()


@pytest.mark.parametrize("before", [True, False])
def test_a_unit_is_disabled_again_if_it_was(machine: Machine, before: bool) -> None:
    machine.enabled = {"p"} if before else set()
    machine.packages = {"p"}
    machine.claim(packages=["p"], units=["p"])
    machine.enabled.add("p")
    assert machine.remove()["removed"] == ([] if before else ["enabled unit p"])
    assert machine.enabled == ({"p"} if before else set())


def test_a_script_that_a_removed_package_left_is_not_enabled(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a removal, which does not purge: what systemctl 252 says of /etc/init.d/rabbitmq-server."""
    said = (
        "rabbitmq-server.service is not a native service, redirecting to "
        "systemd-sysv-install.\nExecuting: /lib/systemd/systemd-sysv-install is-enabled rabbitmq-server"
    )

    def command(argv: t.Sequence[str], causes: Causes = (), **more: t.Any) -> str:
        if argv[:2] == ["systemctl", "is-enabled"]:
            raise failure(argv, 1, said, causes)
        return machine.command(argv, causes, **more)

    monkeypatch.setattr(host, "run", command)
    assert machine.claim(packages=["rabbitmq-server"], units=["rabbitmq-server"])["changed"]


def test_the_unit_of_a_package_that_stays_goes_on(machine: Machine) -> None:
    machine.claim(packages=["p"], units=["p"])
    machine.packages, machine.enabled, machine.dependents = {"p"}, {"p"}, {"theirs"}
    machine.remove()
    assert machine.enabled == {"p"}


@pytest.mark.parametrize("said", ["Access denied", "Connection timed out"])
def test_a_unit_that_cannot_be_asked_about_ends_the_run(machine: Machine, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    def run(argv: t.Sequence[str], causes: Causes = (), **_more: t.Any) -> str:
        raise failure(argv, 1, said, causes)

    monkeypatch.setattr(host, "run", run)
    for kind in host_things.KINDS:
        with pytest.raises(CommandFailed, match=said):
            machine.claim(**{kind: ["inet x"]})
    assert machine.tree() == {}


def test_a_package_that_others_removed_is_forgotten(machine: Machine) -> None:
    machine.claim(packages=["p"])
    assert not machine.remove()["changed"]
    machine.packages.add("p")
    machine.remove()
    assert machine.packages == {"p"}


def test_mount_points_are_those_of_the_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(created, "MOUNTS", tmp_path / "mountinfo")
    rows = b"30 1 0:1 / /srv/a\\040disk\\011\\303\\274 rw - ext4 /dev/x rw\n31 1 0:2 / / rw - ext4 /dev/y rw\n"
    rows += b"32 1 0:3 / /\xff\xc3\xbc rw - ext4 /dev/z rw\n"
    (tmp_path / "mountinfo").write_bytes(rows)
    assert created.mount_points() == {"/srv/a disk\tü", "/", "/\udcffü"}


# Two runs at once


def test_two_runs_at_once_record_both(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from ansible_collections.muster.ml.plugins.module_utils._core import created
record, mine = Path(sys.argv[1]), Path(sys.argv[2])
for number in range(20):
    with created.opened(record, check=False) as found:
        created.note_file(found, mine.with_name(f"{mine.name}{number}"), b"x")
        created.save(record, found)
"""
    roots = [path for path in sys.path if (Path(path) / "ansible_collections/muster").is_dir()]
    given = [[sys.executable, "-c", code, str(tmp_path / "etc/x.json"), str(tmp_path / name)] for name in "ab"]
    running = [subprocess.Popen(argv, env={**os.environ, "PYTHONPATH": os.pathsep.join(roots)}) for argv in given]
    assert [one.wait(60) for one in running] == [0, 0]
    assert len(created.read(tmp_path / "etc/x.json").files) == 40
