# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
import typing as t

DOCUMENTATION = r"""
name: image_version
short_description: Read the version in the tag of an image
author: Muster contributors (!UNKNOWN)
description:
  - Returns the version C(x.y.z) in the tag of a container image, without a leading C(v) and without what follows it.
positional: _input, default
options:
  _input:
    description: Name of the image.
    type: str
    required: true
  default:
    description: Result for an image whose tag has no version, such as one by digest only.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Show a version, which is 0.8.3
  ansible.builtin.debug:
    msg: "{{ 'registry.example:5000/natsio/nats-operator:v0.8.3-alpine' | muster.ml.image_version }}"
"""

RETURN = r"""
_value:
  description: Version.
  type: str
  sample: 0.8.3
"""

_VERSION = re.compile(r"v?(\d+\.\d+\.\d+)")


def image_version(image: str, default: str = "") -> str:
    named, _at, _digest = image.partition("@")
    _path, _colon, tag = named.rpartition("/")[2].partition(":")
    found = _VERSION.match(tag)
    return found[1] if found else default


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"image_version": image_version}
