# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A model that is to be there, and one that is not: what is found, what is done, and the result.

Private to the collection.
"""

from __future__ import annotations

import typing as t

from ..._core.errors import InvalidInput
from ..._kube.report import Report
from .model import Store, after, all_serve, carry_out, remove
from .model_config import FILE
from .model_plan import Plan, Stored, difference, plan
from .model_rollout import Rollout, served
from .model_source import Source

if t.TYPE_CHECKING:
    from ..._edge.run import Context


def present(ctx: Context, store: Store, rollout: Rollout, source: Source | None) -> dict[str, t.Any]:
    """Have the versions uploaded and served."""
    params = ctx.params

    def planned(stored: Stored) -> Plan:
        return plan(params["model"], source, stored, params["versions"], purge=params["purge_versions"])

    stored, indexes = store.read(), rollout.indexes()
    made = planned(stored)
    steady = all_serve(indexes, made.versions, rollout.server.replicas if rollout.server else 0)
    if ctx.check:
        report = store.note(after(stored, made, source), check=True)
    elif made.changes or not steady:
        stored = store.verify()
        made = planned(stored)
        report, replicas = carry_out(store, rollout, made, stored, source)
        return told(ctx, report, made, replicas, changed=made.changes or not steady, shown=(stored, source))
    else:
        report = Report()
    replicas = {pod: served(index) for pod, index in indexes.items()}
    return told(ctx, report, made, replicas, changed=made.changes or not steady, shown=(stored, source))


def told(
    ctx: Context,
    report: Report,
    made: Plan,
    replicas: dict[str, list[int]],
    *,
    changed: bool,
    shown: tuple[Stored, Source | None],
) -> dict[str, t.Any]:
    """The result."""
    found = ctx.result(report, uploaded=made.upload, deleted=made.delete, versions=made.versions, replicas=replicas)
    found["changed"] = bool(found["changed"] or changed)
    if ctx.diff and made.changes:
        header = f"model {ctx.params['model']} in {ctx.params['model_repository']}"
        found["diff"] = [{"before_header": header, "after_header": header, **difference(shown[0], made, shown[1])}]
    return found


def absent(ctx: Context, store: Store, rollout: Rollout) -> dict[str, t.Any]:
    """Unload the model, and delete its files if that was asked for."""
    params, server = ctx.params, rollout.server
    stored, indexes = store.read(), rollout.indexes()
    loaded = {pod: served(index) for pod, index in indexes.items()}
    if params["delete_data"] and not ctx.check:
        stored = store.verify() if stored.files or stored.config or any(loaded.values()) else stored
    if server and params["model"] in server.load_models and stored.config:
        raise InvalidInput(
            f"{server.ref} loads model {params['model']} when it starts (load_models), and would not start without it.",
            "Take it out of load_models first.",
            ref=server.ref,
        )
    if server and server.starts_with(params["model"]) and stored.config and not params["delete_data"]:
        raise InvalidInput(
            f"A replica of {server.ref} that starts would load model {params['model']} again, because the repository has it.",
            "Set delete_data: true to delete its files, too.",
            ref=server.ref,
        )
    deleted = sorted([*stored.files, *([FILE] if stored.config else [])]) if params["delete_data"] else []
    changed = bool(deleted or any(loaded.values()))
    report = (
        remove(store, rollout, stored, delete_data=params["delete_data"]) if changed and not ctx.check else Report()
    )
    found = ctx.result(
        report, uploaded=[], deleted=deleted, versions=[], replicas=loaded if ctx.check else {pod: [] for pod in loaded}
    )
    return {**found, "changed": changed}
