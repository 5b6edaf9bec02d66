# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Secrets that are to hold the token of a ServiceAccount. Only reads.

Private to the collection.
"""

from __future__ import annotations

import typing as t

from .._core.errors import Forbidden, NotFound
from .._core.pool import raise_all, run_all
from .objects import SECRET, SERVICE_ACCOUNT, Manifest, Ref, annotations_of, group_kind, ref_of

if t.TYPE_CHECKING:
    from .cluster import Cluster

_TYPE = "kubernetes.io/service-account-token"
_ANNOTATION = "kubernetes.io/service-account.name"
_OF_EVERY_NAMESPACE = "default"
"""Kubernetes creates this account with a namespace."""


def lost_tokens(
    cluster: Cluster,
    created: t.Iterable[Manifest],
    coming: t.Container[tuple[str, str, str]],
    *,
    check: bool,
    parallel: int,
) -> list[NotFound]:
    """An error for each of the objects to create that Kubernetes would delete at once, for want of its account.

    ``coming``: objects that will be there, as Promised has them. The API server takes such a Secret without a word, also in a dry run:
    a controller deletes it (pkg/controller/serviceaccount/tokens_controller.go).
    """
    asked = {ref_of(item): account for item in created if (account := _account_of(item)) and account.key not in coming}
    found, failures = run_all(lambda account: (account, cluster.get(account)), list(dict.fromkeys(asked.values())), parallel=parallel)
    # Who may not read accounts may still create such a Secret.
    raise_all([exc for exc in failures if not isinstance(exc, Forbidden)])
    missing = {account for account, live in found if live is None}
    until = " In check mode, accounts that earlier tasks of muster.ml.apply would have created count." if check else ""
    return [
        NotFound(
            f"{secret} is to hold the token of {account}, which does not exist, so Kubernetes would delete it at once.", ref=secret,
            hint=f"Create the ServiceAccount first, or put it into the same list of objects.{until} Nothing was changed.",
        )
        for secret, account in asked.items()
        if account in missing
    ]  # fmt: skip


def _account_of(item: Manifest) -> Ref | None:
    """The account whose token a Secret is to hold; None for any other object, and for an account that is there by itself."""
    name = annotations_of(item).get(_ANNOTATION)
    if group_kind(item) != SECRET or item.get("type") != _TYPE or name in (None, "", _OF_EVERY_NAMESPACE):
        return None
    return Ref("v1", SERVICE_ACCOUNT[1], name, ref_of(item).namespace)
