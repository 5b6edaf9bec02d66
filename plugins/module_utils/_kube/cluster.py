# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface between the engine and a cluster.

``client.HttpCluster`` is the real one; tests use ``FakeCluster`` of tests/unit/conftest.py. Every method may be called from several
threads at once and raises only errors of ``errors``.
"""

from __future__ import annotations

import typing as t

from .._core.clock import Clock
from .kinds import Kinds
from .objects import FIELD_MANAGER, Event, Listing, Manifest, Ref, ServedKind

if t.TYPE_CHECKING:
    from .tunnel import Tunnel


class Reads(t.Protocol):
    """A reader of single objects: a cluster, or one attempt to create generated objects (made_once.py)."""

    def get(self, ref: Ref) -> Manifest | None:
        """The object, or None if it (or its kind or namespace) does not exist."""


class Cluster(t.Protocol):
    """The interface to one Kubernetes API server. Secret values of returned objects are Sensitive (redact.py)."""

    @property
    def server(self) -> str:
        """The address of the API server, which tells clusters apart."""

    @property
    def namespace(self) -> str:
        """The namespace of the connection's context, for objects that name none."""

    @property
    def clock(self) -> Clock:
        """The clock by which it is waited for."""

    @property
    def certificates(self) -> t.Mapping[str, str | None]:
        """The certificates in the settings of the connection (PEM): ``client certificate`` and ``ca certificate``."""

    def warnings(self) -> t.Sequence[str]:
        """The API server's warnings so far (deprecated versions, suspicious fields), each once."""

    def close(self) -> None:
        """Close the connections. A later call opens new ones."""

    def resource(self, api_version: str, kind: str, *, refresh: bool = False) -> ServedKind | None:
        """Return how the kind is served, or None if the cluster does not know it. ``refresh`` repeats discovery."""

    def get(self, ref: Ref) -> Manifest | None:
        """The object, or None if it (or its kind or namespace) does not exist."""

    def list(self, api_version: str, kind: str, namespace: str | None = None, label_selector: str | None = None) -> Listing:
        """List the objects of a kind, in all namespaces if none is given. The list is empty if the kind is unknown."""

    def list_metadata(
        self, api_version: str, kind: str, namespace: str | None = None, label_selector: str | None = None, *, limit: int | None = None
    ) -> Listing:
        """List apiVersion, kind and metadata of objects, of the first ``limit`` objects only.

        NotFound if the kind is no longer served: a decision about deletion must not mistake that for an empty list.
        """

    def kinds(self) -> Kinds:
        """List each (apiVersion, kind, resource) that can be listed and deleted, in the group's preferred version."""

    def apply(self, manifest: Manifest, *, dry_run: bool, force_conflicts: bool = False, manager: str = FIELD_MANAGER) -> Manifest:
        """Server-side apply; the object as stored (or as it would be).

        ``metadata.uid`` limits it to that very object, ``metadata.resourceVersion`` to that version of it: Conflict otherwise.
        """

    def create(self, manifest: Manifest, *, dry_run: bool, manager: str = FIELD_MANAGER) -> Manifest:
        """Create an object; Conflict if there is one of its name. The manager has its fields by operation Update, not Apply."""

    def delete(
        self,
        ref: Ref,
        *,
        dry_run: bool,
        propagation: str = "Background",
        uid: str | None = None,
        resource_version: str | None = None,
        grace_period_seconds: int | None = None,
    ) -> bool:
        """Delete the object; False if it does not exist, or has another uid or version than the given one.

        ``grace_period_seconds`` of 0 takes a pod out of the API at once; without it the pod's own grace period counts.
        """

    def patch(self, ref: Ref, patch: Manifest, *, subresource: str | None = None, dry_run: bool) -> Manifest:
        """JSON merge patch of an object that exists."""

    def watch(
        self,
        api_version: str,
        kind: str,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        name: str | None = None,
        resource_version: str = "",
        timeout: float,
    ) -> t.Iterator[Event]:
        """Events after ``resource_version``; ends after ``timeout`` seconds; raises Gone when it must be listed again."""

    def logs(self, namespace: str, pod: str, *, container: str | None = None, tail_lines: int | None = None, **flags: bool) -> str:
        """The log of one container; of the main one if none is named.

        FLAGS are ``previous``: that of its run before; ``timestamps``: each line begins with its time.
        """

    def read(self, path: str, *, timeout: float) -> Manifest:
        """The JSON at PATH of the API server, for what is no object of a kind. ``timeout`` bounds all tries."""

    def proxy_get(self, namespace: str, pod: str, port: int, path: str, *, timeout: float) -> tuple[int, str]:
        """HTTP GET through the API server's pod proxy: status and body."""

    def port_forward(self, namespace: str, pod: str, port: int, *, timeout: float) -> Tunnel:
        """A connection to a port of a pod, for servers with a login of their own. ``timeout`` bounds its making."""

    def execute(self, namespace: str, pod: str, container: str, command: t.Sequence[str], *, timeout: float) -> tuple[str, str]:
        """Run a command in a container: its output, and why it failed or is not whole (empty if it is)."""

    def version(self) -> str:
        """The server's version, as ``v1.36.3``."""

    def events_of(self, ref: Ref, uid: str | None = None) -> t.Sequence[Manifest]:
        """Up to a hundred events about an object, unordered; with ``uid`` only about that very object."""

    def guarded(self, check: t.Callable[[], None]) -> Cluster:
        """The same cluster, which calls CHECK before each try of a request that writes. An error of CHECK ends the request."""

    def within(self, seconds: float) -> Cluster:
        """The same cluster with one deadline, so many seconds from now, for all requests together, retries included."""
