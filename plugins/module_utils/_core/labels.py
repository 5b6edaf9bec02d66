# SPDX-License-Identifier: GPL-3.0-or-later
"""The syntax of labels of Kubernetes, which taints of nodes share.

Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/, "Syntax and character set".
"""

from __future__ import annotations

import re

_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
KEY = re.compile(rf"(?:(?=.{{1,253}}/)[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?/)?{_NAME}")
"""A name, before which a DNS domain and a slash may stand."""
VALUE = re.compile(rf"(?:{_NAME})?")
"""A name, or nothing."""
