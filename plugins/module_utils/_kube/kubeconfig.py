# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the cluster is and how to prove who we are: kubeconfig files, exec plugins, tokens, the service account of a pod.

Private to the collection.
"""

from __future__ import annotations

import base64
import dataclasses
import os
import pathlib
import typing as t

from .credentials import Anonymous, Basic, Credentials, Exec, Token, TokenFile
from .errors import InvalidInput

Params = t.Mapping[str, t.Any]
Environment = t.Mapping[str, str]

SERVICE_ACCOUNT = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
DEFAULT_KUBECONFIG = "~/.kube/config"


@dataclasses.dataclass(frozen=True)
class Connection:
    """Everything that is needed to talk to one API server. ``source`` is for messages."""

    server: str
    source: str
    credentials: Credentials = dataclasses.field(default_factory=Anonymous)
    namespace: str = "default"
    verify: bool = True
    ca: str | None = None
    """PEM text; None means the authorities that the system trusts."""
    client_cert: str | None = None
    client_key: str | None = None
    tls_server_name: str | None = None
    proxy: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


def load(params: Params, env: Environment | None = None) -> Connection:
    """The connection that the options, the environment and the files describe, in that order."""
    env = os.environ if env is None else env
    if params.get("host") and not params.get("kubeconfig") and not params.get("context"):
        found = Connection(server=str(params["host"]), source="option host")
    else:
        found = _from_files(params, env)
    return _with_options(found, params)


def _from_files(params: Params, env: Environment) -> Connection:
    given = params.get("kubeconfig")
    if isinstance(given, dict):
        return _selected(
            _absolute(given, pathlib.Path.cwd(), "option kubeconfig"), params.get("context"), "option kubeconfig"
        )
    if given:
        return _from_paths(str(given), params.get("context"), must_exist=True)
    if env.get("KUBECONFIG"):
        return _from_paths(env["KUBECONFIG"], params.get("context"), must_exist=False)
    default = pathlib.Path(DEFAULT_KUBECONFIG).expanduser()
    if default.is_file():
        return _from_paths(str(default), params.get("context"), must_exist=True)
    if env.get("KUBERNETES_SERVICE_HOST") and (SERVICE_ACCOUNT / "token").is_file():
        return _in_cluster(env)
    raise InvalidInput(
        f"There is no kubeconfig: the option kubeconfig and the environment variable KUBECONFIG are not set, {default} does not exist, "
        "and this is not a pod.",
        hint="Set kubeconfig, or host and api_key.",
    )


def _in_cluster(env: Environment) -> Connection:
    host, port = env["KUBERNETES_SERVICE_HOST"], env.get("KUBERNETES_SERVICE_PORT", "443")
    namespace = SERVICE_ACCOUNT / "namespace"
    return Connection(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        source=f"service account of this pod in {SERVICE_ACCOUNT}",
        credentials=TokenFile(SERVICE_ACCOUNT / "token"),
        namespace=namespace.read_text().strip() if namespace.is_file() else "default",
        ca=_text(SERVICE_ACCOUNT / "ca.crt", "certificate authority of the service account"),
    )


def _from_paths(value: str, context: str | None, *, must_exist: bool) -> Connection:
    """Several files are merged as kubectl does: the first file that has a name wins; missing ones are skipped."""
    paths = [pathlib.Path(part).expanduser() for part in value.split(os.pathsep) if part]
    present = [path for path in paths if path.is_file()]
    if not present or (must_exist and len(present) < len(paths)):
        missing = ", ".join(str(path) for path in paths if path not in present)
        raise InvalidInput(
            f"The kubeconfig {missing} does not exist.",
            hint="Give the path of an existing kubeconfig with the option kubeconfig or the environment variable KUBECONFIG.",
        )
    merged: dict[str, t.Any] = {}
    for path in present:
        for key, item in _absolute(_parse(path), path.parent, str(path)).items():
            if isinstance(item, dict):
                merged[key] = {**item, **merged.get(key, {})}
            else:
                merged[key] = merged.get(key) or item
    return _selected(merged, context, os.pathsep.join(str(path) for path in present))


def _parse(path: pathlib.Path) -> dict[str, t.Any]:
    import yaml

    try:
        parsed = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except PermissionError as exc:
        raise InvalidInput(
            f"The kubeconfig {path} cannot be read: permission denied.",
            hint="It must be readable for the user of the task.",
        ) from exc
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise InvalidInput(
            f"The kubeconfig {path} is not YAML: {getattr(exc, 'problem', None) or 'cannot be parsed'}{where}."
        ) from exc
    if not isinstance(parsed, dict):
        raise InvalidInput(
            f"The kubeconfig {path} is empty or not a mapping.", hint="A kubeconfig has clusters, contexts and users."
        )
    return parsed


_PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


def _absolute(config: dict[str, t.Any], folder: pathlib.Path, source: str) -> dict[str, t.Any]:
    """Named lists as maps, and paths as they are meant: relative to the file they are written in."""
    found: dict[str, t.Any] = {"current-context": config.get("current-context")}
    for plural, singular in (("clusters", "cluster"), ("contexts", "context"), ("users", "user")):
        entries = {}
        for entry in config.get(plural) or []:
            if not isinstance(entry, dict) or "name" not in entry:
                raise InvalidInput(f"The kubeconfig {source} has an entry without a name in {plural}.")
            value = dict(entry.get(singular) or {})
            for key in _PATHS:
                if value.get(key):
                    value[key] = str(folder / pathlib.Path(value[key]).expanduser())
            entries[entry["name"]] = {**value, "folder": folder}
        found[plural] = entries
    return found


def _selected(config: dict[str, t.Any], context_name: str | None, source: str) -> Connection:
    name = context_name or config.get("current-context")
    if not name:
        raise InvalidInput(
            f"The kubeconfig {source} has no current-context.", hint="Choose one with the option context."
        )
    context = _entry(config, "contexts", name, source)
    cluster = _entry(config, "clusters", context.get("cluster"), source)
    user = _entry(config, "users", context["user"], source) if context.get("user") else {}
    if not cluster.get("server"):
        raise InvalidInput(f"Cluster {context.get('cluster')} of the kubeconfig {source} has no server.")
    verify = not cluster.get("insecure-skip-tls-verify")
    ca = _pem(cluster, "certificate-authority")
    return Connection(
        server=str(cluster["server"]),
        source=source,
        credentials=_credentials(user, cluster, source),
        namespace=context.get("namespace") or "default",
        verify=verify,
        ca=ca,
        client_cert=_pem(user, "client-certificate"),
        client_key=_pem(user, "client-key"),
        tls_server_name=cluster.get("tls-server-name"),
        proxy=cluster.get("proxy-url"),
        headers=_impersonation(user.get("as"), user.get("as-groups") or ()),
    )


def _entry(config: dict[str, t.Any], plural: str, name: str | None, source: str) -> dict[str, t.Any]:
    entries = config.get(plural) or {}
    if name not in entries:
        there = ", ".join(sorted(entries)) or "none"
        raise InvalidInput(f"The kubeconfig {source} has no {plural[:-1]} {name!r}; it has: {there}.")
    return t.cast(dict[str, t.Any], entries[name])


def _credentials(user: dict[str, t.Any], cluster: dict[str, t.Any], source: str) -> Credentials:
    if user.get("tokenFile"):
        return TokenFile(pathlib.Path(user["tokenFile"]))
    if user.get("token"):
        return Token(str(user["token"]))
    if user.get("exec"):
        return Exec(user["exec"], folder=user["folder"], cluster=cluster)
    if user.get("username"):
        return Basic(str(user["username"]), str(user.get("password") or ""))
    if user.get("auth-provider"):
        raise InvalidInput(
            f"The kubeconfig {source} uses auth-provider {user['auth-provider'].get('name')!r}, which Kubernetes removed in 1.26.",
            hint="Write the kubeconfig again with a credential plugin (exec), as gcloud, aws and kubelogin do.",
        )
    return Anonymous()


def _with_options(found: Connection, params: Params) -> Connection:
    """Options win over the kubeconfig."""
    changes: dict[str, t.Any] = {}
    if params.get("host"):
        changes["server"] = str(params["host"])
    if params.get("api_key"):
        changes["credentials"] = Token(str(params["api_key"]))
    elif params.get("username"):
        changes["credentials"] = Basic(str(params["username"]), str(params.get("password") or ""))
    for option, field in (("ca_cert", "ca"), ("client_cert", "client_cert"), ("client_key", "client_key")):
        if params.get(option):
            changes[field] = _text(pathlib.Path(params[option]).expanduser(), f"option {option}")
    if params.get("validate_certs") is not None:
        changes["verify"] = bool(params["validate_certs"])
    if params.get("proxy"):
        changes["proxy"] = str(params["proxy"])
    if params.get("impersonate_user"):
        changes["headers"] = _impersonation(params["impersonate_user"], params.get("impersonate_groups") or ())
    return dataclasses.replace(found, **changes)


def _impersonation(user: str | None, groups: t.Iterable[str]) -> tuple[tuple[str, str], ...]:
    return (("Impersonate-User", user), *(("Impersonate-Group", group) for group in groups)) if user else ()


def _pem(entry: dict[str, t.Any], key: str) -> str | None:
    if entry.get(f"{key}-data"):
        return base64.b64decode(entry[f"{key}-data"]).decode()
    return _text(pathlib.Path(entry[key]), f"{key} of the kubeconfig") if entry.get(key) else None


def _text(path: pathlib.Path, what: str) -> str:
    try:
        return path.read_text()
    except OSError as exc:
        raise InvalidInput(f"The file {path} ({what}) cannot be read: {exc.strerror or exc}.") from exc
