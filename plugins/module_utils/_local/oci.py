# SPDX-License-Identifier: GPL-3.0-or-later
"""The contents of an image as values, and the key under which the result is cached."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import typing as t
from pathlib import Path

from .._core.errors import InvalidInput
from .gobuild import GoBuild
from .programs import go_build

# Part of every cache key. Raise it when a change of this code makes the same recipe give another image.
FORMAT = 2
NAME = re.compile(r"[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)+:[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

Recipe = t.Mapping[str, t.Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class OciImage:
    """A desired image. ``recipe`` has the suboptions of the module's option of that name, defaults filled in."""

    name: str
    recipe: Recipe
    cache_dir: Path
    architecture: str = "amd64"

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise InvalidInput(f"{self.name!r} is not a whole image name.", hint="Write it as host/name:tag.")
        desired = self.recipe["architectures"]
        if desired and self.architecture not in desired:
            raise InvalidInput(
                f"{self.name} can be built for {', '.join(desired)} only, and this machine is {self.architecture}.",
                hint="Use a published image for this processor, or leave the image out of local_images_names.",
            )
        places = [(part, row["dest"]) for part in ("programs", "files", "links") for row in self.recipe[part]]
        places += [("wheels", dest) for row in self.recipe["wheels"] for dest in (row["dest"], *row["members"].values()) if dest]
        for part, dest in places:
            if not dest.startswith("/") or ".." in Path(dest).parts:
                raise InvalidInput(f"{self.name}: dest '{dest}' of {part} is no path in the image.", "Begin it with /, without '..'.")

    def programs(self) -> list[tuple[GoBuild, str]]:
        """Programs to build from Go modules, each with its place in the image."""
        return [(go_build(row, self.cache_dir, self.architecture), row["dest"]) for row in self.recipe["programs"]]

    def umoci(self, module_dir: str) -> GoBuild:
        """The program that assembles the image; the folder has the pins of its module."""
        row = {"name": "umoci", "package": "github.com/opencontainers/umoci/cmd/umoci", "module_dir": module_dir}
        return go_build(row, self.cache_dir, self.architecture)

    def key(self) -> str:
        """The key that decides whether an image is up to date: the recipe, the pins it points to, the processor."""
        recipe = {**self.recipe, "programs": [[built.key(), dest] for built, dest in self.programs()]}
        recipe["wheels"] = [{**row, "requirements": Path(row["requirements"]).read_text(encoding="utf-8")} for row in self.recipe["wheels"]]
        text = json.dumps([FORMAT, self.name, recipe, self.architecture], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def archive(self) -> Path:
        return self.cache_dir / "images" / f"{self.key()}.tar"

    @property
    def mark(self) -> str:
        """A second name that contains the key: a node with both names has the desired image."""
        return f"{self.name.rpartition(':')[0]}:recipe-{self.key()}"

    def config_flags(self) -> list[str]:
        """Flags of ``umoci config``. An entrypoint is always set, because a pod's args would replace a command without one."""
        config = self.recipe["config"]
        flags: list[str] = []
        for word in config["entrypoint"]:
            flags += ["--config.entrypoint", word]
        for word in config["cmd"]:
            flags += ["--config.cmd", word]
        for name, value in sorted({"PATH": PATH, **config["env"]}.items()):
            flags += ["--config.env", f"{name}={value}"]
        for port in config["exposed_ports"]:
            flags += ["--config.exposedports", str(port)]
        labels = {"org.opencontainers.image.title": self.name.rpartition(":")[0], **config["labels"]}
        for name, value in sorted(labels.items()):
            flags += ["--config.label", f"{name}={value}"]
        return [*flags, "--config.user", config["user"], "--config.workingdir", config["working_dir"]]


@dataclasses.dataclass(frozen=True)
class Published:
    """An image of a registry, by a name as pods have them, which is completed: without a host it is one of Docker Hub."""

    name: str

    def __post_init__(self) -> None:
        host, slash, path = self.name.partition("/")
        # The rule of distribution/reference, splitDockerDomain in normalize.go.
        if not slash or not (re.search(r"[.:]", host) or host == "localhost"):
            host, path = "docker.io", self.name if slash else f"library/{self.name}"
        if not re.fullmatch(r"[a-z0-9._/-]+(:[\w.-]+|(:[\w.-]+)?@sha256:[0-9a-f]{64})", path):
            raise InvalidInput(f"{self.name!r} is no image that can be copied.", hint="Give it a tag or a digest: nats:2.14.2.")
        object.__setattr__(self, "name", f"{host}/{path}")


def debian_key(debian: Recipe, sources: t.Sequence[str], architecture: str) -> str:
    """The cache key of a Debian root file system, which several images may share."""
    text = json.dumps([FORMAT, debian, [re.sub(r"\S+://\S+", "", line) for line in sources], architecture], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def mirrors(sources: str) -> tuple[str, str]:
    """The host's own mirrors of Debian and of its security updates, from the text of its apt sources; '' if it has none."""
    main = security = ""
    for uri in re.findall(r"^(?:deb\s+(?:\[[^\]]*\]\s+)?|URIs:\s*)(\S+)", sources, re.MULTILINE):
        path = uri.rstrip("/")
        if path.endswith("/debian-security"):
            security = security or uri
        elif path.endswith("/debian"):
            main = main or uri
    return main, security


def source_lines(suite: str, main: str, security: str) -> list[str]:
    """Lines of sources.list for a suite; an empty list selects the builder's default, the public mirror of Debian."""
    lines = [f"deb {main} {suite} main"] if main else []
    return lines + ([f"deb {security} {suite}-security main"] if main and security else [])
