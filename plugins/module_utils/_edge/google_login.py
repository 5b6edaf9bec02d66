# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Credentials for Google Cloud of modules that are mainly about something else, and do not have google.cloud's options.

Private to the collection.
"""

from __future__ import annotations

import os
import typing as t

from ansible_collections.google.cloud.plugins.module_utils.gcp_utils import GcpSession

from .._core.errors import InvalidInput, Unauthorized
from .._gcp.errors import library_errors
from .gcp import SCOPES

# What google.cloud's modules take from the environment, by their auth_kind.
KINDS = {
    "application": (),
    "accesstoken": ("access_token",),
    "serviceaccount": ("service_account_file", "service_account_contents"),
    "machineaccount": ("service_account_email",),
}


class _Environment:
    """Stands for a module of google.cloud whose options are all in the environment."""

    def __init__(self, auth_kind: str | None) -> None:
        token = "accesstoken" if os.environ.get("GCP_ACCESS_TOKEN") else "application"
        kind = auth_kind or os.environ.get("GCP_AUTH_KIND") or token
        if kind not in KINDS:
            raise InvalidInput(f"auth_kind: '{kind}' is unknown.", f"One of {', '.join(KINDS)}.")
        given = {name: os.environ.get(f"GCP_{name.upper()}") for name in KINDS[kind]}
        self.params: dict[str, t.Any] = {"auth_kind": kind, "scopes": SCOPES, **given}

    def fail_json(self, msg: str) -> t.NoReturn:
        raise Unauthorized(f"There are no credentials for Google: {msg}.")


def credentials_of(auth_kind: str | None) -> t.Any:
    """Credentials for the libraries of Google, as google.cloud's modules would have them without an option."""
    with library_errors():
        return GcpSession(_Environment(auth_kind), "muster")._credentials()
