# SPDX-License-Identifier: GPL-3.0-or-later
"""No credential gets out: not by printing what holds it, not by any exception, its causes and its traceback."""

from __future__ import annotations

import base64
import copy
import json
import pathlib
import pickle
import traceback
import typing as t

import pytest
import yaml

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput, MusterError
from ansible_collections.muster.ml.plugins.module_utils._core.pace import Limits
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._kube import kubeconfig
from ansible_collections.muster.ml.plugins.module_utils._kube.client import HttpCluster, Transport
from ansible_collections.muster.ml.plugins.module_utils._kube.credentials import RequestAuth
from ansible_collections.muster.ml.plugins.module_utils._kube.kubeconfig import Connection
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock

CANARY = "s3cr3t-canary"
ENCODED = base64.b64encode(CANARY.encode()).decode()
# Base64 of other things around it looks otherwise at its edges.
MARKS = (CANARY, ENCODED[:-4], base64.b64encode(f"x:{CANARY}".encode()).decode()[4:-4])
SOON = Limits(connect=0.2, answer=0.2, first_contact=0.05, outage=0.05)
NOWHERE = "https://127.0.0.1:1"


def config(user: t.Any, **cluster: t.Any) -> dict[str, t.Any]:
    return {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": NOWHERE, **cluster}}],
        "users": [{"name": "a", "user": user}],
    }


def plugin(folder: pathlib.Path, body: str, **more: t.Any) -> dict[str, t.Any]:
    path = folder / "plugin"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    given = {"command": str(path), "apiVersion": "client.authentication.k8s.io/v1", "args": ["--secret", CANARY]}
    return {"exec": given | {"env": [{"name": "A", "value": CANARY}]} | more}


def said(exc: BaseException) -> str:
    """All that Python, or a curious callback, could print of an exception: the chain, and what the links of it carry."""
    found, seen = ["".join(traceback.format_exception(exc))], set()
    links: list[BaseException | None] = [exc]
    while links:
        link = links.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            found += [str(link), repr(link), repr(link.args), repr(vars(link))]
            found += [repr(getattr(link, name, "")) for name in ("doc", "object", "cmd", "output", "stdout", "stderr")]
            links += [link.__cause__, link.__context__]
    return "\n".join(found)


def ask(**params: t.Any) -> None:
    HttpCluster(Transport(kubeconfig.load(params, {}), FakeClock(), SOON)).get(Ref("v1", "Pod", "p", "ml"))


def clean(text: str) -> bool:
    return not any(mark in text for mark in MARKS)


USERS: dict[str, t.Any] = {
    "token": {"token": CANARY},
    "token with a line break": {"token": f"{CANARY}\n"},
    "token with a control character": {"token": f"{CANARY}\x01x"},
    "token that is a list": {"token": [CANARY]},
    "password": {"username": "x", "password": CANARY},
    "password that is a mapping": {"username": "x", "password": {CANARY: 1}},
    "both": {"token": CANARY, "username": "x", "password": CANARY},
    "key": {"client-certificate-data": ENCODED, "client-key-data": ENCODED},
    "key that is not base64": {"client-certificate-data": ENCODED, "client-key-data": f"{CANARY}!"},
    "unknown setting": {"token": CANARY, "tokenfile": CANARY},
    "no mapping": CANARY,
    "auth-provider": {"auth-provider": {"name": "gcp", "config": {"access-token": CANARY}}},
    "impersonation": {"token": CANARY, "as-uid": "7"},
}


@pytest.mark.parametrize("user", USERS.values(), ids=USERS)
@pytest.mark.parametrize("form", ["mapping", "file"])
def test_a_kubeconfig_gives_nothing_away(user: t.Any, form: str, tmp_path: pathlib.Path) -> None:
    given: t.Any = config(user)
    if form == "file":
        (tmp_path / "kc").write_text(yaml.safe_dump(given))
        given = str(tmp_path / "kc")
    with pytest.raises(MusterError) as caught:
        ask(kubeconfig=given)
    assert clean(said(caught.value))


PLUGINS = {
    "works": (f"""printf '{{"status": {{"token": "{CANARY}"}}}}'""", {}),
    "line break": (f"""printf '{{"status": {{"token": "{CANARY}\\\\n"}}}}'""", {}),
    "no JSON": (f"echo {CANARY}", {}),
    "no mapping": (f"""printf '["{CANARY}"]'""", {}),
    "no status": (f"""printf '{{"state": {{"token": "{CANARY}"}}}}'""", {}),
    "no text": (f"""printf '{{"status": {{"token": ["{CANARY}"]}}}}'""", {}),
    "half a pair": (f"""printf '{{"status": {{"clientKeyData": "{CANARY}"}}}}'""", {}),
    "no certificate": (f"""printf '{{"status": {{"clientKeyData": "{CANARY}", "clientCertificateData": "x"}}}}'""", {}),
    "fails": (f"echo {CANARY}; exit 3", {}),
    "bytes": (f"printf '\\377{CANARY}'", {}),
    "hangs": ("sleep 5", {}),
    "not there": ("", {"command": "no-such-plugin"}),
    "no program": ("", {"command": "/"}),
    "NUL": ("", {"args": [f"{CANARY}\0"]}),
    "wrong arguments": ("", {"args": [{CANARY: 1}]}),
    "wrong environment": ("", {"env": [{"name": CANARY}, CANARY]}),
}


@pytest.mark.parametrize(("body", "more"), PLUGINS.values(), ids=PLUGINS)
def test_a_credential_plugin_gives_nothing_away(
    body: str, more: dict[str, t.Any], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ansible_collections.muster.ml.plugins.module_utils._kube.credentials._EXEC_TIMEOUT", 0.5)
    with pytest.raises(MusterError) as caught:
        ask(kubeconfig=config(plugin(tmp_path, body, **more)))
    assert clean(said(caught.value))


@pytest.mark.parametrize(
    "text",
    [
        f"users: [{{name: a, user: {{token: *{CANARY}}}}}]",
        f"users: [{{name: a, user: {{token: !{CANARY} x}}}}]",
        f"users: [{{name: a, user: {{token: '{CANARY}",
        f"token: {CANARY}\n  a: b",
        f"{CANARY}",
        f"a: {CANARY}\0",
        f"'{CANARY}': 2026-99-99",
    ],
)
@pytest.mark.parametrize("c_loader", [True, False], ids=["libyaml", "Python's own"])
def test_a_kubeconfig_that_is_not_yaml_gives_nothing_away(
    text: str, c_loader: bool, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not c_loader:
        monkeypatch.delattr(yaml, "CSafeLoader")
    (tmp_path / "kc").write_text(text)
    with pytest.raises(InvalidInput) as caught:
        kubeconfig.load({"kubeconfig": str(tmp_path / "kc")}, {})
    assert clean(said(caught.value))


@pytest.mark.parametrize(
    "options",
    [
        {"api_key": CANARY},
        {"api_key": f"{CANARY}\n"},
        {"username": "x", "password": CANARY},
        {"proxy": f"http://x:{CANARY}@127.0.0.1:1"},
        {"proxy": f"http://x:{CANARY}/@127.0.0.1:1"},
        {"host": f"https://x:{CANARY}@127.0.0.1:1"},
        {"host": f"https://127.0.0.1:1/?token={CANARY}"},
    ],
    ids=["token", "line break", "password", "proxy", "wrong proxy", "user in the host", "query of the host"],
)
def test_an_option_gives_nothing_away(options: dict[str, str]) -> None:
    with pytest.raises(MusterError) as caught:
        ask(**{"host": NOWHERE, **options})
    assert clean(said(caught.value))


class Careless:
    """Credentials that do not look at what they hand out."""

    def auth(self) -> RequestAuth:
        return RequestAuth(Sensitive(f"Bearer {CANARY}\n"))

    def refresh(self, _refused: RequestAuth, /) -> bool:
        return False


def test_the_wire_itself_refuses_what_http_would_print() -> None:
    kube = HttpCluster(Transport(Connection(server=NOWHERE, source="a test", credentials=Careless()), FakeClock(), SOON))
    for ask_for in (kube.version, lambda: list(kube.watch("v1", "Pod", timeout=1))):
        with pytest.raises(InvalidInput, match="The header Authorization has a line break at its end") as caught:
            ask_for()
        assert clean(said(caught.value))


def test_a_connection_is_printed_copied_and_stored_without_its_secrets(tmp_path: pathlib.Path) -> None:
    user = {"token": CANARY, "client-certificate-data": "eA==", "client-key-data": ENCODED}
    connection = kubeconfig.load({"kubeconfig": config(user), "proxy": f"http://x:{CANARY}@p"}, {})
    auth = connection.credentials.auth()
    for thing in (connection, auth, connection.proxy):
        assert clean(f"{thing} {thing!r} {copy.copy(thing)!r} {vars(thing)!r}")
    for secret in (auth.authorization, connection.client_key, connection.proxy.login if connection.proxy else None):
        with pytest.raises(TypeError):
            pickle.dumps(secret)
        with pytest.raises(TypeError):
            json.dumps(secret)
