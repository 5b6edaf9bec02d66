# SPDX-License-Identifier: GPL-3.0-or-later
"""Google's discovery documents, as google-api-python-client carries them: which method a request is, and which schema it has.

Every client library of Google's is made from these documents, so no address and no field is written down twice here.
"""

import importlib.util
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

Body = dict[str, Any]

# API, version and the service that has to be enabled for it.
DOCUMENTS = {
    "artifactregistry.v1": "artifactregistry.googleapis.com",
    "cloudresourcemanager.v1": "cloudresourcemanager.googleapis.com",
    "cloudresourcemanager.v3": "cloudresourcemanager.googleapis.com",
    "compute.v1": "compute.googleapis.com",
    "container.v1": "container.googleapis.com",
    "iam.v1": "iam.googleapis.com",
    "serviceusage.v1": "serviceusage.googleapis.com",
    "storage.v1": "storage.googleapis.com",
}
# Compute and Cloud Storage are still served at their first address as well; links of compute resources have it.
OLD_HOST = "www.googleapis.com"
OLD_PREFIXES = ("/compute/v1/", "/storage/v1/", "/upload/storage/v1/", "/download/storage/v1/", "/resumable/upload/storage/v1/")


@dataclass(frozen=True)
class Method:
    """One method of an API, and the document that it is from."""

    document: str
    service: str
    id: str
    verb: str
    path: re.Pattern[str]
    description: Body
    literals: int

    @property
    def parameters(self) -> Body:
        found: Body = self.description.get("parameters", {})
        return found

    @property
    def request(self) -> str:
        """The name of the schema of the body; empty where there is none."""
        return str(self.description.get("request", {}).get("$ref", ""))

    @property
    def schemas(self) -> Body:
        found: Body = load(self.document)["schemas"]
        return found


@cache
def load(document: str) -> Body:
    spec = importlib.util.find_spec("googleapiclient")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("google-api-python-client is not installed")
    folder = Path(spec.submodule_search_locations[0]) / "discovery_cache" / "documents"
    found: Body = json.loads((folder / f"{document}.json").read_text(encoding="utf-8"))
    return found


def documents_at(host: str) -> list[str]:
    """The documents that an address serves."""
    if host == OLD_HOST:
        return ["compute.v1", "storage.v1"]
    return [name for name, service in DOCUMENTS.items() if service == host]


def hosts() -> set[str]:
    return {*DOCUMENTS.values(), OLD_HOST}


def _descriptions(resource: Body) -> Iterator[Body]:
    yield from resource.get("methods", {}).values()
    for inner in resource.get("resources", {}).values():
        yield from _descriptions(inner)


def _pattern(base: str, path: str, parameters: Body) -> re.Pattern[str]:
    """A regular expression for the path, with a group for each parameter; {+name} may have slashes, as its own pattern says."""
    parts = re.split(r"(\{\+?\w+\})", base + path)
    expression = ""
    for part in parts:
        if match := re.fullmatch(r"\{(\+?)(\w+)\}", part):
            own = str(parameters.get(match[2], {}).get("pattern", "")).strip("^$") if match[1] else ""
            expression += f"(?P<{match[2]}>{own or ('.+' if match[1] else '[^/:]+')})"
        else:
            expression += re.escape(part)
    return re.compile(f"^{expression}$")


@cache
def methods(document: str) -> list[Method]:
    """The most literal paths first: /instances/{instance}/setTags before /{anything}."""
    found = []
    for description in _descriptions(load(document)):
        base = f"/{load(document)['servicePath']}"
        path = description["path"]
        parameters = description.get("parameters", {})
        if upload := description.get("mediaUpload"):
            found += [
                Method(
                    document, DOCUMENTS[document], description["id"], verb,
                    _pattern(one["path"], "", parameters), description, len(one["path"]),
                )
                for one in upload["protocols"].values()
                # The pieces of a resumable upload come by PUT (cloud.google.com/storage/docs/performing-resumable-uploads).
                for verb in (description["httpMethod"], "PUT")
                if one["path"] != f"{base}{path}"
            ]  # fmt: skip
        # google-cloud-storage reads an object's content at an address of its own.
        found += [
            Method(
                document, DOCUMENTS[document], description["id"], description["httpMethod"],
                _pattern(start, path, parameters), description, len(re.sub(r"\{.*?\}", "", path)),
            )
            for start in (base, f"/download{base}")
            if start == base or description.get("useMediaDownloadService")
        ]  # fmt: skip
    return sorted(found, key=lambda method: -method.literals)


def match(host: str, verb: str, path: str) -> tuple[Method, dict[str, str]] | None:
    """(the method, the parameters in the path). Objects' names come quoted, so that a slash in one is none of the path's."""
    if host == OLD_HOST and not path.startswith(OLD_PREFIXES):
        return None
    for document in documents_at(host):
        for method in methods(document):
            if method.verb == verb and (found := method.path.match(path)):
                return method, {name: unquote(value) for name, value in found.groupdict().items()}
    return None
