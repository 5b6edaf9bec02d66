# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubeconfig files and credentials: merged, chosen, read, and told apart when something is missing."""

from __future__ import annotations

import base64
import datetime as dt
import json
import os
import pathlib
import re
import stat
import threading
import typing as t

import pytest
import yaml

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput, MusterError, Unauthorized
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._kube import kubeconfig
from ansible_collections.muster.ml.plugins.module_utils._kube.credentials import Exec, RequestAuth, TokenFile, bearer
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


def sent(token: str) -> RequestAuth:
    return RequestAuth(bearer(token, "a test"))


def load(env: dict[str, str] | None = None, **params: t.Any) -> kubeconfig.Connection:
    return kubeconfig.load(params, env or {})


@pytest.fixture(autouse=True)
def _no_kubeconfig_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setattr(kubeconfig, "DEFAULT_KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setattr(kubeconfig, "SERVICE_ACCOUNT", tmp_path / "account")


def test_current_context_and_namespace(tmp_path: pathlib.Path) -> None:
    found = load(kubeconfig=write(tmp_path / "kc", config(token="t")))
    assert (found.server, found.namespace) == ("https://a:6443", "ns-a")
    assert found.credentials.auth() == sent("t")
    assert found.verify is True


def test_the_content_itself_as_a_mapping() -> None:
    assert load(kubeconfig=config()).server == "https://a:6443"


def test_several_files_are_merged_and_the_first_wins(tmp_path: pathlib.Path) -> None:
    other = config("b")
    other["clusters"].append({"name": "a", "cluster": {"server": "https://never"}})
    value = os.pathsep.join([write(tmp_path / "a", config("a")), str(tmp_path / "missing"), write(tmp_path / "b", other)])
    assert load({"KUBECONFIG": value}).server == "https://a:6443"
    assert load({"KUBECONFIG": value}, context="b").server == "https://b:6443"


def test_data_is_decoded_and_insecure_is_kept(tmp_path: pathlib.Path) -> None:
    content = config(**{"client-certificate-data": base64.b64encode(PEM.encode()).decode()})
    content["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
    found = load(kubeconfig=write(tmp_path / "kc", content))
    assert (found.client_cert, found.verify) == (PEM, False)


def test_options_win(tmp_path: pathlib.Path) -> None:
    path = write(tmp_path / "kc", config(token="t"))
    found = load({"HTTPS_PROXY": "q:2"}, kubeconfig=path, host="https://other", api_key="k", validate_certs=False, proxy="http://p:1",
                 impersonate_user="u", impersonate_groups=["g", "h"], ca_cert=write(tmp_path / "ca", PEM))  # fmt: skip
    assert (found.server, found.verify, found.ca) == ("https://other", False, PEM)
    assert str(found.proxy) == "http://p:1 (option proxy)"
    assert found.credentials.auth() == sent("k")
    assert found.headers == (("Impersonate-User", "u"), ("Impersonate-Group", "g"), ("Impersonate-Group", "h"))


def test_a_host_alone_needs_no_kubeconfig() -> None:
    found = load(host="https://x", username="u", password="p").credentials.auth()
    assert found == RequestAuth(Sensitive("Basic " + base64.b64encode(b"u:p").decode()))


def test_in_a_pod(tmp_path: pathlib.Path) -> None:
    account = tmp_path / "account"
    account.mkdir()
    for name, text in (("token", "t\n"), ("ca.crt", PEM), ("namespace", "ml\n")):
        (account / name).write_text(text)
    found = load({"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"})
    assert (found.server, found.namespace) == ("https://[fd00::1]:443", "ml")
    assert found.credentials.auth() == sent("t")


def clusters(**cluster: t.Any) -> dict[str, t.Any]:
    return config() | {"clusters": [{"name": "a", "cluster": {"server": "https://a", **cluster}}]}


def context(**more: t.Any) -> dict[str, t.Any]:
    return config() | {"contexts": [{"name": "a", "context": {"cluster": "a", "user": "a", **more}}]}


EXEC = {"command": "x", "apiVersion": "client.authentication.k8s.io/v1"}
# What is wrong, and that the message names file, entry and setting.
INSECURE = {"insecure-skip-tls-verify": True}
# ``@`` stands for the kubeconfig's name.
WRONG: dict[str, tuple[t.Any, str]] = {
    "half a list": ("a: [b", "KC is not YAML"),
    "an empty file": ("", "KC is empty or not a mapping"),
    "no context": (config() | {"current-context": ""}, "KC has no current-context"),
    "a context that is not there": (config() | {"current-context": "z"}, "KC has no context 'z'; it has: a"),
    "no clusters": (config() | {"clusters": []}, "KC has no cluster 'a'; it has: none"),
    "no users": (config() | {"users": []}, "KC has no user 'a'"),
    "an entry without a name": (config() | {"users": [{"user": {}}]}, "KC has an entry without a name in users"),
    "a file that is not there": (config(**{"client-certificate": "/none.crt"}), "/none.crt"),
    "plugin of an old version": (config(exec=EXEC | {"apiVersion": "v1alpha1"}), "apiVersion 'v1alpha1'"),
    "base64": (clusters(**{"certificate-authority-data": "!!!"}), "certificate-authority-data of cluster 'a'@ is not base64"),
    "base64 without padding": (
        clusters(**{"certificate-authority-data": "abc"}),
        "certificate-authority-data of cluster 'a' .* is not base64",
    ),
    "port": (clusters(server="https://x:abc"), "'https://x:abc' \\(KC\\) is not the URL of an API server: host or port is wrong"),
    "no server": (clusters(server=""), "cluster 'a'@ has no server"),
    "server that is a number": (clusters(server=6443), "server of cluster 'a'@ is not text. Put it in quotes"),
    "contexts that are a mapping": (config() | {"contexts": {"a": {}}}, "contexts@ is not a list"),
    "users that are text": (config() | {"users": "x"}, "users@ is not a list"),
    "a user that is text": (config() | {"users": ["x"]}, "item 0 of users@ is not a mapping"),
    "settings that are text": (config() | {"users": [{"name": "a", "user": "x"}]}, "user 'a'@ is not a mapping"),
    "a name that is a number": (config() | {"users": [{"name": 7}]}, "name of item 0 of users@ is not text"),
    "a key that is null": (config(token="t") | {None: "x"}, "the kubeconfig KC has a name that is not text"),
    "a name twice": (config() | {"users": [{"name": "a"}] * 2}, "KC has user 'a' twice"),
    "another kind": (config() | {"kind": "Secret"}, "KC is no kubeconfig, but of kind Secret"),
    "a list": ([config()], "KC is empty or not a mapping"),
    "two documents": (f"{yaml.safe_dump(config())}---\n{{}}\n", "KC is not YAML"),
    "NUL in the text": ("a: \0", "KC is not YAML"),
    "NUL in a path": (config(tokenFile="a\0b"), "tokenFile of user 'a'@ has a NUL byte"),
    "a home that is none": (config(tokenFile="~nobody-of-that-name/x"), "tokenFile of user 'a' .* no such home"),
    "a flag that is text": (
        clusters(**{"insecure-skip-tls-verify": "false"}),
        "insecure-skip-tls-verify of cluster 'a' .* is not true or false",
    ),
    "authority and insecure": (clusters(**INSECURE, **{"certificate-authority-data": "eA=="}), "cluster 'a' .* has both"),
    "authority twice": (clusters(**{"certificate-authority": "x", "certificate-authority-data": "eA=="}), "cluster 'a' .* has both"),
    "unknown setting of a cluster": (clusters(**{"proxy-uri": "http://x"}), "cluster 'a'@ has proxy-uri, which Muster does not know"),
    "unknown setting of a user": (config(tokenfile="x"), "user 'a'@ has tokenfile, which Muster does not know"),
    "unknown setting of a context": (context(name_space="x"), "context 'a'@ has name_space, which"),
    "proxy-url of another kind": (clusters(**{"proxy-url": "ftp://x"}), "proxy-url of cluster 'a'@ has an unknown scheme"),
    "proxy-url over TLS": (clusters(**{"proxy-url": "https://x"}), "proxy-url of cluster 'a'@ needs TLS"),
    "a user that is not there": (context(user="b"), "KC has no user 'b'; it has: a"),
    "no cluster": (context(cluster=""), "KC has no cluster ''; it has: a"),
    "token with a line break": (config(token="x\n"), "token of user 'a'@ has a line break at its end"),
    "token and password": (config(token="x", username="y"), "user 'a'@ has a token, and user name"),
    "auth-provider": (config(**{"auth-provider": {"name": "oidc"}, "token": "x"}), "user 'a'@ uses auth-provider 'oidc'"),
    "groups without a user": (config(**{"as-groups": ["g"]}), "user 'a'@ has as-groups, as-uid or as-user-extra, but no as"),
    "uid without a user": (config(**{"as-uid": "7"}), "but no as"),
    "groups that are text": (config(**{"as": "u", "as-groups": "g"}), "as-groups of user 'a'@ is not a list"),
    "extra that is text": (config(**{"as": "u", "as-user-extra": {"k": "v"}}), "k of as-user-extra of user 'a'@ is not a list"),
    "a user with a line break": (config(**{"as": "u\n"}), "Impersonate-User has a line break"),
    "credentials without TLS": (
        clusters(server="http://a") | {"users": config(token="x")["users"]},
        "http://a \\(KC\\) is asked without TLS",
    ),
    "plugin without a command": (config(exec=EXEC | {"command": ""}), "exec of user 'a'@ has no command"),
    "plugin that asks": (
        config(exec=EXEC | {"interactiveMode": "Always"}),
        "credential plugin x .* asks at a terminal \\(interactiveMode Always\\)",
    ),
    "plugin of an unknown mode": (config(exec=EXEC | {"interactiveMode": "never"}), "interactiveMode 'never'"),
    "unknown setting of a plugin": (config(exec=EXEC | {"arguments": []}), "exec of user 'a'@ has arguments, which"),
    "plugin that is text": (config(exec="aws"), "exec of user 'a'@ is not a mapping"),
}


@pytest.mark.parametrize(("content", "told"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_one_message_that_names_file_and_setting(tmp_path: pathlib.Path, content: t.Any, told: str) -> None:
    path = write(tmp_path / "kc", content)
    with pytest.raises(InvalidInput, match=told.replace("@", " of the kubeconfig KC").replace("KC", re.escape(path))):
        load(kubeconfig=path)


MAPPINGS = {name: case for name, case in WRONG.items() if isinstance(case[0], dict)}


@pytest.mark.parametrize(("content", "told"), MAPPINGS.values(), ids=MAPPINGS)
def test_a_mistake_in_a_mapping_is_told_alike(content: t.Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=told.replace("@", " of the kubeconfig KC").replace("KC", "option kubeconfig")):
        load(kubeconfig=content)


def test_what_no_file_can_be(tmp_path: pathlib.Path) -> None:
    for given, told in (
        (str(tmp_path), "cannot be read: is a directory"),
        ("a\0b", "does not exist"),
        ("~nobody-of-that-name/x", "no such home"),
        ([config()], "neither a path nor a mapping"),
    ):
        with pytest.raises(InvalidInput, match=told):
            load(kubeconfig=given)


def test_what_is_wrong_in_entries_that_are_not_chosen_does_not_matter(tmp_path: pathlib.Path) -> None:
    content = config()
    content["users"].append({"name": "old", "user": {"auth-provider": {"name": "gcp"}}})
    content["clusters"].append({"name": "old", "cluster": {"certificate-authority-data": "!!!", "api-version": "v1"}})
    assert load(kubeconfig=write(tmp_path / "kc", content)).server == "https://a:6443"


def test_what_changes_nothing_is_ignored() -> None:
    content = clusters(**{"disable-compression": True, "extensions": [{"name": "x", "extension": {}}]})
    assert load(kubeconfig=content | {"preferences": {"colors": True}, "extensions": []}).server == "https://a"


def test_impersonation_of_a_kubeconfig_is_whole() -> None:
    user = {"as": "bob", "as-uid": "7", "as-groups": ["g"], "as-user-extra": {"b/50% Größe": ["x", "y"], "a": ["z"]}}
    assert load(kubeconfig=config(**user)).headers == (
        ("Impersonate-User", "bob"),
        ("Impersonate-Group", "g"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Extra-a", "z"),
        ("Impersonate-Extra-b%2F50%25%20Gr%C3%B6%C3%9Fe", "x"),
        ("Impersonate-Extra-b%2F50%25%20Gr%C3%B6%C3%9Fe", "y"),
    )


def test_groups_of_the_options_need_a_user_of_the_options() -> None:
    with pytest.raises(InvalidInput, match="impersonate_groups needs impersonate_user"):
        load(kubeconfig=config(**{"as": "bob"}), impersonate_groups=["g"])


def test_a_token_file_wins_over_a_token(tmp_path: pathlib.Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    path = write(tmp_path / "kc", config(token="old", tokenFile="token"))
    assert load(kubeconfig=path).credentials.auth() == sent("from-file")


@pytest.mark.parametrize(
    ("content", "told"), [("", "is empty"), ("\n", "is empty"), ("a\nb", "control character 0x0a"), (None, "No such file")]
)
def test_a_token_file_that_has_none(tmp_path: pathlib.Path, content: str | None, told: str) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InvalidInput, match=told):
        TokenFile(path).auth()


def test_credentials_without_tls_stay_on_this_machine() -> None:
    for host in ("http://127.0.0.1:8001", "http://localhost:8001", "http://[::1]:8001"):
        assert load(host=host, api_key="k").credentials.auth() == sent("k")
    assert load(host="http://far").credentials.auth() == RequestAuth()


def test_a_host_of_the_options_has_a_name_of_its_own_in_its_certificate() -> None:
    content = clusters(**{"tls-server-name": "kubernetes"})
    assert load(kubeconfig=content).tls_server_name == "kubernetes"
    found = load(kubeconfig=content, host="https://other")
    assert (found.tls_server_name, found.source) == (None, "option host with option kubeconfig")


def test_an_authority_of_the_options_is_held_against_the_server(tmp_path: pathlib.Path) -> None:
    content = clusters(**{"insecure-skip-tls-verify": True})
    assert load(kubeconfig=content).verify is False
    assert load(kubeconfig=content, ca_cert=write(tmp_path / "ca", PEM)).verify is True


def test_base64_may_be_folded() -> None:
    text = base64.b64encode(PEM.encode()).decode()
    assert load(kubeconfig=clusters(**{"certificate-authority-data": f"{text[:20]}\n  {text[20:]}\n"})).ca == PEM


def test_a_pipe_is_read_as_a_file_is(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(yaml.safe_dump(config()),))
    writer.start()
    assert load(kubeconfig=str(path)).server == "https://a:6443"
    writer.join()


def test_one_of_several_files_may_be_empty(tmp_path: pathlib.Path) -> None:
    value = os.pathsep.join([write(tmp_path / "new", ""), write(tmp_path / "a", config())])
    assert load({"KUBECONFIG": value}).server == "https://a:6443"


def test_paths_of_each_file_are_relative_to_that_file(tmp_path: pathlib.Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "token").write_text(name)
    first, second = config("a", tokenFile="token"), config("b", tokenFile="token")
    files = [write(tmp_path / "one" / "kc", first), write(tmp_path / "two" / "kc", second)]
    env = {"KUBECONFIG": os.pathsep.join(files)}
    assert load(env).credentials.auth() == sent("one")
    assert load(env, context="b").credentials.auth() == sent("two")


def test_an_entry_of_a_later_file_adds_nothing_to_one_of_the_same_name(tmp_path: pathlib.Path) -> None:
    files = [write(tmp_path / "one", config("a")), write(tmp_path / "two", config("a", token="t"))]
    assert load({"KUBECONFIG": os.pathsep.join(files)}).credentials.auth() == RequestAuth()


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
    assert [found.auth(), found.auth()] == [sent("tok-x")] * 2
    refused = found.auth()
    assert found.refresh(refused)
    found.auth()
    assert (tmp_path / "runs").read_text().count("run") == 2


def test_a_credential_plugin_runs_once_for_all_threads_that_were_refused(tmp_path: pathlib.Path) -> None:
    counting = "echo run >> runs; n=$(grep -c run runs)"
    found = run(tmp_path, f"""cd "$(dirname "$0")"; {counting}; printf '{{"status": {{"token": "%s"}}}}' $n""")
    refused = found.auth()
    for _thread in range(8):
        assert found.refresh(refused)
        assert found.auth() != refused
    assert (tmp_path / "runs").read_text().count("run") == 2


def expiring(tmp_path: pathlib.Path, until: str) -> str:
    return (f"""cd {tmp_path}; echo run >> runs; n=$(grep -c run runs); """
            f"""printf '{{"status": {{"token": "%s", "expirationTimestamp": "{until}"}}}}' $n""")  # fmt: skip


def test_a_token_that_expired_by_this_clock_alone_is_used_until_it_is_refused(tmp_path: pathlib.Path) -> None:
    """With a clock that is an hour ahead, a plugin would otherwise run before each request."""
    ahead = dt.datetime(2026, 1, 1, 13, tzinfo=dt.UTC)
    found = made(plugin(tmp_path, expiring(tmp_path, "2026-01-01T12:15:00Z")), tmp_path, lambda: ahead)
    assert [found.auth(), found.auth()] == [sent("1")] * 2
    assert found.refresh(sent("1"))
    assert found.auth() == sent("2")


@pytest.mark.parametrize("until", ["2026-01-01T12:00:00Z", "2026-01-01T13:00:00+01:00", "2026-01-01T12:00:00"])
def test_a_credential_plugin_runs_again_when_its_token_has_expired(tmp_path: pathlib.Path, until: str) -> None:
    now = [dt.datetime(2026, 1, 1, 11, 59, 59, tzinfo=dt.UTC)]
    found = made(plugin(tmp_path, expiring(tmp_path, until)), tmp_path, lambda: now[0])
    assert [found.auth(), found.auth()] == [sent("1")] * 2
    now[0] += dt.timedelta(seconds=1)
    assert found.auth() == sent("2")


def test_a_time_that_is_none_is_told(tmp_path: pathlib.Path) -> None:
    with pytest.raises(Unauthorized, match="expirationTimestamp that is no time: 'soon'"):
        run(tmp_path, expiring(tmp_path, "soon")).auth()


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ('{"apiVersion": "client.authentication.k8s.io/v1beta1", "status": {"token": "x"}}', "another apiVersion"),
        ("nonsense", "did not print an ExecCredential"),
        ("{}", "did not print an ExecCredential"),
        ('{"status": {}}', "neither a token nor a certificate"),
        ('{"status": {"token": ["x"]}}', "is not text"),
        ('{"status": {"clientCertificateData": "x"}}', "only one of certificate and key"),
        ('{"status": {"token": "x\\\\n"}}', "a line break at its end"),
    ],
)
def test_a_credential_plugin_that_prints_something_else(tmp_path: pathlib.Path, output: str, told: str) -> None:
    with pytest.raises(MusterError, match=told):
        run(tmp_path, f"printf '{output}'").auth()


def test_a_credential_plugin_that_hangs(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ansible_collections.muster.ml.plugins.module_utils._kube.credentials._EXEC_TIMEOUT", 0.2)
    with pytest.raises(Unauthorized, match=r"did not end within 0.2 s. It may wait for a login"):
        run(tmp_path, "exec sleep 5").auth()


def test_a_credential_plugin_is_told_all_that_the_kubeconfig_says_of_the_cluster(tmp_path: pathlib.Path) -> None:
    settings = plugin(tmp_path, f'printf %s "$KUBERNETES_EXEC_INFO" > "$(dirname "$0")/info"; {CREDENTIAL}')
    content = config(exec=settings)
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    content["clusters"][0]["cluster"] |= {"certificate-authority": "ca", "tls-server-name": "k", "extensions": [extension]}
    write(tmp_path / "ca", PEM)
    load(kubeconfig=write(tmp_path / "kc", content)).credentials.auth()
    assert json.loads((tmp_path / "info").read_text())["spec"] == {"interactive": False, "cluster": {
        "server": "https://a:6443", "tls-server-name": "k", "config": {"audience": "x"},
        "certificate-authority-data": base64.b64encode(PEM.encode()).decode(),
    }}  # fmt: skip


def test_a_credential_plugin_that_fails_is_told_without_its_output(tmp_path: pathlib.Path) -> None:
    with pytest.raises(Unauthorized, match="ended with status 3: please log in") as caught:
        run(tmp_path, "echo secret-token; echo please log in >&2; exit 3").auth()
    assert "secret-token" not in str(caught.value)


def test_a_credential_plugin_that_is_missing(tmp_path: pathlib.Path) -> None:
    settings = plugin(tmp_path, "true") | {"command": "no-such-plugin-anywhere"}
    with pytest.raises(InvalidInput, match=r"not installed\. Install it\."):
        made(settings, tmp_path).auth()


def test_a_token_file_is_read_again(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "token"
    path.write_text("one\n")
    found = TokenFile(path)
    assert found.auth() == sent("one")
    path.write_text("two\n")
    assert found.auth() == sent("one")
    assert found.refresh(sent("one"))
    assert found.auth() == sent("two")
    assert not found.refresh(sent("two"))


@pytest.mark.parametrize("name", ["10:20", "=", "<<", "2026-01-01", "1:30:45.5"])
def test_plain_names_are_read_as_kubectl_reads_them(tmp_path: pathlib.Path, name: str) -> None:
    path = tmp_path / "kc"
    path.write_text(
        f"current-context: {name}\ncontexts: [{{name: {name}, context: {{cluster: {name}, user: {name}}}}}]\n"
        f"clusters: [{{name: {name}, cluster: {{server: 'http://example.com'}}}}]\nusers: [{{name: {name}, user: {{}}}}]\n"
    )
    assert kubeconfig.load({"kubeconfig": str(path)}).server == "http://example.com"
