# SPDX-License-Identifier: GPL-3.0-or-later
"""The login of a store in the cluster, the connection to it, its claim and its buckets.

Connections use a forwarded port: a store has no port outside of the cluster, and the API server's HTTP proxy would change requests, so that
their signatures would be invalid.
"""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t
from collections.abc import Iterator, Mapping, Sequence

from ..._core import s3
from ..._core.clock import Clock
from ..._core.errors import Failed, MusterError, NotFound, Unauthorized, Unreachable
from ..._core.sensitive import Sensitive
from ..._kube import forward, servers
from ..._kube.cluster import Cluster, Reads
from ..._kube.made_once import MadeOnce
from ..._kube.objects import Manifest, Ref
from ..._kube.secret_text import encoded, needed_text
from ..._manifests.pods import PodSettings
from .manifests import ACCESS_KEY, PORT, REGION, SECRET_KEY, ObjectStore, login_secret

STORE_KUBERNETES: dict[str, t.Any] = {
    "name": {"type": "str", "default": "store"},
    "namespace": {"type": "str"},
    "kubeconfig": {"type": "raw"},
    "context": {"type": "str"},
}
"""The options that name a store in a cluster."""
_TELLS_WHY = "Module object_store with wait: true says why."
_OWN = ("BucketAlreadyOwnedByYou",)


@dataclasses.dataclass(frozen=True)
class Login:
    """The two keys."""

    access_key: Sensitive
    secret_key: Sensitive


@dataclasses.dataclass(frozen=True)
class Inside:
    """A store in a cluster as this machine reaches it."""

    endpoint: str
    """The address for clients in the cluster."""
    login: Login
    way: forward.Forward


@dataclasses.dataclass(frozen=True)
class Buckets:
    """The buckets of a store. ``missing``: desired buckets that it does not have."""

    names: list[str]
    missing: list[str]


def stored(cluster: Reads, store: ObjectStore) -> Login | None:
    """The login in the Secret; None if there is no Secret."""
    found = cluster.get(Ref("v1", "Secret", store.login, store.namespace))
    needed = f"{ACCESS_KEY} and {SECRET_KEY}"
    return Login(*(needed_text(found, key, needed) for key in (ACCESS_KEY, SECRET_KEY))) if found else None


def login_of(once: MadeOnce, store: ObjectStore, *, runs: bool) -> Login:
    """Return the desired login of STORE: the stored one or, for a new store, a generated one.

    ``runs``: there was a StatefulSet before the login was looked for.
    """
    found = stored(once, store)
    if found:
        return found
    claim = servers.claims_of(store).of_pod(store.pod_name)
    if runs or once.get(claim):
        there = f"the object store {store.namespace}/{store.name} does" if runs else f"{claim} with its objects does"
        raise Failed(
            f"Secret {store.namespace}/{store.login} does not exist, but {there}: clients have a login of which no copy is known here.",
            hint=f"Put back a copy of it. If there is none, create it with new values of {ACCESS_KEY} and {SECRET_KEY}, "
            f"delete pod {store.pod_name}, and give them to the clients.",
        )
    return Login(once.digits(10), once.digits(20))


def secret_of(store: ObjectStore, login: Login) -> Manifest:
    """The Secret with LOGIN."""
    return login_secret(store, encoded({ACCESS_KEY: login.access_key, SECRET_KEY: login.secret_key}))


def forwarded(cluster: Cluster, store: ObjectStore) -> contextlib.AbstractContextManager[forward.Forward]:
    """A local port that leads to STORE."""
    pod = Ref("v1", "Pod", store.pod_name, store.namespace)
    return forward.forwarded(cluster, pod, PORT, _TELLS_WHY)


@contextlib.contextmanager
def inside(where: Mapping[str, t.Any], clock: Clock) -> Iterator[Inside]:
    """The store in the options STORE_KUBERNETES, for the time of the with block."""
    from ..._kube.client import connect

    cluster = connect(where, clock)
    try:
        namespace = where["namespace"] or cluster.namespace
        ref = Ref("apps/v1", "StatefulSet", where["name"], namespace)
        if cluster.get(ref) is None:
            raise NotFound(f"{ref} does not exist.", "Module object_store makes it.", ref=ref)
        store = ObjectStore(name=where["name"], namespace=namespace, pod=PodSettings(image=""))
        login = stored(cluster, store)
        if login is None:
            secret = Ref("v1", "Secret", store.login, namespace)
            raise NotFound(f"{secret}, which has the login of the store, does not exist.", ref=secret)
        with forwarded(cluster, store) as way:
            yield Inside(store.endpoint, login, way)
    finally:
        cluster.close()


def sync(cluster: Cluster, store: ObjectStore, login: Login, desired: Sequence[str], *, check: bool) -> Buckets:
    """Create the missing buckets. None is ever deleted."""
    with forwarded(cluster, store) as way:
        client = s3.client(f"http://{way.address}", login.access_key, login.secret_key, region=REGION, direct=True)
        with _errors(store, way, "list its buckets"):
            have = [row["Name"] for row in client.list_buckets().get("Buckets") or []]
        missing = [name for name in desired if name not in have]
        for name in [] if check else missing:
            with contextlib.suppress(_AlreadyThere), _errors(store, way, f"create bucket {name}"):
                client.create_bucket(Bucket=name)
    return Buckets(sorted({*have, *missing}), missing)


def wait(
    cluster: Cluster, store: ObjectStore, login: Login, desired: Sequence[str], *, timeout: float, progress: t.Callable[[str], None]
) -> Buckets:
    """Wait until the store answers, and create the missing buckets. A pod that has just been deleted still counts as ready for a moment."""

    def observe(cluster: Cluster) -> tuple[Buckets, str | None]:
        return sync(cluster, store, login, desired, check=False), None

    return servers.watch(cluster, store, observe, goal="does not answer", timeout=timeout, progress=progress)


class _AlreadyThere(MusterError):
    """Another run has created the bucket in the meantime."""


def _errors(store: ObjectStore, way: forward.Forward, doing: str) -> contextlib.AbstractContextManager[None]:
    def refused(answer: Mapping[str, t.Any]) -> MusterError:
        code, said, status = s3.code_of(answer)
        if code in _OWN:
            return _AlreadyThere(f"{store}: {said}.")
        if code in s3.BAD_LOGIN:
            return Unauthorized(
                f"{store} does not take the login of Secret {store.namespace}/{store.login} ({code}).",
                f"The pod reads it when it starts: if the Secret was changed since, delete pod {store.pod_name}.",
                details={"code": code},
            )
        return Failed(f"{store} refuses to {doing}: {said or code} (status {status}).", details={"code": code})

    def unreachable(reason: str) -> MusterError:
        return way.trouble or Unreachable(f"{store} gives no answer: {reason}.", _TELLS_WHY)

    return s3.errors(refused, unreachable)
