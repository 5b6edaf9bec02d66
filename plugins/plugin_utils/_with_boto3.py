# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""For action plugins of modules that use boto3.

Ansible loads an action plugin in the process from which it forks one for each task. What is imported then is imported once, and not in each
of those again, where it takes half a second each time. Without boto3 the module itself says that it is missing.
"""

from __future__ import annotations

import contextlib
import importlib


def import_boto3() -> None:
    with contextlib.suppress(ImportError):
        for name in ("boto3.exceptions", "botocore.config", "botocore.exceptions"):
            importlib.import_module(name)
