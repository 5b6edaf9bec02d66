# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kubeconfig files and credentials: merged, chosen, read, and told apart when something is missing."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import stat
import typing as t

import pytest
import yaml

from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._kube import kubeconfig
from ansible_collections.muster.ml.plugins.module_utils._kube.credentials import Exec, Proof, TokenFile, bearer
from ansible_collections.muster.ml.plugins.module_utils._kube.errors import InvalidInput, Unauthorized
from ansible_collections.muster.ml.plugins.module_utils._kube.settings import Settings

PEM = "-----BEGIN CERTIFICATE-----\nxyz\n-----END CERTIFICATE-----\n"


def config(name: str = "a", **user: t.Any) -> dict[str, t.Any]:
    return {
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": f"ns-{name}"}}],
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}:6443"}}],
        "users": [{"name": name, "user": user}],
    }


def write(path: pathlib.Path, content: t.Any) -> str:
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(path)


def sent(token: str) -> Proof:
    return Proof(bearer(token, "a test"))


def load(env: dict[str, str] | None = None, **params: t.Any) -> kubeconfig.Connection:
    return kubeconfig.load(params, env or {})


@pytest.fixture(autouse=True)
def _no_kubeconfig_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setattr(kubeconfig, "DEFAULT_KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setattr(kubeconfig, "SERVICE_ACCOUNT", tmp_path / "account")


def test_current_context_and_namespace(tmp_path: pathlib.Path) -> None:
    found = load(kubeconfig=write(tmp_path / "kc", config(token="t")))
    assert (found.server, found.namespace) == ("https://a:6443", "ns-a")
    assert found.credentials.proof() == sent("t")
    assert found.verify is True


def test_the_content_itself_as_a_mapping() -> None:
    assert load(kubeconfig=config()).server == "https://a:6443"


def test_several_files_are_merged_and_the_first_wins(tmp_path: pathlib.Path) -> None:
    other = config("b")
    other["clusters"].append({"name": "a", "cluster": {"server": "https://never"}})
    value = os.pathsep.join(
        [write(tmp_path / "a", config("a")), str(tmp_path / "missing"), write(tmp_path / "b", other)]
    )
    assert load({"KUBECONFIG": value}).server == "https://a:6443"
    assert load({"KUBECONFIG": value}, context="b").server == "https://b:6443"


def test_paths_are_relative_to_their_own_file(tmp_path: pathlib.Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "ca.crt").write_text(PEM)
    content = config()
    content["clusters"][0]["cluster"]["certificate-authority"] = "ca.crt"
    assert load(kubeconfig=write(tmp_path / "one" / "kc", content)).ca == PEM


def test_data_is_decoded_and_insecure_is_kept(tmp_path: pathlib.Path) -> None:
    content = config(**{"client-certificate-data": base64.b64encode(PEM.encode()).decode()})
    content["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
    found = load(kubeconfig=write(tmp_path / "kc", content))
    assert (found.client_cert, found.verify) == (PEM, False)


def test_options_win(tmp_path: pathlib.Path) -> None:
    path = write(tmp_path / "kc", config(token="t"))
    found = load(kubeconfig=path, host="https://other", api_key="k", validate_certs=False, proxy="http://p:1",
                 impersonate_user="u", impersonate_groups=["g", "h"], ca_cert=write(tmp_path / "ca", PEM))  # fmt: skip
    assert (found.server, found.verify, found.ca) == ("https://other", False, PEM)
    assert str(found.proxy) == "http://p:1 (option proxy)"
    assert found.credentials.proof() == sent("k")
    assert found.headers == (("Impersonate-User", "u"), ("Impersonate-Group", "g"), ("Impersonate-Group", "h"))


def test_a_host_alone_needs_no_kubeconfig() -> None:
    found = load(host="https://x", username="u", password="p").credentials.proof()
    assert found == Proof(Sensitive("Basic " + base64.b64encode(b"u:p").decode()))


def test_in_a_pod(tmp_path: pathlib.Path) -> None:
    account = tmp_path / "account"
    account.mkdir()
    for name, text in (("token", "t\n"), ("ca.crt", PEM), ("namespace", "ml\n")):
        (account / name).write_text(text)
    found = load({"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"})
    assert (found.server, found.namespace) == ("https://[fd00::1]:443", "ml")
    assert found.credentials.proof() == sent("t")


@pytest.mark.parametrize(
    ("content", "params", "told"),
    [
        ("a: [b", {}, "is not YAML"),
        ("", {}, "is empty or not a mapping"),
        (config() | {"current-context": ""}, {}, "has no current-context"),
        (config(), {"context": "z"}, "has no context 'z'; it has: a"),
        (config() | {"clusters": []}, {}, "has no cluster 'a'; it has: none"),
        (config() | {"users": []}, {}, "has no user 'a'"),
        (config() | {"users": [{"user": {}}]}, {}, "an entry without a name in users"),
        (config(**{"auth-provider": {"name": "gcp"}}), {}, "auth-provider 'gcp', which Muster does not have"),
        (config(**{"client-certificate": "/none.crt"}), {}, "/none.crt"),
        (config(exec={"command": "x", "apiVersion": "v1alpha1"}), {}, "apiVersion 'v1alpha1'"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: pathlib.Path, content: t.Any, params: dict[str, t.Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=told.replace("[", r"\[")):
        load(kubeconfig=write(tmp_path / "kc", content), **params)


def test_no_kubeconfig_at_all(tmp_path: pathlib.Path) -> None:
    with pytest.raises(InvalidInput, match="There is no kubeconfig"):
        load()
    with pytest.raises(InvalidInput, match="/nowhere/kc does not exist"):
        load(kubeconfig="/nowhere/kc")
    with pytest.raises(InvalidInput, match="does not exist"):
        load({"KUBECONFIG": str(tmp_path / "x")})


def plugin(tmp_path: pathlib.Path, body: str) -> dict[str, t.Any]:
    path = tmp_path / "plugin"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"command": "./plugin", "apiVersion": "client.authentication.k8s.io/v1", "env": [{"name": "A", "value": "tok"}],
            "args": ["x"], "installHint": "Install it.", "provideClusterInfo": True}  # fmt: skip


def run(tmp_path: pathlib.Path, body: str) -> Exec:
    return made(plugin(tmp_path, body), tmp_path)


def made(settings: dict[str, t.Any], folder: pathlib.Path, now: t.Any = None) -> Exec:
    return Exec(Settings(settings, "a test", folder), {"server": "https://a"}, now)


CREDENTIAL = '''printf '{"status": {"token": "%s-%s"}}' "$A" "$1"; echo run >> "$(dirname "$0")/runs"'''


def test_a_credential_plugin_runs_once_until_it_is_renewed(tmp_path: pathlib.Path) -> None:
    found = run(tmp_path, CREDENTIAL)
    assert [found.proof(), found.proof()] == [sent("tok-x")] * 2
    refused = found.proof()
    assert found.renew(refused)
    found.proof()
    assert (tmp_path / "runs").read_text().count("run") == 2


def test_a_credential_plugin_runs_once_for_all_threads_that_were_refused(tmp_path: pathlib.Path) -> None:
    counting = "echo run >> runs; n=$(grep -c run runs)"
    found = run(tmp_path, f"""cd "$(dirname "$0")"; {counting}; printf '{{"status": {{"token": "%s"}}}}' $n""")
    refused = found.proof()
    for _thread in range(8):
        assert found.renew(refused)
        assert found.proof() != refused
    assert (tmp_path / "runs").read_text().count("run") == 2


def test_a_credential_plugin_is_told_about_the_cluster(tmp_path: pathlib.Path) -> None:
    run(tmp_path, f'printf %s "$KUBERNETES_EXEC_INFO" > "$(dirname "$0")/info"; {CREDENTIAL}').proof()
    info = json.loads((tmp_path / "info").read_text())
    assert info["spec"] == {"interactive": False, "cluster": {"server": "https://a"}}


def test_a_credential_plugin_that_fails_is_told_without_its_output(tmp_path: pathlib.Path) -> None:
    with pytest.raises(Unauthorized, match="ended with status 3: please log in") as caught:
        run(tmp_path, "echo secret-token; echo please log in >&2; exit 3").proof()
    assert "secret-token" not in str(caught.value)


@pytest.mark.parametrize("output", ["echo nonsense", "echo '{}'", """echo '{"status": {}}'"""])
def test_a_credential_plugin_that_says_nothing(tmp_path: pathlib.Path, output: str) -> None:
    with pytest.raises(Unauthorized, match=r"did not print|neither a token"):
        run(tmp_path, output).proof()


def test_a_credential_plugin_that_is_missing(tmp_path: pathlib.Path) -> None:
    settings = plugin(tmp_path, "true") | {"command": "no-such-plugin-anywhere"}
    with pytest.raises(InvalidInput, match=r"not installed\. Install it\."):
        made(settings, tmp_path).proof()


def test_a_token_file_is_read_again(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "token"
    path.write_text("one\n")
    found = TokenFile(path)
    assert found.proof() == sent("one")
    path.write_text("two\n")
    assert found.proof() == sent("one")
    assert found.renew(sent("one"))
    assert found.proof() == sent("two")
    assert not found.renew(sent("two"))
