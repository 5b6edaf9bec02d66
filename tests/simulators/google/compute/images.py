# SPDX-License-Identifier: GPL-3.0-or-later
"""Public images, as others' projects have them."""

from __future__ import annotations

from .. import catalogue
from ..api import Asked, Refused, handles
from ..authorise import HOLDERS
from ..discovery import Body
from .lists import page
from .resources import link

HOLDERS.update(owner for owner, _image, _size in catalogue.IMAGES.values())


def image(owner: str, name: str, family: str, size: int) -> Body:
    return {
        "kind": "compute#image", "id": "3000000000000000001", "name": name, "family": family, "status": "READY", "diskSizeGb": str(size),
        "selfLink": link(f"projects/{owner}/global/images/{name}"), "architecture": "X86_64", "sourceType": "RAW",
        "archiveSizeBytes": "1234567890", "creationTimestamp": "2026-11-04T08:00:00.000-08:00",
    }  # fmt: skip


def _rows(owner: str) -> list[Body]:
    return [image(of, name, family, size) for family, (of, name, size) in catalogue.IMAGES.items() if of == owner]


@handles("compute.images.getFromFamily")
def _family(asked: Asked) -> Body:
    for row in _rows(str(asked.params["project"])):
        if row["family"] == asked.params["family"]:
            return row
    raise Refused(404, f"The resource 'projects/{asked.params['project']}/global/images/family/{asked.params['family']}' was not found")


@handles("compute.images.get")
def _get(asked: Asked) -> Body:
    for row in _rows(str(asked.params["project"])):
        if row["name"] == asked.params["image"]:
            return row
    raise Refused(404, f"The resource 'projects/{asked.params['project']}/global/images/{asked.params['image']}' was not found")


@handles("compute.images.list")
def _list(asked: Asked) -> Body:
    return page(asked, _rows(str(asked.params["project"])), "image")


def resolve(source: str) -> tuple[str, int] | None:
    """(link, GB) of an image by any of its links or by its family's."""
    words = source.split("projects/")[-1].split("/")
    for family, (owner, name, size) in catalogue.IMAGES.items():
        if words[0] == owner and (words[-2:] == ["family", family] or words[-1] == name):
            return link(f"projects/{owner}/global/images/{name}"), size
    return None
