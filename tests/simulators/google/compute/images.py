# SPDX-License-Identifier: GPL-3.0-or-later
"""Public images, as others' projects have them."""

from .. import catalogue
from ..authorise import HOLDERS
from .resources import link

HOLDERS.update(owner for owner, _image, _size in catalogue.IMAGES.values())


def resolve(source: str) -> tuple[str, int] | None:
    """(link, GB) of an image by any of its links or by its family's."""
    words = source.split("projects/")[-1].split("/")
    for family, (owner, name, size) in catalogue.IMAGES.items():
        if words[0] == owner and (words[-2:] == ["family", family] or words[-1] == name):
            return link(f"projects/{owner}/global/images/{name}"), size
    return None
