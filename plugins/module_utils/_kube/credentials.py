# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ways to prove who we are. Each can be asked again after the API server said 401.

Private to the collection.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import pathlib
import subprocess
import threading
import typing as t

from .errors import InvalidInput, Unauthorized

_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


@dataclasses.dataclass(frozen=True)
class Proof:
    """What goes along with a request: a header, a client certificate, or neither."""

    authorization: str | None = None
    client_cert: str | None = None
    client_key: str | None = None


class Credentials(t.Protocol):
    """Thread safe."""

    def proof(self) -> Proof:
        """What to send; cheap after the first call."""

    def renew(self, refused: Proof, /) -> bool:
        """Get something else than what was refused. False where there is nothing newer to be had."""


class Anonymous:
    """Nothing to send (a client certificate of the kubeconfig may do)."""

    def proof(self) -> Proof:
        return Proof()

    def renew(self, _refused: Proof, /) -> bool:
        return False


class Token:
    """A bearer token as it stands in the kubeconfig or the options."""

    def __init__(self, token: str) -> None:
        self._proof = Proof(f"Bearer {token}")

    def proof(self) -> Proof:
        return self._proof

    def renew(self, _refused: Proof, /) -> bool:
        return False


class Basic:
    """User and password, for proxies in front of an API server."""

    def __init__(self, username: str, password: str) -> None:
        self._proof = Proof("Basic " + base64.b64encode(f"{username}:{password}".encode()).decode())

    def proof(self) -> Proof:
        return self._proof

    def renew(self, _refused: Proof, /) -> bool:
        return False


class TokenFile:
    """A token that somebody else renews in place, as the kubelet does for service accounts."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._proof: Proof | None = None

    def proof(self) -> Proof:
        if self._proof is None:
            try:
                self._proof = Proof(f"Bearer {self._path.read_text().strip()}")
            except OSError as exc:
                raise InvalidInput(f"The token file {self._path} cannot be read: {exc.strerror or exc}.") from exc
        return self._proof

    def renew(self, refused: Proof, /) -> bool:
        self._proof = None
        return self.proof() != refused


class Exec:
    """A credential plugin (https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins)."""

    def __init__(self, config: dict[str, t.Any], *, folder: pathlib.Path, cluster: dict[str, t.Any]) -> None:
        self._config = config
        self._folder = folder
        self._cluster = cluster
        self._lock = threading.Lock()
        self._proof: Proof | None = None
        if config.get("apiVersion") not in _EXEC_VERSIONS:
            raise InvalidInput(
                f"The credential plugin {config.get('command')} of the kubeconfig has apiVersion {config.get('apiVersion')!r}.",
                hint=f"Supported are {' and '.join(_EXEC_VERSIONS)}.",
            )

    def proof(self) -> Proof:
        with self._lock:
            if self._proof is None:
                self._proof = self._read(self._run())
            return self._proof

    def renew(self, refused: Proof, /) -> bool:
        with self._lock:
            if self._proof == refused:  # else another thread, refused at the same time, has asked already
                self._proof = None
        return True

    def _run(self) -> str:
        command = str(self._config.get("command") or "")
        if "/" in command:
            command = str(self._folder / command)
        added = {item["name"]: item["value"] for item in self._config.get("env") or []}
        try:
            done = subprocess.run(
                [command, *(self._config.get("args") or [])],
                env={**os.environ, **added, "KUBERNETES_EXEC_INFO": json.dumps(self._info())},
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
            )  # fmt: skip
        except FileNotFoundError as exc:
            raise InvalidInput(f"The credential plugin {command} of the kubeconfig is not installed.",
                               hint=self._config.get("installHint")) from exc  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as exc:
            raise Unauthorized(f"The credential plugin {command} of the kubeconfig failed: {exc}.") from exc
        if done.returncode:
            # Its standard output may hold a token, so only the error stream is told.
            raise Unauthorized(f"The credential plugin {command} of the kubeconfig ended with status {done.returncode}: "
                               f"{done.stderr.strip()[-500:] or 'no message'}.")  # fmt: skip
        return done.stdout

    def _info(self) -> dict[str, t.Any]:
        spec: dict[str, t.Any] = {"interactive": False}
        if self._config.get("provideClusterInfo"):
            keys = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")
            spec["cluster"] = {key: self._cluster[key] for key in keys if self._cluster.get(key)}
        return {"apiVersion": self._config["apiVersion"], "kind": "ExecCredential", "spec": spec}

    def _read(self, output: str) -> Proof:
        try:
            status = json.loads(output)["status"]
            token = status.get("token")
            proof = Proof(
                f"Bearer {token}" if token else None, status.get("clientCertificateData"), status.get("clientKeyData")
            )
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            raise Unauthorized(
                f"The credential plugin {self._config.get('command')} did not print an ExecCredential."
            ) from exc
        if proof == Proof():
            raise Unauthorized(
                f"The credential plugin {self._config.get('command')} gave neither a token nor a certificate."
            )
        return proof
