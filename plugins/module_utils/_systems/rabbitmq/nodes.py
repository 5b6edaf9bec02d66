# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes of RabbitMQ in the cluster: their Secrets, their health, their claims."""

from __future__ import annotations

import base64
import re
import typing as t

from ..._core.brief import listed
from ..._core.errors import Failed, InvalidInput, MusterError, NotFound, Unauthorized, Unreachable
from ..._core.sensitive import Sensitive
from ..._kube import certificates, reasons, servers, storage
from ..._kube.cluster import Cluster, Reads
from ..._kube.made_once import MadeOnce
from ..._kube.objects import ANNOTATION_GENERATED, CONFIG_MAP, Manifest, Ref, group_kind
from ..._kube.ready import stateful_set
from ..._kube.secret_text import encoded, needed_text
from ..._manifests.meta import pinned_tag
from ..._training.status import rank_of
from . import health
from .api import Login
from .converge import converge
from .document import parse
from .inside import NEEDED, administrator, management
from .manifests import COOKIE, PASSWORD, USERNAME, RabbitmqCluster, authority_map, read_live
from .plan import Wanted
from .upgrade import check_hop, enable_flags, release_of

_SURVEY_S = 5.0
# rabbitmq.conf has a comment from # on, variables with $ and quotes; a user with a colon cannot log in by HTTP.
_USER = re.compile(r"[A-Za-z0-9._@-]+")
_PASSWORD = re.compile(r"[A-Za-z0-9._~!@^*+=,:;?/|-]{8,}")


def check_login(login: Login, where: str) -> None:
    """Refuse a name or password that rabbitmq.conf would read as something else."""
    if not _USER.fullmatch(login.user):
        raise InvalidInput(f"{where}: the name of the user is not made of letters, digits and . _ @ -.")
    if not _PASSWORD.fullmatch(login.password.reveal()) or login.password.reveal().startswith("encrypted:"):
        raise InvalidInput(
            f"{where}: the password has fewer than 8 characters, or one that rabbitmq.conf reads as something else.",
            "Take letters, digits and . _ ~ ! @ ^ * + = , : ; ? / | -, without a line break at the end.",
        )


def stored(cluster: Reads, broker: RabbitmqCluster) -> Login | None:
    """The login in the Secret of the administrator, checked; None if there is none yet."""
    try:
        found = administrator(cluster, broker)
    except NotFound:
        return None
    check_login(found, f"Secret {broker.namespace}/{broker.admin}")
    return found


def login_of(once: MadeOnce, broker: RabbitmqCluster, user: str, password: Sensitive | None, *, in_use: bool) -> tuple[Login | None, Login]:
    """The current and the desired login of the administrator. ``in_use``: nodes run, and have a login already."""
    have = stored(once, broker)
    if broker.admin_secret:
        if have is None:
            raise NotFound(
                f"Secret {broker.namespace}/{broker.admin} does not exist.", f"admin_secret names a Secret with the keys {NEEDED}."
            )
        return have, have
    if have is None and in_use and password is None:
        raise Failed(
            f"Secret {broker.namespace}/{broker.admin} does not exist, but the broker does: no copy of its password is known.",
            hint="Put back a copy of it, or set admin_password to the password that the broker has.",
        )
    if have and have.user != user:
        raise InvalidInput(
            f"admin_user: {broker} was made with {have.user}, and {user} is another one.",
            "Keep it; module rabbitmq_definitions makes further administrators.",
        )
    return have, Login(user, password or (have.password if have else once.text(24)))


def secret_manifests(once: MadeOnce, broker: RabbitmqCluster, login: Login, *, in_use: bool) -> list[Manifest]:
    """The Secrets of BROKER, and the CA certificate for clients. Stored values are kept, missing ones are generated."""
    data = {USERNAME: Sensitive(login.user), PASSWORD: login.password}
    made = [] if broker.admin_secret else [_secret(broker, broker.admin, data, "password", "kubernetes.io/basic-auth")]
    made.append(_cookie_secret(once, broker, in_use=in_use))
    if broker.tls:
        leaf = certificates.Leaf(broker.server_tls, broker.name, broker.hosts)
        name = f"{broker.name}-ca"
        pairs = certificates.secrets(once, broker.namespace, name, [leaf], broker.labels, in_use=in_use)
        trusted = base64.b64decode(pairs[-1]["data"]["ca.crt"]).decode()
        made += [*pairs, authority_map(broker, trusted)]
    return made


def authority_of(objects: t.Sequence[Manifest]) -> str | None:
    """The certificate of the authority among the objects of ``secret_manifests``; None without TLS."""
    return next((str(item["data"]["ca.crt"]) for item in objects if group_kind(item) == CONFIG_MAP), None)


def _cookie_secret(once: MadeOnce, broker: RabbitmqCluster, *, in_use: bool) -> Manifest:
    ref = Ref("v1", "Secret", broker.node_secret, broker.namespace)
    found = once.get(ref)
    if found is None and in_use and broker.replicas > 1:
        raise Failed(
            f"{ref} does not exist, but the nodes that trust each other by it do. With another one no node could come back to the others.",
            hint="Put back a copy of it. If there is none, delete the StatefulSet and run again: all nodes then start with a new one.",
        )
    cookie = needed_text(found, COOKIE, COOKIE) if found else once.digits(32)
    return _secret(broker, broker.node_secret, {COOKIE: cookie}, "cookie", "Opaque")


def _secret(broker: RabbitmqCluster, name: str, values: t.Mapping[str, Sensitive], what: str, kind: str) -> Manifest:
    metadata = {"name": name, "namespace": broker.namespace, "labels": broker.labels, "annotations": {ANNOTATION_GENERATED: what}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": kind, "data": encoded(values)}


def change_password(
    cluster: Cluster, broker: RabbitmqCluster, have: Login | None, desired: Login, *, warn: t.Callable[[str], None]
) -> None:
    """Give the administrator of a running broker the desired password, before the Secret has it.

    If a run is killed between the two, the next one finds that the new password is set, and writes the Secret.
    """
    if have == desired:
        return
    user = {"name": desired.user, "password": desired.password.reveal()}
    with management(cluster, broker, have or desired) as api:
        converge(Wanted(present=parse({"users": [user]}), absent=parse({})), api, check=False, warn=warn)


def prepare_upgrade(cluster: Cluster, broker: RabbitmqCluster, live: Manifest, *, check: bool, warn: t.Callable[[str], None]) -> None:
    """Prepare a change of the image: refuse a release that cannot follow the running one, and enable the feature flags that it needs."""
    now = read_live(live)
    if now.pod.image == broker.pod.image:
        return
    to, told = release_of(pinned_tag(broker.pod.image, "")), "the name of the image has no version"
    try:
        with management(cluster, now, request_timeout=_SURVEY_S, startup_timeout=0) as api:
            was = release_of((api.get("overview") or {}).get("rabbitmq_version", ""))
            if was and to:
                check_hop(was, to)
                if to[:2] != was[:2]:
                    enable_flags(api, was, to, check=check)
                return
    except (Unreachable, Unauthorized, NotFound) as error:
        told = error.message
    warn(f"image: it is not known whether {broker.pod.image} may follow the running release: {told.rstrip('.')}.")


def wait(cluster: Cluster, broker: RabbitmqCluster, *, timeout: float, progress: t.Callable[[str], None]) -> health.Row:
    """Wait until every node runs, knows the others and has no alarm. Return the broker's report."""

    def observe_once(cluster: Cluster) -> tuple[health.Row, str | None]:
        missing = _missing(cluster, broker, servers.pods_of(cluster, broker))
        if missing:
            return {}, listed(missing)
        try:
            with management(cluster, broker, request_timeout=_SURVEY_S, startup_timeout=0) as api:
                found = health.survey(api)
        except Unauthorized as exc:
            raise Failed(
                f"{exc.message} The login is that of Secret {broker.namespace}/{broker.admin}.",
                hint="The broker reads it at its first start only, and the claims may be older than the Secret: put the old password back.",
            ) from exc
        except MusterError as exc:
            return {}, exc.message
        known = len(found["nodes"])
        alone = [] if known == broker.replicas else [f"{known} of {broker.replicas} nodes know each other"]
        return found, listed([*alone, *found["problems"]])

    return servers.watch(cluster, broker, observe_once, goal="is not healthy", timeout=timeout, progress=progress)


def _missing(cluster: Cluster, broker: RabbitmqCluster, pods: list[Manifest]) -> list[str]:
    """Return the reasons why pods are not ready with the present template, one line for each; empty if they are."""
    live = cluster.get(servers.stateful_set_of(broker))
    found = [f"{pod['metadata']['name']}: {why}" for pod in pods if (why := _trouble(cluster, broker, pod))]
    if len(pods) < broker.replicas and live:
        found.append(reasons.why_no_pods(cluster, live) or f"{len(pods)} of {broker.replicas} nodes have a pod")
    return found or list(filter(None, [stateful_set(live).reason]))


def _trouble(cluster: Cluster, broker: RabbitmqCluster, pod: Manifest) -> str:
    rank = rank_of(pod)
    if rank.ready:
        return ""
    claim = servers.claims_of(broker).of_pod(pod["metadata"]["name"])
    unbound = storage.why_unbound(cluster, claim) if rank.phase == "Pending" else ""
    return unbound or rank.reason or ("has not started yet" if rank.phase == "Running" else rank.phase)
