# SPDX-License-Identifier: GPL-3.0-or-later
"""HMAC keys of Google that are kept in Secrets of Kubernetes: the one place that knows both sides.

The secret of a key goes from Google's answer into the Secret in this process, and nowhere else.
"""

from __future__ import annotations

import base64
import typing as t

from .._core.brief import as_diff
from .._core.errors import Failed, InvalidInput, MusterError, Overtaken
from .._core.sensitive import Sensitive
from .._gcp.api import Api
from .._gcp.hmac_keys import ACTIVE, Decision, HmacKeys, Note, decide, decide_absent
from .._gcp.plan import Step
from .._kube.cluster import Cluster
from .._kube.engine import apply_objects
from .._kube.objects import LABEL_OWNER, Manifest, Ref, annotations_of, labels_of
from .._kube.removal import delete_objects
from .._kube.report import Action, Change
from .._manifests.meta import owner_of
from .gcp import api_of
from .run import Context

ACCESS_KEY, SECRET_KEY = "access_key", "secret_key"
ANNOTATION_BEFORE = "muster.ml/hmac-keys-before"
ANNOTATION_REPLACED = "muster.ml/hmac-keys-replaced"
APPLIED, DELETED = "kubernetes:secrets.apply", "kubernetes:secrets.delete"
Result = dict[str, t.Any]


class Keeper:
    """One Secret, with what it says of keys."""

    def __init__(self, cluster: Cluster, name: str, namespace: str) -> None:
        self.ref = Ref("v1", "Secret", name, namespace)
        self.owner = owner_of("gcs_hmac_key", namespace, name)
        self._cluster = cluster
        self.read()

    def read(self) -> None:
        """Read the Secret. What is written from here on is written into this version of it only (see made_once.py)."""
        self._item = self._cluster.get(self.ref)

    @property
    def exists(self) -> bool:
        return self._item is not None

    @property
    def ours(self) -> bool:
        return self._item is None or labels_of(self._item).get(LABEL_OWNER) == self.owner

    @property
    def note(self) -> Note:
        data, annotations = (self._item or {}).get("data") or {}, annotations_of(self._item or {})
        before = annotations.get(ANNOTATION_BEFORE)
        return Note(
            base64.b64decode(Sensitive(data.get(ACCESS_KEY, "")).reveal()).decode(),
            None if before is None else tuple(before.split()),
            tuple(annotations.get(ANNOTATION_REPLACED, "").split()),
        )

    def announce(self, states: t.Iterable[str]) -> None:
        """Note the keys that there are, before one is made. What is kept stays."""
        self._apply(self._data(), {ANNOTATION_BEFORE: " ".join(sorted(states))})

    def keep(self, access_id: str, secret: Sensitive, replaced: t.Sequence[str]) -> None:
        encoded = {ACCESS_KEY: access_id, SECRET_KEY: secret.reveal()}
        data = {key: base64.b64encode(value.encode()).decode() for key, value in encoded.items()}
        self._apply(data, {ANNOTATION_REPLACED: " ".join(replaced)} if replaced else {})

    def clear(self) -> None:
        """Delete the note."""
        self._apply(self._data(), {})

    def check(self) -> None:
        """Dry-run the write of the Secret, before a key is created."""
        self._apply(self._data(), {}, check=True)

    def delete(self) -> None:
        delete_objects(self._cluster, None, self.owner, check=False, namespace=self.ref.namespace, delete_data=True, wait=False)

    def _data(self) -> dict[str, str]:
        data = (self._item or {}).get("data") or {}
        return {key: Sensitive(value).reveal() for key, value in data.items() if key in (ACCESS_KEY, SECRET_KEY)}

    def _apply(self, data: dict[str, str], annotations: dict[str, str], *, check: bool = False) -> None:
        metadata = {"name": self.ref.name, "namespace": self.ref.namespace, "annotations": annotations}
        secret: Manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
        read = {self.ref: str(self._item["metadata"]["resourceVersion"]) if self._item else None}
        apply_objects(self._cluster, [secret], owner=self.owner, check=check, namespace=self.ref.namespace, made_of=read)
        if not check:
            self.read()


class Run:
    """One run of the module, with the requests that it sent, or would send, in ``actions``."""

    def __init__(self, keys: HmacKeys, keeper: Keeper, api: Api, *, check: bool) -> None:
        self.keys, self.keeper, self.api, self.check = keys, keeper, api, check
        self.actions: list[str] = []
        self.states = keys.read(api)
        self.unknown: tuple[str, ...] = ()
        self.overtaken = ""

    def present(self, *, rotate: bool) -> None:
        """Create the key if needed. If another run wrote one at the same moment, that is used, and that run deletes the key it replaced."""
        before = self.keeper.note.access_id
        try:
            self._present(rotate=rotate)
        except Overtaken as exc:
            self.overtaken = f"{exc.message} The key in it is used"
            self.keeper.read()
            self.states = self.keys.read(self.api)
            self.present(rotate=rotate and self.keeper.note.access_id == before)

    def _present(self, *, rotate: bool) -> None:
        note = self.keeper.note
        found = decide(self.states, note, rotate=rotate)
        self.unknown = found.unknown
        if found.changes and not self.check:
            self.keeper.check()
        if found.make:
            self._make(note, found)
        if not self.overtaken:
            self._remove(found.remove)
        if found.clear:
            self._write("clear the note", self.keeper.clear)

    def written(self, *, existed: bool) -> list[Result]:
        """The Secret, as other modules list objects, where it was written or deleted or would be."""
        verbs = {action.split(" ")[0] for action in self.actions}
        done: Action = "deleted" if DELETED in verbs else "updated" if existed else "created"
        return [Change(self.keeper.ref, done).result()] if verbs & {APPLIED, DELETED} else []

    def absent(self) -> None:
        found = decide_absent(self.states, self.keeper.note)
        self.unknown = found.unknown
        self._remove(found.remove)
        self._write("delete", self.keeper.delete, DELETED)

    def _make(self, note: Note, found: Decision) -> None:
        if note.before is None:
            self._write("note which keys there are", lambda: self.keeper.announce(self.states))
        answer = self._send(self.keys.creation())
        # From here on the secret is nowhere but in this wrapper and in the Secret.
        access_id, secret = str((answer.get("metadata") or {}).get("accessId", "")), Sensitive(answer.pop("secret", ""))
        self._write("write the key", lambda: self._keep(access_id, secret, found.remove))

    def _keep(self, access_id: str, secret: Sensitive, replaced: t.Sequence[str]) -> None:
        try:
            self.keeper.keep(access_id, secret, replaced)
        except Overtaken:
            self.states[access_id] = ACTIVE
            self._remove([access_id])
            raise
        except MusterError as error:
            raise Failed(
                f"{self.keys.label}: {access_id} was made, and its secret could not be written into {self.keeper.ref}: {error.message}",
                hint=f"{error.hint or ''} Run again for another key. {_deletion((access_id,))}".strip(),
            ) from error

    def _remove(self, ids: t.Iterable[str]) -> None:
        for one in ids:
            for step in self.keys.removal(one, self.states[one]):
                self._send(step)

    def _send(self, step: Step) -> dict[str, t.Any]:
        self.actions.append(str(step))
        return {} if self.check else self.api.write(self.keys.label, step)

    def _write(self, says: str, write: t.Callable[[], None], verb: str = APPLIED) -> None:
        self.actions.append(f"{verb} ({says})")
        if not self.check:
            write()


def execute(ctx: Context) -> Result:
    """Make or delete the key, and report."""
    params, absent = ctx.params, ctx.params["state"] == "absent"
    keys = HmacKeys(params["project"], params["email"])
    api = api_of(ctx, lenient=ctx.check or absent)
    keeper = Keeper(ctx.cluster, params["secret"]["name"], params["secret"]["namespace"] or ctx.cluster.namespace)
    result = _converge(Run(keys, keeper, api, check=ctx.check), absent=absent, rotate=params["rotate"], warn=ctx.warn)
    if ctx.check and not absent:
        ctx.promised.objects.add(("Secret", str(keeper.ref.namespace), keeper.ref.name))
    if not ctx.diff:
        result.pop("diff")
    return result


def _converge(run: Run, *, absent: bool, rotate: bool, warn: t.Callable[[str], None]) -> Result:
    """Create or delete the key, and warn of what was kept or needs the user's attention."""
    keeper, before, existed = run.keeper, run.keeper.note.access_id, run.keeper.exists
    kept = ""
    if not keeper.ours and not absent:
        raise InvalidInput(
            f"{keeper.ref} exists and was not made by this module, and it is left as it is",
            hint="Choose another name for the Secret, or delete it",
        )
    if not absent:
        run.present(rotate=rotate)
    elif keeper.exists and keeper.ours:
        run.absent()
    else:
        kept = _kept(run)
    after = keeper.note.access_id if keeper.exists or not run.check else ""
    states = run.states if run.check else run.keys.read(run.api)
    for text in filter(None, [kept, run.overtaken, _unknown(run), _disabled(run, after, states)]):
        warn(text)
    return {
        "changed": bool(run.actions),
        "actions": run.actions,
        "objects": run.written(existed=existed),
        "key": {"access_id": after, "state": states[after], "service_account": run.keys.email} if after in states else {},
        "diff": [{"before": {"access_id": before}, "after": {"access_id": _shown(run, after, absent=absent)}}, as_diff(run.actions)],
        **({"kept": kept} if kept else {}),
    }


def _shown(run: Run, after: str, *, absent: bool) -> str:
    if run.check and any("hmacKeys.create" in action for action in run.actions):
        return "made by the run"
    return "" if absent else after


def _disabled(run: Run, used: str, states: t.Mapping[str, str]) -> str:
    if states.get(used, ACTIVE) == ACTIVE or any("hmacKeys.create" in action for action in run.actions):
        return ""
    return (
        f"{run.keys.label}: {used}, which {run.keeper.ref} names, is {states[used]}, and clients that use it are refused. Activate it "
        f"(gcloud storage hmac update {used} --activate), or run with rotate: true for another one"
    )


def _unknown(run: Run) -> str:
    if not run.unknown:
        return ""
    return (
        f"{run.keys.label}: {', '.join(run.unknown)} appeared after a run that was ended before it could write its key into "
        f"{run.keeper.ref}. Nothing tells that run's key from one of another cluster with the same account, so none of them is deleted. "
        f"{_deletion(run.unknown)}"
    )


def _deletion(ids: t.Sequence[str]) -> str:
    """Return the commands that delete keys which this module does not delete."""
    ways = "; ".join(f"gcloud storage hmac update {one} --deactivate && gcloud storage hmac delete {one}" for one in ids)
    return f"Delete what nothing uses: {ways}"


def _kept(run: Run) -> str:
    if not run.states:
        return ""
    where = "was not made by this module" if run.keeper.exists else "does not exist"
    return (
        f"{', '.join(sorted(run.states))} of {run.keys.email} were kept: {run.keeper.ref} {where}, so nothing says whose they are. "
        "They go with the service account"
    )
