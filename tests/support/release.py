# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a release: the artefact, a bill of materials (CycloneDX) with the Python packages that it needs, and their checksums."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support import artefact
from support.places import BIN, ROOT, tree
from support.reading import load

OUT = ROOT / "build" / "release"
NEEDED = "requirements-triton.txt"
"""Includes the other requirement files of the collection."""


def run(*command: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> None:
    subprocess.run(command, cwd=cwd, env={**os.environ, **(env or {})}, check=True)


def main() -> int:
    galaxy = load(ROOT / "galaxy.yml")
    built = artefact.build(run, tree(), OUT)
    with tempfile.TemporaryDirectory() as folder:
        refuse_difference(built, artefact.build(run, tree(), Path(folder) / "again"))
        bill = OUT / f"{built.name.removesuffix('.tar.gz')}.cdx.json"
        bill.write_text(json.dumps(bill_of_materials(Path(folder), galaxy, built), indent=1) + "\n", encoding="utf-8")
    sums = "".join(f"{digest(path)}  {path.name}\n" for path in (built, bill))
    (OUT / "SHA256SUMS").write_text(sums, encoding="utf-8")
    sys.stdout.write(sums)
    return 0


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def refuse_difference(one: Path, other: Path) -> None:
    """Compare names and contents; ansible-galaxy writes the time of the build into the archive itself."""
    first, second = contents(one), contents(other)
    if different := sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name)):
        raise SystemExit(f"two builds of the same sources differ in {', '.join(different[:5])}")


def contents(path: Path) -> dict[str, str]:
    with tarfile.open(path) as archive:
        files = [(member, archive.extractfile(member)) for member in archive if member.isfile()]
        return {member.name: hashlib.sha256(file.read()).hexdigest() for member, file in files if file}


def bill_of_materials(folder: Path, galaxy: Mapping[str, Any], built: Path) -> dict[str, Any]:
    """The bill that cyclonedx-py writes of the pinned packages, with the collection as what it is of."""
    given = folder / "requirements.txt"
    given.write_text("".join(f"{line}\n" for line in pinned(folder)), encoding="utf-8")
    written = folder / "bill.json"
    run(sys.executable, "-m", "cyclonedx_py", "requirements", "--output-reproducible", "--short-PURLs", "--validate", "-o", written, given)
    return with_collection(json.loads(written.read_text(encoding="utf-8")), galaxy, digest(built))


def pinned(folder: Path) -> list[str]:
    """All packages that the collection needs, directly or not, as constraints.txt pins them."""
    report = folder / "report.json"
    run(
        BIN / "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", report,
        "--requirement", ROOT / NEEDED, "--constraint", ROOT / "constraints.txt",
    )  # fmt: skip
    found = [row["metadata"] for row in json.loads(report.read_text(encoding="utf-8"))["install"]]
    return sorted(f"{row['name']}=={row['version']}" for row in found)


def with_collection(bill: dict[str, Any], galaxy: Mapping[str, Any], sha256: str) -> dict[str, Any]:
    name = f"{galaxy['namespace']}.{galaxy['name']}"
    collection = {
        "type": "library",
        "bom-ref": name,
        "name": name,
        "version": galaxy["version"],
        "description": " ".join(galaxy["description"].split()),
        "licenses": [{"license": {"id": licence}} for licence in galaxy["license"]],
        "hashes": [{"alg": "SHA-256", "content": sha256}],
        "purl": f"pkg:generic/{name}@{galaxy['version']}",
    }
    # The collections that it depends on have ranges and no version: what is installed says which.
    others = [
        {"type": "library", "bom-ref": other, "name": other, "description": f"Ansible collection, {bounds}"}
        for other, bounds in galaxy["dependencies"].items()
    ]
    components = [*bill.get("components", ()), *others]
    direct = {re.sub(r"[-_.]+", "-", row["name"].lower()): row["bom-ref"] for row in components}
    return {
        **bill,
        "metadata": {**bill["metadata"], "component": collection},
        "components": components,
        "dependencies": [*bill.get("dependencies", ()), {"ref": name, "dependsOn": sorted(direct.values())}],
    }


if __name__ == "__main__":
    sys.exit(main())
