# SPDX-License-Identifier: GPL-3.0-or-later
"""Ways to authenticate. Each can be refreshed after the API server answered 401."""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import json
import os
import pathlib
import subprocess
import threading
import typing as t

from .._core.clock import system_utc
from .._core.errors import InvalidInput, Unauthorized
from .._core.sensitive import Sensitive
from . import headers, settings

_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_EXEC_TIMEOUT = 60
_EXEC_EXTENSION = "client.authentication.k8s.io/exec"

Now = t.Callable[[], dt.datetime]


@dataclasses.dataclass(frozen=True)
class RequestAuth:
    """The credentials of one request: a header, a client certificate, or neither."""

    authorization: Sensitive | None = None
    client_cert: str | None = None
    client_key: Sensitive | None = None


def bearer(token: str, source: str) -> Sensitive:
    """The header that carries a token."""
    return Sensitive(headers.sendable(f"Bearer {token}", f"The token of {source}"))


class Credentials(t.Protocol):
    """A source of credentials, safe to share between threads."""

    def auth(self) -> RequestAuth:
        """The credentials to send; cheap after the first call."""

    def refresh(self, refused: RequestAuth, /) -> bool:
        """Replace refused credentials. False if there are no newer ones."""


@dataclasses.dataclass(frozen=True)
class Fixed:
    """Credentials that stay as they are: a header, or nothing (the kubeconfig may have a client certificate)."""

    authorization: Sensitive | None = None

    def auth(self) -> RequestAuth:
        return RequestAuth(self.authorization)

    def refresh(self, _refused: RequestAuth, /) -> bool:
        return False


def token_of(token: Sensitive, source: str) -> Fixed:
    """A bearer token from the kubeconfig or the options. ``source`` is for messages."""
    return Fixed(bearer(token.reveal(), source))


def basic(username: str, password: Sensitive | None) -> Fixed:
    """User and password, for proxies in front of an API server."""
    pair = f"{username}:{password.reveal() if password else ''}".encode("utf-8", "surrogateescape")
    return Fixed(Sensitive("Basic " + base64.b64encode(pair).decode()))


class TokenFile:
    """A file whose token something else renews, as the kubelet does for service accounts."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._auth: RequestAuth | None = None

    def auth(self) -> RequestAuth:
        auth = self._auth
        if auth is None:
            # Editors and echo end a file with a line break. Like client-go, strip it, but only from files.
            token = settings.read(self._path, "tokenFile").strip()
            if not token:
                raise InvalidInput(f"The token file {self._path} is empty.")
            auth = self._auth = RequestAuth(bearer(token, f"file {self._path}"))
        return auth

    def refresh(self, refused: RequestAuth, /) -> bool:
        self._auth = None
        return self.auth() != refused


class Exec:
    """A credential plugin (https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins)."""

    def __init__(self, config: settings.Settings, cluster: t.Mapping[str, t.Any], now: Now | None = None) -> None:
        """``cluster`` is what the plugin learns with provideClusterInfo."""
        config.refuse_unknown("apiVersion", "args", "command", "env", "installHint", "interactiveMode", "provideClusterInfo")
        self._config = config
        self._cluster = cluster
        self._now = now or system_utc
        self._lock = threading.Lock()
        self._auth: RequestAuth | None = None
        self._expires: dt.datetime | None = None
        self._command = config.text("command")
        if "/" in self._command:
            self._command = str(config.folder / self._command)
        self._check()

    def _check(self) -> None:
        if not self._command:
            raise InvalidInput(f"{self._config.where} has no command.")
        version = self._config.text("apiVersion")
        if version not in _EXEC_VERSIONS:
            raise InvalidInput(f"{self._plugin} has apiVersion {version!r}.",
                               hint=f"Supported are {' and '.join(_EXEC_VERSIONS)}.")  # fmt: skip
        mode = self._config.text("interactiveMode")
        if mode == "Always":
            raise InvalidInput(f"{self._plugin} asks at a terminal (interactiveMode Always), and a playbook has none.",
                               hint="Use one that asks nothing, such as that of a service account.")  # fmt: skip
        if mode not in ("", "Never", "IfAvailable"):
            raise InvalidInput(f"{self._plugin} has interactiveMode {mode!r}.", hint="It is Never, IfAvailable or Always.")

    @property
    def _plugin(self) -> str:
        """The plugin as messages name it."""
        return f"The credential plugin {self._command} of the kubeconfig"

    def auth(self) -> RequestAuth:
        with self._lock:
            if self._auth is None or (self._expires and self._now() >= self._expires):
                self._auth, self._expires = self._read(self._run())
            return self._auth

    def refresh(self, refused: RequestAuth, /) -> bool:
        with self._lock:
            if self._auth == refused:  # otherwise another thread has replaced them already
                self._auth = None
        return True

    def _run(self) -> Sensitive:
        """The output of the plugin. Arguments and environment may hold secrets, so no message contains them."""
        added = {item.text("name"): item.text("value") for item in self._config.items("env")}
        try:
            done = subprocess.run(
                [self._command, *self._config.texts("args")],
                env={**os.environ, **added, "KUBERNETES_EXEC_INFO": json.dumps(self._info())},
                stdin=subprocess.DEVNULL, capture_output=True, timeout=_EXEC_TIMEOUT, check=False,
            )  # fmt: skip
        except FileNotFoundError:
            failure: Exception = InvalidInput(f"{self._plugin} is not installed.", hint=self._config.text("installHint"))
        except subprocess.TimeoutExpired:
            failure = Unauthorized(f"{self._plugin} did not end within {_EXEC_TIMEOUT} s.",
                                   hint="It may wait for a login that it cannot ask for.")  # fmt: skip
        except (OSError, ValueError) as exc:
            failure = Unauthorized(f"{self._plugin} failed: {getattr(exc, 'strerror', None) or 'it cannot be started'}.")
        else:
            if done.returncode == 0:
                return Sensitive(done.stdout)
            # Its standard output may hold a token, so the message quotes only standard error.
            said = done.stderr.decode(errors="replace").strip()[-500:] or "no message"
            failure = Unauthorized(f"{self._plugin} ended with status {done.returncode}: {said}.")
        raise failure

    def _info(self) -> dict[str, t.Any]:
        spec: dict[str, t.Any] = {"interactive": False}
        if self._config.flag("provideClusterInfo"):
            spec["cluster"] = self._cluster
        return {"apiVersion": self._config.text("apiVersion"), "kind": "ExecCredential", "spec": spec}

    def _read(self, output: Sensitive) -> tuple[RequestAuth, dt.datetime | None]:
        """The credentials in the plugin's output, and when they expire (None: unknown)."""
        try:
            printed = json.loads(output.reveal())
        except ValueError:
            printed = None  # raised below, not chained to one that quotes the output
        status = printed.get("status") if isinstance(printed, dict) else None
        if not isinstance(status, dict):
            raise Unauthorized(f"{self._plugin} did not print an ExecCredential with a status.")
        if printed.get("apiVersion", self._config.text("apiVersion")) != self._config.text("apiVersion"):
            raise Unauthorized(f"{self._plugin} printed another apiVersion than the kubeconfig says.",
                               hint="Update the plugin, or write the kubeconfig again.")  # fmt: skip
        token, cert, key = (status.get(field) for field in ("token", "clientCertificateData", "clientKeyData"))
        if not all(isinstance(value, str | None) for value in (token, cert, key)):
            raise Unauthorized(f"{self._plugin} printed a token, certificate or key that is not text.")
        if not token and not cert and not key:
            raise Unauthorized(f"{self._plugin} gave neither a token nor a certificate.")
        if bool(cert) != bool(key):
            raise Unauthorized(f"{self._plugin} gave only one of certificate and key.")
        authorization = bearer(token, f"credential plugin {self._command}") if token else None
        auth = RequestAuth(authorization, cert or None, Sensitive(key) if key else None)
        return auth, self._expiry(status.get("expirationTimestamp"))

    def _expiry(self, text: t.Any) -> dt.datetime | None:
        """The time from which the plugin is run again without asking the API server, by this machine's clock.

        None for a time that has passed already: the clocks of this machine and of the issuer differ, and only a 401 tells the truth.
        """
        if not text:
            return None
        try:
            found = dt.datetime.fromisoformat(str(text))
        except ValueError as exc:
            raise Unauthorized(f"{self._plugin} printed an expirationTimestamp that is no time: {text!r}.") from exc
        found = found if found.tzinfo else found.replace(tzinfo=dt.UTC)
        return found if found > self._now() else None


def cluster_info(cluster: settings.Settings, ca: str | None) -> dict[str, t.Any]:
    """The cluster as a credential plugin gets it (the type Cluster of client.authentication.k8s.io/v1)."""
    texts = {key: cluster.text(key) for key in ("server", "tls-server-name", "proxy-url")}
    info: dict[str, t.Any] = {key: value for key, value in texts.items() if value}
    info |= {key: True for key in ("insecure-skip-tls-verify", "disable-compression") if cluster.flag(key)}
    if ca:
        info["certificate-authority-data"] = base64.b64encode(ca.encode()).decode()
    for extension in cluster.items("extensions"):
        if extension.text("name") == _EXEC_EXTENSION:
            info["config"] = extension.revealed().get("extension")
    return info
