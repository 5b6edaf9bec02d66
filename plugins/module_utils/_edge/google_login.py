# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials for Google Cloud of modules that are mainly about something else, and do not have google.cloud's options."""

from __future__ import annotations

import os
import typing as t

from ansible_collections.google.cloud.plugins.module_utils.gcp_utils import GcpSession

from .._core.errors import InvalidInput
from .._gcp.errors import library_errors
from .gcp import Options

# What google.cloud's modules take from the environment, by their auth_kind.
KINDS = {
    "application": (),
    "accesstoken": ("access_token",),
    "serviceaccount": ("service_account_file", "service_account_contents"),
    "machineaccount": ("service_account_email",),
}


def credentials_of(auth_kind: str | None) -> t.Any:
    """Credentials for the libraries of Google, as google.cloud's modules would have them without an option."""
    token = "accesstoken" if os.environ.get("GCP_ACCESS_TOKEN") else "application"
    kind = auth_kind or os.environ.get("GCP_AUTH_KIND") or token
    if kind not in KINDS:
        raise InvalidInput(f"auth_kind: '{kind}' is unknown.", f"One of {', '.join(KINDS)}.")
    given = {name: os.environ.get(f"GCP_{name.upper()}") for name in KINDS[kind]}
    with library_errors():
        return GcpSession(Options({"auth_kind": kind, **given}), "muster")._credentials()
