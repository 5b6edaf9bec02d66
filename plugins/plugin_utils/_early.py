# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""For action plugins of modules that import something only when they run.

Ansible loads an action plugin in the process from which it forks one for each task. What is imported then is imported once, and not in each
of those again. Where a library is not installed, the module itself says so.
"""

from __future__ import annotations

import contextlib
import importlib
import typing as t

KUBERNETES: t.Final = ("ansible_collections.muster.ml.plugins.module_utils._kube.client",)
"""The client of Kubernetes: 35 ms."""
BOTO3: t.Final = ("boto3.exceptions", "botocore.config", "botocore.exceptions")
"""400 ms."""
ENCRYPTION: t.Final = ("cryptography.hazmat.primitives.serialization", "nacl.secret")
"""Keys and messages of StudioML: 80 ms."""


def import_early(*groups: tuple[str, ...]) -> None:
    for group in groups:
        with contextlib.suppress(ImportError):
            for name in group:
                importlib.import_module(name)
