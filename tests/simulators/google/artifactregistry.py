# SPDX-License-Identifier: GPL-3.0-or-later
"""Artifact Registry: repositories, their policies, and operations.

Rules: cloud.google.com/artifact-registry/docs/repositories; format and mode stay as they were made; a patch needs its mask; location must
exist (multi-regions us, europe and asia do); one of that name is 409 "the repository already exists"; a deletion takes the images with it.
"""

import re

from . import catalogue, policies
from .api import Asked, Refused, handles
from .discovery import Body
from .labels import broken
from .operations import begin, ends
from .schema import snake
from .state import Project, Thing, digest, now, number, project

MULTI = ("us", "europe", "asia")
NAME = re.compile(r"^[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?$")
EDITABLE = (
    "description",
    "labels",
    "cleanupPolicies",
    "cleanupPolicyDryRun",
    "dockerConfig",
    "vulnerabilityScanningConfig",
    "virtualRepositoryConfig",
)
FORMATS = ("DOCKER", "MAVEN", "NPM", "PYTHON", "APT", "YUM", "GO", "GENERIC", "KFP", "RUBY")


def _place(location: str) -> str:
    if location not in (*MULTI, *catalogue.regions()):
        raise Refused(403, f"Location {location} is not found or access is unauthorized.", code="PERMISSION_DENIED")
    return location


def _find(asked: Asked, field: str = "name") -> tuple[Project, Thing]:
    parts = asked.parts(field)
    found = project(parts["projects"])
    key = f"projects/{found.id}/locations/{parts['locations']}/repositories/{parts['repositories']}"
    thing = found.shelf("repositories").get(key)
    if thing is None:
        raise Refused(404, "Requested entity was not found.")  # GoogleCloudPlatform/cloud-run-button PR 273
    return found, thing


def _check(body: Body) -> None:
    for name, rule in (body.get("cleanupPolicies") or {}).items():
        if rule.get("id", name) != name:
            raise Refused(400, f"Cleanup policy id {rule['id']} must be its key {name}.")  # assumed: the wording
        if rule.get("action") not in ("DELETE", "KEEP") or bool(rule.get("condition")) == bool(rule.get("mostRecentVersions")):
            raise Refused(
                400, f"Cleanup policy {name} needs an action, and either a condition or mostRecentVersions."
            )  # assumed: the wording
        if rule.get("mostRecentVersions") and rule["action"] != "KEEP":
            # CleanupPolicy.mostRecentVersions
            raise Refused(400, f"Cleanup policy {name}: mostRecentVersions needs action KEEP.")  # assumed: the wording
        rule["id"] = name
    if found := broken(body.get("labels")):
        raise Refused(400, f"Invalid label {' '.join(found)}.")  # assumed: the wording


def _shown(body: Body) -> Body:
    """proto3: what is empty is left out."""
    return {name: value for name, value in body.items() if value not in ("", {}, [], False)}


@handles("artifactregistry.projects.locations.repositories.create")
def _create(asked: Asked) -> Body:
    parts, name = asked.parts("parent"), str(asked.params.get("repositoryId", ""))
    found, location = project(parts["projects"]), _place(parts["locations"])
    if not NAME.match(name):
        raise Refused(400, f'Invalid repository id "{name}": it must match {NAME.pattern}.')  # assumed: the wording
    key = f"projects/{found.id}/locations/{location}/repositories/{name}"
    if key in found.shelf("repositories"):
        raise Refused(409, "the repository already exists")
    given = {
        one: value
        for one, value in asked.body.items()
        if value is not None and one not in ("name", "createTime", "updateTime", "sizeBytes", "registryUri")
    }
    if given.get("format") not in FORMATS:
        raise Refused(400, "The repository format must be specified.")  # assumed: the wording
    _check(given)
    host = f"{location}-docker.pkg.dev" if given["format"] == "DOCKER" else f"{location}-{given['format'].lower()}.pkg.dev"
    body: Body = {
        "mode": "STANDARD_REPOSITORY",
        "vulnerabilityScanningConfig": {"lastEnableTime": now(), "enablementState": "SCANNING_DISABLED"}, **given, "name": key,
        "createTime": now(), "updateTime": now(), "registryUri": f"{host}/{found.id}/{name}",
    }  # fmt: skip
    thing = Thing(body, extra={"policy": {"etag": "ACAB"}})
    operation = f"projects/{found.id}/locations/{location}/operations/{digest(key, number(), length=32)}"
    answer: Body = {"name": operation, "metadata": {"@type": "type.googleapis.com/google.devtools.artifactregistry.v1.OperationMetadata"}}

    def finish() -> None:
        found.shelf("repositories")[key] = thing
        answer["response"] = {"@type": "type.googleapis.com/google.devtools.artifactregistry.v1.Repository", **_shown(body)}

    begin(asked, operation, answer, key, ends, finish)
    return answer


@handles("artifactregistry.projects.locations.repositories.get")
def _get(asked: Asked) -> Body:
    return _shown(_find(asked)[1].body)


@handles("artifactregistry.projects.locations.repositories.patch")
def _patch(asked: Asked) -> Body:
    thing = _find(asked)[1]
    mask = [one.strip() for one in str(asked.params.get("updateMask", "")).split(",") if one.strip()]
    by_snake = {snake(name): name for name in EDITABLE}
    fields = [by_snake.get(snake(one.split(".")[0]), "") for one in mask]
    if not mask or "" in fields:
        raise Refused(400, f"Invalid update mask: {', '.join(mask) or 'it is empty'}.")  # assumed: the wording
    _check(asked.body)
    for name in fields:
        if asked.body.get(name) in (None, {}, "", [], False):
            thing.body.pop(name, None)
        else:
            thing.body[name] = asked.body[name]
    thing.body["updateTime"] = now()
    return _shown(thing.body)


@handles("artifactregistry.projects.locations.repositories.delete")
def _delete(asked: Asked) -> Body:
    found, thing = _find(asked)
    key = thing.body["name"]
    operation = f"{key.split('/repositories/')[0]}/operations/{digest(key, number(), length=32)}"
    answer: Body = {"name": operation}

    def finish() -> None:
        found.shelf("repositories").pop(key, None)
        answer["response"] = {"@type": "type.googleapis.com/google.protobuf.Empty"}

    begin(asked, operation, answer, key, ends, finish)
    return answer


@handles("artifactregistry.projects.locations.repositories.getIamPolicy")
def _get_policy(asked: Asked) -> Body:
    return policies.read(_find(asked, "resource")[1].extra["policy"], int(asked.params.get("options.requestedPolicyVersion") or 1))


@handles("artifactregistry.projects.locations.repositories.setIamPolicy")
def _set_policy(asked: Asked) -> Body:
    thing = _find(asked, "resource")[1]
    thing.extra["policy"] = policies.write(asked, thing.extra["policy"], asked.body.get("policy") or {}, "repository")
    return dict(thing.extra["policy"])
