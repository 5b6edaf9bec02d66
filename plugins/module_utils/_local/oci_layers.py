# SPDX-License-Identifier: GPL-3.0-or-later
"""Layers of an image: a Debian root file system, and one with everything else."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
import tarfile
import tempfile
import typing as t
import zipfile
from pathlib import Path, PurePosixPath

from .._core.errors import CommandFailed, InvalidInput
from . import gobuild
from .host import run
from .oci import OciImage, debian_key, mirrors, source_lines
from .once import making

APT_FILES = ("/etc/apt/sources.list", "/etc/apt/sources.list.d/*.sources", "/etc/apt/sources.list.d/*.list")
# Nothing in a container reads these files, and they are a third of all.
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")
PLATFORMS = {"amd64": "x86_64", "arm64": "aarch64"}
# A pinned hash names one wheel, so that these are wide does not choose another one. An image's glibc has to be as new as its wheels want.
WHEELS = ("manylinux2014", "manylinux_2_27", "manylinux_2_28", "manylinux_2_35")

Progress = t.Callable[[str], None]


def build_layers(image: OciImage, work: Path, progress: Progress) -> list[Path]:
    """Tar files, the lowest layer first."""
    layers = []
    if image.recipe["debian"]:
        layers.append(debian_layer(image, progress))
    for row in image.recipe["wheels"]:
        progress(f"{image.name}: Python packages of {Path(row['requirements']).name}")
        install_wheels(row, image.architecture, work)
    for program, dest in image.programs():
        path = gobuild.ensure(program, f"{image.name}: building {program.name}", progress)
        copy_file(work, dest, path, 0o755)
    for row in image.recipe["files"]:
        write_text(work, row["dest"], row["content"], int(row["mode"], 8))
    for row in image.recipe["links"]:
        path_in_image(work, row["dest"]).symlink_to(row["target"])
    layer = work.with_suffix(".layer.tar")
    write_layer(work, layer)
    return [*layers, layer]


def apt_sources() -> str:
    found = [path for pattern in APT_FILES for path in sorted(Path("/").glob(pattern.lstrip("/")))]
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in found)


def debian_layer(image: OciImage, progress: Progress) -> Path:
    """A Debian root file system, built with mmdebstrap once per suite and set of packages."""
    debian = image.recipe["debian"]
    main, security = (debian["mirror"], debian["security_mirror"]) if debian["mirror"] else mirrors(apt_sources())
    sources = source_lines(debian["suite"], main, security)
    asked = {name: debian[name] for name in ("suite", "packages", "variant")}
    target = image.cache_dir / "debian" / f"{debian_key(asked, sources, image.architecture)}.tar"
    with making(target) as missing:
        if missing:
            progress(f"{image.name}: Debian {debian['suite']} with {', '.join(debian['packages'])}")
            _bootstrap(image, sources, target)
    return target


def _bootstrap(image: OciImage, sources: t.Sequence[str], target: Path) -> None:
    debian = image.recipe["debian"]
    draft = target.with_name(f".{target.stem}.{os.getpid()}.tar")
    try:
        run(
            [*debian_argv(debian, image.architecture), debian["suite"], str(draft), *sources],
            env={"SOURCE_DATE_EPOCH": "1", **without_python_settings(os.environ)},
        )
        draft.replace(target)
    except CommandFailed as exc:
        raise CommandFailed(
            f"{image.name}: making a Debian {debian['suite']} root file system failed: {exc.message}",
            hint="See that mmdebstrap and debian-archive-keyring are installed and that local_images_debian_mirror has this suite.",
        ) from exc
    finally:
        draft.unlink(missing_ok=True)


def without_python_settings(environment: t.Mapping[str, str]) -> dict[str, str]:
    """Python's variables of this host, emptied: packages compile their bytecode in the new file system, and where these say."""
    return dict.fromkeys((name for name in environment if name.startswith("PYTHON")), "")


def debian_argv(debian: t.Mapping[str, t.Any], architecture: str) -> list[str]:
    argv = ["mmdebstrap", "--quiet", f"--variant={debian['variant']}", f"--architectures={architecture}"]
    # An incomplete root file system is discarded anyway, so dpkg need not flush every file to the disk.
    argv += [f"--include={','.join(debian['packages'])}", '--aptopt=APT::Install-Recommends "false"', "--dpkgopt=force-unsafe-io"]
    return argv + [f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT]


def python_with_pip() -> str:
    """A Python of this host that has pip; it only unpacks wheels, so its version does not matter."""
    candidates: list[str] = [sys.executable, getattr(sys, "_base_executable", ""), shutil.which("python3") or ""]
    for candidate in dict.fromkeys(one for one in candidates if one):
        with contextlib.suppress(CommandFailed):
            run([candidate, "-m", "pip", "--version"])
            return candidate
    raise CommandFailed("No Python with pip was found on this host.", hint="Install pip (Debian: python3-pip) and run again.")


def pip_argv(row: t.Mapping[str, t.Any], architecture: str, command: list[str]) -> list[str]:
    """The command: only wheels, only with pinned hashes, for the image's Python and not for this one."""
    platforms = [f"--platform={wheel}_{PLATFORMS.get(architecture, architecture)}" for wheel in WHEELS]
    target = ["--python-version", row["python_version"], "--implementation", "cp", *platforms]
    pinned = ["--ignore-requires-python", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--requirement", row["requirements"]]
    return [python_with_pip(), "-m", "pip", "--quiet", "--no-input", *command, *target, *pinned]


def install_wheels(row: t.Mapping[str, t.Any], architecture: str, root: Path) -> None:
    """Install a file of requirements below ``dest``, or only take single files out of the wheels."""
    with tempfile.TemporaryDirectory(dir=root.parent) as folder:
        if row["members"]:
            run(pip_argv(row, architecture, ["download", "--dest", folder]))
            take_members(row["members"], Path(folder), root)
            return
        target = Path(folder) / "packages"
        run(pip_argv(row, architecture, ["install", "--no-compile", "--target", str(target)]))
        scripts = target / "bin"
        for script in sorted(scripts.iterdir()) if scripts.is_dir() else ():
            write_text(root, f"/usr/local/bin/{script.name}", image_script(script.read_text(encoding="utf-8")), 0o755)
        shutil.rmtree(scripts, ignore_errors=True)
        shutil.copytree(target, path_in_image(root, row["dest"]), dirs_exist_ok=True)


def image_script(text: str) -> str:
    """Make a console script start the image's Python instead of the one that installed it."""
    first, newline, rest = text.partition("\n")
    return "#!/usr/bin/env python3" + newline + rest if first.startswith("#!") else text


def take_members(members: t.Mapping[str, str], folder: Path, root: Path) -> None:
    for member, dest in members.items():
        for wheel in sorted(folder.glob("*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                if member in archive.namelist():
                    path = path_in_image(root, dest)
                    path.write_bytes(archive.read(member))
                    path.chmod(0o755 if archive.getinfo(member).external_attr >> 16 & 0o100 else 0o644)
                    break
        else:
            raise InvalidInput(f"No wheel of the requirements has the file {member}.", hint="Correct the recipe's members.")


def path_in_image(root: Path, dest: str) -> Path:
    """The path of a file of the image below ROOT, in a folder that exists."""
    path = root / dest.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def copy_file(root: Path, dest: str, source: Path, mode: int) -> None:
    path = path_in_image(root, dest)
    shutil.copyfile(source, path)
    path.chmod(mode)


def write_text(root: Path, dest: str, content: str, mode: int) -> None:
    """Write a file; a name that ends in a slash is a folder."""
    path = path_in_image(root, dest)
    if dest.endswith("/"):
        path.mkdir(exist_ok=True)
    else:
        path.write_text(content, encoding="utf-8")
    path.chmod(mode)


def write_layer(root: Path, layer: Path) -> None:
    """The same tree gives the same bytes: sorted, owned by root, without times.

    Folders that every image has are left out, so that the ones below keep their modes and, in Debian, their links.
    """
    with tarfile.open(layer, "w", format=tarfile.GNU_FORMAT) as archive:
        for path in sorted(root.rglob("*")):
            name = PurePosixPath(path.relative_to(root))
            if path.is_dir() and not path.is_symlink() and str(name) in {"usr", "usr/bin", "bin", "etc", "lib", "tmp", "var"}:
                continue
            entry = archive.gettarinfo(str(path), arcname=str(name))
            entry.uid = entry.gid = entry.mtime = 0
            entry.uname = entry.gname = ""
            if entry.isreg():
                with path.open("rb") as data:
                    archive.addfile(entry, data)
            else:
                archive.addfile(entry, io.BytesIO())
