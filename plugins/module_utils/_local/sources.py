# SPDX-License-Identifier: GPL-3.0-or-later
"""Choose the source of each program and image of Kubernetes: released files and images, or Go modules."""

from __future__ import annotations

import dataclasses
import typing as t
from pathlib import Path

from .._core.clock import Clock
from .._core.errors import InvalidInput
from . import download, programs, pull
from .gobuild import architecture

Row = dict[str, t.Any]
BUILD_KEYS = ("name", "module_dir", "package", "ldflags", "tags")
# The images that kubeadm lists. Without released ones they are made from programs of the same names, and pause from catatonit.
IMAGES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "etcd", "coredns", "pause")
# Default base URLs: released files of Kubernetes, those of projects on GitHub, and the registry of Kubernetes.
URLS = {"kubernetes": "https://dl.k8s.io", "github": "https://github.com", "registry": "https://registry.k8s.io"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sources:
    """The choices of the user. ``table``: programs with their Go modules; ``files``: released files, as in the role's vars/main.yml."""

    table: list[Row]
    files: list[Row]
    urls: t.Mapping[str, str]
    source: str
    cache_dir: Path
    version: str
    clock: Clock

    def rows(self, linked: t.Mapping[str, str]) -> tuple[list[Row], str]:
        """Each program or image with its ``way`` and its ``path``, and why released ones are not used although ``auto`` prefers them.

        LINKED: the programs of the cluster, by name, whose source it keeps, so that it does not change with the state of the network.
        """
        built = [self._built(row) for row in self.table]
        if self.source == "build" or not self.table:
            return built, ""
        released = self._released(built)
        if self.source == "released":
            return released, ""
        for rows in (built, released):
            same = any(row["name"] == "kubelet" and _key(row["path"]) == _key(linked.get("kubelet", "")) for row in rows)
            if same or all(_is_there(row) for row in rows):
                return rows, ""
        why = download.why_unreachable(self._asked(released), self.clock)
        return (built, f"Released files are not used: {why}") if why else (released, "")

    def _built(self, row: Row) -> Row:
        return {**row, "way": "build", "path": str(programs.go_build(row, self.cache_dir, architecture()).path)}

    def _released(self, built: list[Row]) -> list[Row]:
        """Rows of released programs and images, then those of the programs that are built in any case."""
        wanted = {row["name"] for row in self.table}
        rows: list[Row] = []
        for file in (self._file(row) for row in self.files):
            rows += [
                {"name": name, "way": "released", "path": str(file.folder / name), "file": file}
                for name in file.program_paths
                if name in wanted or name != "kubectl"
            ]
        kubeadm = next((Path(row["path"]) for row in rows if row["name"] == "kubeadm"), None)
        if kubeadm is None:
            raise InvalidInput("No released file has kubeadm.", hint="Set local_cluster_source to build.")
        rows += [{"name": name, "way": "image", "path": str(pull.archive_path(kubeadm, name))} for name in IMAGES]
        return [*rows, *(row for row in built if row["name"] not in {one["name"] for one in rows})]

    def _file(self, row: Row) -> programs.Release:
        return programs.Release(
            name=row["name"],
            url=f"{self.urls[row['base']]}/{row['path'].replace('{arch}', architecture())}",
            checksum=f"sha256:{row['sha256_by_arch'].get(architecture(), '')}",
            program_paths=row["program_paths"],
            cache_dir=self.cache_dir,
        )

    def _asked(self, rows: list[Row]) -> list[str]:
        """The URLs of released files that are missing, and of an image if one is missing."""
        missing = [row for row in rows if not _is_there(row)]
        urls = [row["file"].url for row in missing if row["way"] == "released"]
        if any(row["way"] == "image" for row in missing):
            urls.append(pull.manifest_url(self.urls["registry"], f"registry.k8s.io/kube-apiserver:{self.version}"))
        return list(dict.fromkeys(urls))


def _key(path: str) -> tuple[str, ...]:
    """The part of a path in the cache that tells the content, wherever the cache lies."""
    return Path(path).parts[-2:]


def _is_there(row: Row) -> bool:
    return Path(row["path"]).is_file()


def to_provide(rows: list[Row], reason: str = "") -> Row:
    """The missing programs and images, with the options of the tasks that provide them, and a summary for the user."""
    missing = [row for row in rows if row["missing"]]
    files = {row["file"].url: row["file"] for row in missing if row["way"] == "released"}
    to_fetch = [
        {"name": one.name, "url": one.url, "checksum": one.checksum, "program_paths": dict(one.program_paths)} for one in files.values()
    ]
    to_pull = [row["name"] for row in missing if row["way"] == "image"]
    to_build = [
        {"ldflags": "", "tags": [], **{key: row[key] for key in BUILD_KEYS if key in row}} for row in missing if row["way"] == "build"
    ]
    lines = [reason] if reason and to_build else []
    if to_fetch or to_pull:
        lines.append(f"To fetch: {len(to_fetch)} released files and {len(to_pull)} images of Kubernetes.")
    if to_build:
        takes = "" if len(to_build) < 5 else ", which takes about ten minutes on two cores the first time"
        lines.append(f"Programs to build from Go modules: {len(to_build)}{takes}.")
    return {"to_fetch": to_fetch, "to_pull": to_pull, "to_build": to_build, "programs_ahead": " ".join(lines)}
