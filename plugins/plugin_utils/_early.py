# SPDX-License-Identifier: GPL-3.0-or-later
"""Imports for action plugins of modules that import a library only when they run.

Ansible loads an action plugin in the process from which it forks one for each task. A library that is imported then is imported once,
and not again in each fork. If a library is not installed, the module itself says so.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import typing as t

from ansible_collections.muster.ml.plugins.module_utils._core.errors import MusterError
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive

KUBERNETES: t.Final = ("ansible_collections.muster.ml.plugins.module_utils._kube.client",)
"""The client of Kubernetes: 35 ms."""
_ENCRYPTION = ("cryptography.hazmat.primitives.serialization", "nacl.secret")
"""Keys and messages of StudioML: 80 ms."""
_LIBRARIES = {
    "rabbitmq_definitions": KUBERNETES,
    "rabbitmq_info": KUBERNETES,
    "studioml_experiment": (*KUBERNETES, *_ENCRYPTION),
    "training_secret": _ENCRYPTION,
    "training_secret_info": _ENCRYPTION,
}
_S3 = ("object_store", "studioml_experiment")
"""Modules that use boto3, and its description of S3, which it keeps: 500 ms."""

_GARBAGE = 500_000
"""New objects between two searches for garbage; Python's default of 700 costs a tenth of an apply of 2,000 manifests."""


def save_garbage_collection() -> None:
    """Search seldom: in a process for one task, Ansible's objects and most of ours live until its end."""
    gc.freeze()
    gc.set_threshold(_GARBAGE)


def import_early(*names: str) -> None:
    with contextlib.suppress(ImportError):
        for name in names:
            importlib.import_module(name)


def import_for(module: str) -> None:
    """Import the libraries that a module of this collection imports only when it runs."""
    import_early(*_LIBRARIES.get(module, ()))
    if module in _S3:
        from ansible_collections.muster.ml.plugins.module_utils._core import s3

        with contextlib.suppress(ImportError, OSError, MusterError):
            s3.client("http://127.0.0.1", Sensitive("-"), Sensitive("-"), region="us-east-1")
