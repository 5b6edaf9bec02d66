# SPDX-License-Identifier: GPL-3.0-or-later
"""Images: when two recipes are one, what umoci is told, what a layer holds, which nodes get it."""

import hashlib
import json
import os
import tarfile
import typing as t
import zipfile
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import CommandFailed, InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext
from ansible_collections.muster.ml.plugins.module_utils._local import oci_layers, oci_nodes
from ansible_collections.muster.ml.plugins.module_utils._local.gobuild import GoBuild
from ansible_collections.muster.ml.plugins.module_utils._local.oci import OciImage, debian_key, mirrors, source_lines
from ansible_collections.muster.ml.plugins.modules import local_image

CONFIG: dict[str, t.Any] = {
    "entrypoint": ["/bin/x"],
    "cmd": [],
    "env": {},
    "user": "1000:1000",
    "working_dir": "/",
    "exposed_ports": [],
    "labels": {},
}


def recipe(**parts: t.Any) -> dict[str, t.Any]:
    nothing: dict[str, t.Any] = {"architectures": [], "debian": None, "wheels": [], "programs": []}
    return {**nothing, "files": [], "links": [], **parts, "config": {**CONFIG, **parts.get("config", {})}}


def image(cache: Path, name: str = "muster.local/x:1", **parts: t.Any) -> OciImage:
    return OciImage(name=name, recipe=recipe(**parts), cache_dir=cache)


def program(pins: Path) -> dict[str, t.Any]:
    return {"name": "x", "module_dir": str(pins), "package": "example.org/x", "ldflags": "", "dest": "/bin/x"}


@pytest.mark.parametrize("name", ["nats", "muster.local/nats", "muster.local/NATS:1", "muster.local/nats:", ""])
def test_a_name_without_host_or_tag_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="not a whole image name"):
        image(tmp_path, name)


def test_a_processor_without_wheels_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="amd64 only, and this machine is arm64"):
        OciImage(name="muster.local/x:1", recipe=recipe(architectures=["amd64"]), cache_dir=tmp_path, architecture="arm64")


@pytest.mark.parametrize("part", ["programs", "files", "links"])
@pytest.mark.parametrize("dest", ["sh", "", "/../etc/passwd"])
def test_what_lies_elsewhere_than_in_the_image_is_refused(tmp_path: Path, pins: Path, part: str, dest: str) -> None:
    with pytest.raises(InvalidInput, match=f"x:1: dest '{dest}' of {part} is no path in the image"):
        image(tmp_path, **{part: [{**program(pins), "dest": dest}]})


@pytest.mark.parametrize("row", [{"dest": "usr/lib", "members": {}}, {"dest": "", "members": {"a.so": "/lib/../../a.so"}}])
def test_what_wheels_bring_lies_in_the_image(tmp_path: Path, row: dict[str, t.Any]) -> None:
    with pytest.raises(InvalidInput, match="of wheels is no path in the image"):
        image(tmp_path, wheels=[row])


def test_wheels_may_want_a_newer_python_than_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MaxText requires Python 3.12, which its image has: pip of a machine with 3.11 refused to unpack it."""
    wheel, requirements, about = tmp_path / "newer-1.0-py3-none-any.whl", tmp_path / "newer.txt", "newer-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("newer.py", "")
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: newer\nVersion: 1.0\nRequires-Python: >=3.99\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    requirements.write_text(f"newer==1.0 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    row = {"requirements": str(requirements), "python_version": "3.99", "dest": "/opt", "members": {}}
    oci_layers.install_wheels(row, "amd64", tmp_path / "root")
    assert (tmp_path / "root/opt/newer.py").is_file()


def test_the_key_follows_everything_that_goes_into_an_image(tmp_path: Path, pins: Path) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("a==1 --hash=sha256:1\n")
    parts: dict[str, t.Any] = {
        "programs": [program(pins)],
        "wheels": [{"requirements": str(requirements), "python_version": "3.9", "dest": "/opt", "members": {}}],
    }
    first = image(tmp_path, **parts).key()
    assert image(tmp_path, **parts).key() == first
    seen = {first, image(tmp_path, **parts, config={"user": "0:0"}).key(), image(tmp_path, "a/b:1", **parts).key()}
    requirements.write_text("a==2 --hash=sha256:2\n")
    seen.add(image(tmp_path, **parts).key())
    (pins / "go.sum").write_text("x v1 h1:b=\n")
    seen.add(image(tmp_path, **parts).key())
    assert len(seen) == 5


def test_the_key_does_not_follow_where_the_recipe_lies(tmp_path: Path, pins: Path) -> None:
    other = tmp_path / "elsewhere"
    pins_copy = other / "go"
    pins_copy.mkdir(parents=True)
    for name in ("go.mod", "go.sum"):
        (pins_copy / name).write_bytes((pins / name).read_bytes())
    one = image(tmp_path / "cache", programs=[program(pins)])
    assert one.key() == image(other / "cache", programs=[program(pins_copy)]).key()


def test_the_entry_point_is_always_set(tmp_path: Path) -> None:
    flags = image(tmp_path, config={"entrypoint": ["/usr/bin/env", "-S"], "env": {"A": "1"}}).config_flags()
    pairs = list(zip(flags[::2], flags[1::2], strict=True))
    assert [value for flag, value in pairs if flag == "--config.entrypoint"] == ["/usr/bin/env", "-S"]
    assert ("--config.env", "A=1") in pairs
    assert any(flag == "--config.env" and value.startswith("PATH=/") for flag, value in pairs)
    assert ("--config.user", "1000:1000") in pairs


DEB822 = """Types: deb
# http://snapshot.example.org/archive
URIs: http://mirror.example.org/debian
Suites: bookworm
Types: deb
URIs: http://mirror.example.org/debian-security/
"""
ONE_LINE = """# deb http://old.example.org/debian x main
deb [arch=amd64] http://packages.example.org/vendor stable main
deb http://mirror.example.org/debian/ bookworm main
deb-src http://src.example.org/debian bookworm main
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (DEB822, ("http://mirror.example.org/debian", "http://mirror.example.org/debian-security/")),
        (ONE_LINE, ("http://mirror.example.org/debian/", "")),
        ("URIs: http://archive.example.org/ubuntu\n", ("", "")),
        ("", ("", "")),
    ],
)
def test_the_mirror_is_that_of_the_host(text: str, found: tuple[str, str]) -> None:
    assert mirrors(text) == found


def test_without_a_mirror_the_builder_takes_its_own_default() -> None:
    assert source_lines("bullseye", "", "http://s/") == []
    assert source_lines("bullseye", "http://m/", "") == ["deb http://m/ bullseye main"]
    assert source_lines("bullseye", "http://m/", "http://s/")[1] == "deb http://s/ bullseye-security main"


def test_another_mirror_of_the_same_suite_gives_the_same_root_file_system() -> None:
    asked = {"suite": "bullseye", "packages": ["python3"], "variant": "minbase"}
    one, other = (debian_key(asked, source_lines("bullseye", m, ""), "amd64") for m in ("http://a/d", "http://b/d"))
    assert one == other
    assert one != debian_key({**asked, "packages": ["python3=3.9"]}, source_lines("bullseye", "http://a/d", ""), "amd64")


def names(layer: Path) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(layer) as archive:
        return {entry.name: entry for entry in archive.getmembers()}


def test_a_layer_is_the_same_bytes_whoever_packs_it_and_when(tmp_path: Path) -> None:
    layers = []
    for number, stamp in enumerate((1, 999_999_999)):
        root = tmp_path / str(number)
        oci_layers.write_text(root, "/etc/app.conf", "x\n", 0o640)
        oci_layers.write_text(root, "/workspace/", "", 0o777)
        oci_layers.path_in_image(root, "/usr/local/bin/app").symlink_to("/app")
        os.utime(root / "etc/app.conf", (stamp, stamp))
        layers.append(tmp_path / f"{number}.tar")
        oci_layers.write_layer(root, layers[-1])
    assert layers[0].read_bytes() == layers[1].read_bytes()
    found = names(layers[0])
    assert (found["etc/app.conf"].mode, found["etc/app.conf"].uid) == (0o640, 0)
    assert (found["workspace"].isdir(), found["workspace"].mode) == (True, 0o777)
    assert found["usr/local/bin/app"].linkname == "/app"
    # Debian's own folders keep what they are: /bin may be a link there.
    assert not {"usr", "etc", "bin"} & set(found)


def test_a_member_of_a_wheel_is_taken_out(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "stats-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("stats/fair.csv", "a,b\n")
    oci_layers.take_members({"stats/fair.csv": "/opt/data/fair.csv"}, tmp_path, tmp_path / "root")
    assert (tmp_path / "root/opt/data/fair.csv").read_text() == "a,b\n"
    with pytest.raises(InvalidInput, match=r"gone\.csv"):
        oci_layers.take_members({"stats/gone.csv": "/x"}, tmp_path, tmp_path / "root")


def test_console_scripts_start_the_python_of_the_image() -> None:
    assert oci_layers.image_script("#!/home/me/.venv/bin/python\nimport x\n") == "#!/usr/bin/env python3\nimport x\n"
    assert oci_layers.image_script("import x\n") == "import x\n"


def test_a_debian_root_is_made_without_the_hosts_variables_of_python() -> None:
    host = {"PYTHONPYCACHEPREFIX": "/x/pycache", "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/x"}
    assert oci_layers.without_python_settings(host) == {"PYTHONPYCACHEPREFIX": "", "PYTHONDONTWRITEBYTECODE": ""}


class Programs:
    """Stands in for the programs of the host: notes what is run and does what they would leave behind."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, images: str = "") -> None:
        self.ran: list[list[str]] = []
        self.images = images
        for module in (oci_layers, oci_nodes):
            monkeypatch.setattr(module, "run", self.run)
        monkeypatch.setattr(oci_nodes.gobuild, "build", self.build)

    def run(self, argv: t.Sequence[str], **_options: t.Any) -> str:
        self.ran.append([str(word) for word in argv])
        if argv[1:2] == ["init"]:
            layout = Path(argv[3])
            layout.mkdir()
            (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [{"digest": "sha256:1"}]}))
        return self.images if argv[-2:] == ["images", "list"] else ""

    def build(self, desired: GoBuild) -> Path:
        desired.path.parent.mkdir(parents=True, exist_ok=True)
        desired.path.write_text(desired.name)
        return desired.path

    def verbs(self) -> list[str]:
        return [" ".join(argv[argv.index("images") :][:2]) for argv in self.ran if "images" in argv]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two nodes of a local cluster run."""
    for node in ("c-1", "c-2"):
        (tmp_path / "run/c" / node).mkdir(parents=True)
        (tmp_path / "run/c" / node / "containerd.sock").touch()
    monkeypatch.setattr(oci_nodes, "RUN_ROOT", tmp_path / "run")
    return tmp_path


def context(tmp_path: Path, pins: Path, *, check: bool = False, **params: t.Any) -> HostContext:
    given = {"name": "muster.local/x:1", "state": "present", "cluster_name": "c", "note": "1 of 1", **params}
    given |= {"cache_dir": str(tmp_path / "cache"), "builder": str(pins), "recipe": recipe(programs=[program(pins)])}
    return HostContext(params=given, check=check)


# As ctr 2.3.7 of containerd prints it, with blanks in place of its columns.
def table(*rows: tuple[str, str], labels: str = "io.cri-containerd.image=managed,io.cri-containerd.pinned=pinned") -> str:
    manifest = "application/vnd.oci.image.manifest.v1+json"
    return "REF TYPE DIGEST SIZE PLATFORMS LABELS\n" + "".join(
        f"{name} {manifest} {digest} 31.8 MiB linux/amd64 {labels}\n" for name, digest in rows
    )


def test_a_missing_image_is_built_once_and_imported_everywhere(cluster: Path, pins: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Programs(monkeypatch, table(("muster.local/x:1", "sha256:old")))
    result = local_image.execute(context(cluster, pins))
    assert (result["changed"], result["nodes"]) == (True, ["c-1", "c-2"])
    assert programs.verbs() == ["images list", "images list", "images import", "images import"]
    with tarfile.open(result["archive"]) as archive:
        index = json.load(archive.extractfile("./index.json"))  # type: ignore[arg-type]
    found = [one["annotations"]["io.containerd.image.name"] for one in index["manifests"]]
    assert found[0] == "muster.local/x:1"
    assert found[1].startswith("muster.local/x:recipe-")
    # Another run finds the archive and builds nothing.
    programs.ran.clear()
    assert local_image.execute(context(cluster, pins))["changed"]
    assert not [argv for argv in programs.ran if "images" not in argv]


def test_a_node_that_has_it_is_only_asked(cluster: Path, pins: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desired = local_image.desired(context(cluster, pins).params)
    programs = Programs(monkeypatch, table((desired.name, "sha256:1"), (desired.mark, "sha256:1")))
    result = local_image.execute(context(cluster, pins))
    assert (result["changed"], result["nodes"]) == (False, [])
    assert programs.verbs() == ["images list", "images list"]
    assert not desired.archive.exists(), "the cache is not needed where nobody needs the image"


def test_an_image_that_the_kubelet_may_delete_is_imported_again(cluster: Path, pins: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desired = local_image.desired(context(cluster, pins).params)
    names = ((desired.name, "sha256:1"), (desired.mark, "sha256:1"))
    programs = Programs(monkeypatch, table(*names, labels="io.cri-containerd.image=managed"))
    assert local_image.execute(context(cluster, pins))["nodes"] == ["c-1", "c-2"]
    (imported, _second) = [argv for argv in programs.ran if "import" in argv]
    assert imported[-3:-1] == ["--label", "io.cri-containerd.pinned=pinned"]


def test_an_image_under_the_name_but_not_by_the_recipe_is_replaced(cluster: Path, pins: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desired = local_image.desired(context(cluster, pins).params)
    Programs(monkeypatch, table((desired.name, "sha256:2"), (desired.mark, "sha256:1")))
    assert local_image.execute(context(cluster, pins))["nodes"] == ["c-1", "c-2"]


def test_check_mode_builds_and_imports_nothing(cluster: Path, pins: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Programs(monkeypatch)
    result = local_image.execute(context(cluster, pins, check=True))
    assert (result["changed"], result["nodes"]) == (True, ["c-1", "c-2"])
    assert programs.verbs() == ["images list", "images list"]
    assert not (cluster / "cache").exists()


def test_absent_removes_every_name_of_the_image(cluster: Path, pins: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    have = table(("muster.local/x:1", "a"), ("muster.local/x:recipe-0", "a"), ("muster.local/xy:1", "b"))
    programs = Programs(monkeypatch, have)
    assert local_image.execute(context(cluster, pins, state="absent"))["changed"]
    removed = [argv[argv.index("remove") + 2 :] for argv in programs.ran if "remove" in argv]
    assert removed == [["muster.local/x:1", "muster.local/x:recipe-0"]] * 2
    programs.images = table(("muster.local/xy:1", "b"))
    assert not local_image.execute(context(cluster, pins, state="absent"))["changed"]


def test_a_cluster_that_does_not_run_is_named(tmp_path: Path, pins: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oci_nodes, "RUN_ROOT", tmp_path)
    with pytest.raises(InvalidInput, match="No node of a local cluster 'c' runs"):
        local_image.execute(context(tmp_path, pins))


def test_without_a_cluster_it_builds_only(tmp_path: Path, pins: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Programs(monkeypatch)
    assert local_image.execute(context(tmp_path, pins, cluster_name=""))["changed"]
    assert programs.verbs() == []
    assert not local_image.execute(context(tmp_path, pins, cluster_name=""))["changed"]


def test_a_failed_build_leaves_no_half_image(tmp_path: Path, pins: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Programs(monkeypatch)

    def fail(argv: t.Sequence[str], **_options: t.Any) -> str:
        raise CommandFailed(f"{argv[0]} exited with 1: no space left on device")

    monkeypatch.setattr(oci_nodes, "run", fail)
    with pytest.raises(CommandFailed, match="no space left"):
        local_image.execute(context(tmp_path, pins, cluster_name=""))
    assert list((tmp_path / "cache/images").iterdir()) == []


def test_a_failed_debian_names_the_suite_and_what_to_look_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(argv: t.Sequence[str], **_options: t.Any) -> str:
        raise CommandFailed(f"{argv[0]} is not installed.")

    monkeypatch.setattr(oci_layers, "run", fail)
    debian = {"suite": "bullseye", "packages": ["python3"], "variant": "minbase", "mirror": "", "security_mirror": ""}
    with pytest.raises(CommandFailed, match=r"Debian bullseye.*mmdebstrap is not installed") as error:
        oci_layers.debian_layer(image(tmp_path, debian=debian), lambda _message: None)
    assert "local_images_debian_mirror" in str(error.value)
    assert list((tmp_path / "debian").iterdir()) == []
