# SPDX-License-Identifier: GPL-3.0-or-later
"""The address of a cluster and the credentials for it: kubeconfig files, exec plugins, tokens, the service account of a pod.

The behaviour for each setting, beside kubectl's, is in docs/architecture/clients.md.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import pathlib
import re
import typing as t
import urllib.parse

from .._core.errors import InvalidInput
from .._core.sensitive import Sensitive
from . import headers, proxy
from .credentials import Credentials, Exec, Fixed, TokenFile, basic, cluster_info, token_of
from .objects import to_plain_values
from .settings import Settings, expanded, read

Params = t.Mapping[str, t.Any]
Environment = t.Mapping[str, str]

SERVICE_ACCOUNT = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
DEFAULT_KUBECONFIG = "~/.kube/config"

_LISTS = {"clusters": "cluster", "contexts": "context", "users": "user"}
_CONTEXT = ("cluster", "user", "namespace", "extensions")
_CLUSTER = ("server", "certificate-authority", "certificate-authority-data", "insecure-skip-tls-verify", "tls-server-name",
            "proxy-url", "disable-compression", "extensions")  # fmt: skip
_USER = ("client-certificate", "client-certificate-data", "client-key", "client-key-data", "token", "tokenFile", "username",
         "password", "exec", "auth-provider", "as", "as-uid", "as-groups", "as-user-extra", "extensions")  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Connection:
    """The settings of a connection to one API server. ``source`` is for messages."""

    server: str
    source: str
    credentials: Credentials = dataclasses.field(default_factory=Fixed)
    namespace: str = "default"
    verify: bool = True
    ca: str | None = None
    """PEM text; None means the authorities that the system trusts."""
    client_cert: str | None = None
    client_key: Sensitive | None = None
    tls_server_name: str | None = None
    proxy: proxy.Proxy | None = None
    headers: headers.Pairs = ()

    @functools.cached_property
    def url(self) -> urllib.parse.SplitResult:
        """The server's address, taken apart."""
        try:
            url = urllib.parse.urlsplit(self.server)
            problem = _problem(url, self.server)
        except ValueError:  # of hosts and ports; the exception may hold a part of a password
            problem = "host or port is wrong"
        if problem:
            shown = "" if re.search("[@?#]", self.server) else f" {self.server!r}"
            raise InvalidInput(f"The server{shown} ({self.source}) is not the URL of an API server: {problem}.",
                               hint="It is like https://name:6443.")  # fmt: skip
        return url


def _problem(url: urllib.parse.SplitResult, text: str) -> str | None:
    """Return the problem with the URL of a server. Raises ValueError if its host or port is invalid."""
    if re.search(r"[\x00-\x20\x7f]", text):
        return "it has spaces or control characters"
    if url.scheme not in ("http", "https") or not url.hostname:
        return "it has no scheme and host"
    if url.username is not None or url.query or url.fragment:
        return "it has more than scheme, host, port and path"
    if "%" in url.hostname:
        return "addresses with a zone are not supported"
    url.hostname.encode("idna")
    return "port 0 is none" if url.port == 0 else None


def load(params: Params, env: Environment | None = None) -> Connection:
    """The connection that the options, the environment and the files describe, in that order."""
    env = os.environ if env is None else env
    if params.get("host") and not params.get("kubeconfig") and not params.get("context"):
        found = Connection(server=str(params["host"]), source="option host")
    else:
        found = _from_files(params, env)
    found = _with_options(found, params)
    _check_privacy(found)
    return found if found.proxy else dataclasses.replace(found, proxy=proxy.from_environment(found.url, env))


def _check_privacy(found: Connection) -> None:
    if found.url.scheme == "https" or found.credentials == Fixed() or proxy.is_loopback(found.url.hostname or ""):
        return
    raise InvalidInput(
        f"The server {found.server} ({found.source}) is asked without TLS, and every host on the way could read the credentials.",
        hint="Use https://. kubectl leaves the credentials out, which Muster does not do silently.",
    )


def _from_files(params: Params, env: Environment) -> Connection:
    given, context = params.get("kubeconfig"), params.get("context")
    if isinstance(given, dict):
        return _selected(_named(given, pathlib.Path.cwd(), "option kubeconfig"), context, "option kubeconfig")
    if given and not isinstance(given, str | os.PathLike):
        raise InvalidInput("The option kubeconfig is neither a path nor a mapping.")
    if given:
        return _from_paths(str(given), context, must_exist=True)
    if env.get("KUBECONFIG"):
        return _from_paths(env["KUBECONFIG"], context, must_exist=False)
    default = expanded(DEFAULT_KUBECONFIG, "default kubeconfig")
    if _exists(default):
        return _from_paths(str(default), context, must_exist=True)
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
        ca=read(SERVICE_ACCOUNT / "ca.crt", "certificate authority of the service account"),
    )


Named = dict[str, Settings]


@dataclasses.dataclass
class _Kubeconfig:
    """The entries of one kubeconfig, or of several, by name."""

    current: str = ""
    clusters: Named = dataclasses.field(default_factory=dict)
    contexts: Named = dataclasses.field(default_factory=dict)
    users: Named = dataclasses.field(default_factory=dict)

    def add(self, other: _Kubeconfig) -> None:
        """Add entries whose name is new: the first file that has a name wins, as a whole."""
        self.current = self.current or other.current
        self.clusters = {**other.clusters, **self.clusters}
        self.contexts = {**other.contexts, **self.contexts}
        self.users = {**other.users, **self.users}


def _exists(path: pathlib.Path) -> bool:
    """Return whether the path exists. A pipe, such as that of a shell's ``<(...)``, does, and so does a file without read permission."""
    try:
        return path.exists()
    except OSError:
        return True
    except ValueError:  # a NUL byte
        return False


def _from_paths(value: str, context: str | None, *, must_exist: bool) -> Connection:
    """Several files are merged as kubectl does: the first file that has a name wins; missing ones are skipped."""
    paths = [expanded(part, "kubeconfig") for part in value.split(os.pathsep) if part]
    present = [path for path in paths if _exists(path)]
    if not present or (must_exist and len(present) < len(paths)):
        missing = ", ".join(str(path) for path in paths if path not in present)
        raise InvalidInput(
            f"The kubeconfig {missing} does not exist.",
            hint="Give the path of an existing kubeconfig with the option kubeconfig or the environment variable KUBECONFIG.",
        )
    merged = _Kubeconfig()
    for path in present:
        merged.add(_named(_parse(path, alone=len(present) == 1), path.parent, str(path)))
    return _selected(merged, context, os.pathsep.join(str(path) for path in present))


def _loader() -> t.Any:
    """PyYAML's loader, for which plain words that kubectl reads as text are text: ``10:20``, ``=``, ``<<``, dates."""
    import yaml

    base: t.Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader: t.Any = type("Loader", (base,), {})

    def number(loader: t.Any, node: t.Any) -> t.Any:
        return node.value if ":" in node.value else base.yaml_constructors[node.tag](loader, node)

    for makes, words in ((base.construct_yaml_str, ("merge", "value", "timestamp")), (number, ("int", "float"))):
        for word in words:
            loader.add_constructor(f"tag:yaml.org,2002:{word}", makes)
    return loader


def _parse(path: pathlib.Path, *, alone: bool) -> dict[str, t.Any]:
    """The mapping in a file. One of several may be empty, such as one that ``kubectl config`` will fill."""
    import yaml

    said = where = ""
    try:
        parsed = yaml.load(path.read_bytes(), Loader=_loader())  # noqa: S506
    except OSError as exc:
        raise InvalidInput(f"The kubeconfig {path} cannot be read: {(exc.strerror or str(exc)).lower()}.",
                           hint="It must be a file that the user of the task may read.") from exc  # fmt: skip
    except (yaml.YAMLError, ValueError, RecursionError) as exc:
        mark = getattr(exc, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        # The parser quotes text that may be part of a token.
        said = re.sub(r"""(['"]).{3,}\1""", "...", getattr(exc, "problem", None) or "cannot be parsed")
    else:
        if isinstance(parsed, dict):
            return t.cast(dict[str, t.Any], to_plain_values(parsed))
        if parsed is None and not alone:
            return {}
        raise InvalidInput(f"The kubeconfig {path} is empty or not a mapping.", hint="A kubeconfig has clusters, contexts and users.")
    raise InvalidInput(f"The kubeconfig {path} is not YAML: {said}{where}.")


def _named(config: dict[str, t.Any], folder: pathlib.Path, source: str) -> _Kubeconfig:
    """The entries by name, with the folder that their paths are relative to."""
    top = Settings(config, f"the kubeconfig {source}", folder)
    if top.text("kind") not in ("", "Config"):
        raise InvalidInput(f"{source} is no kubeconfig, but of kind {top.text('kind')}.")
    found = _Kubeconfig(current=top.text("current-context"))
    for plural, singular in _LISTS.items():
        entries: Named = getattr(found, plural)
        for item in top.items(plural):
            name = item.text("name")
            if not name:
                raise InvalidInput(f"The kubeconfig {source} has an entry without a name in {plural}.")
            if name in entries:
                raise InvalidInput(f"The kubeconfig {source} has {singular} {name!r} twice.")
            values = item.revealed().get(singular)
            entries[name] = Settings(values, f"{singular} {name!r} of the kubeconfig {source}", folder)
    return found


def _selected(config: _Kubeconfig, context_name: str | None, source: str) -> Connection:
    name = context_name or config.current
    if not name:
        raise InvalidInput(f"The kubeconfig {source} has no current-context.", hint="Choose one with the option context.")
    context = _entry(config.contexts, "context", name, source)
    context.refuse_unknown(*_CONTEXT)
    cluster = _entry(config.clusters, "cluster", context.text("cluster"), source)
    cluster.refuse_unknown(*_CLUSTER)
    user = Settings({}, "no user", context.folder)
    if "user" in context:
        user = _entry(config.users, "user", context.text("user"), source)
        user.refuse_unknown(*_USER)
    if "server" not in cluster:
        raise InvalidInput(f"{cluster.where} has no server.")
    key = user.pem("client-key")
    ca = cluster.pem("certificate-authority")
    if ca and cluster.flag("insecure-skip-tls-verify"):
        raise InvalidInput(f"{cluster.where} has both a certificate-authority and insecure-skip-tls-verify.",
                           hint="Leave out insecure-skip-tls-verify; kubectl refuses both together, too.")  # fmt: skip
    return Connection(
        server=cluster.text("server"),
        source=source,
        credentials=_credentials(user, cluster, ca),
        namespace=context.text("namespace") or "default",
        verify=not cluster.flag("insecure-skip-tls-verify"),
        ca=ca,
        client_cert=user.pem("client-certificate"),
        client_key=Sensitive(key) if key else None,
        tls_server_name=cluster.text("tls-server-name") or None,
        proxy=proxy.parse(cluster.text("proxy-url"), f"proxy-url of {cluster.where}") if "proxy-url" in cluster else None,
        headers=_impersonation(user),
    )


def _entry(entries: Named, singular: str, name: str, source: str) -> Settings:
    if name not in entries:
        there = ", ".join(sorted(entries)) or "none"
        raise InvalidInput(f"The kubeconfig {source} has no {singular} {name!r}; it has: {there}.")
    return entries[name]


def _credentials(user: Settings, cluster: Settings, ca: str | None) -> Credentials:
    if "auth-provider" in user:
        name = user.inner("auth-provider").text("name")
        raise InvalidInput(f"{user.where} uses auth-provider {name!r}, which Muster does not have; Kubernetes removed most in 1.26.",
                           hint="Write the kubeconfig again with a credential plugin (exec), as gcloud, aws and kubelogin do.")  # fmt: skip
    token, path = user.secret("token"), user.path("tokenFile")
    has_login = "username" in user or "password" in user
    if has_login and (token or path):
        raise InvalidInput(f"{user.where} has a token, and user name and password.", hint="kubectl refuses that, too.")
    if path:
        return TokenFile(path)
    if token:
        return token_of(token, user.where)
    if "exec" in user:
        return Exec(user.inner("exec"), cluster_info(cluster, ca))
    if has_login:
        return basic(user.text("username"), user.secret("password"))
    return Fixed()


def _impersonation(user: Settings) -> headers.Pairs:
    name, groups = user.text("as"), user.texts("as-groups")
    uid, extra = user.text("as-uid"), user.lists("as-user-extra")
    if name:
        return headers.impersonation(name, groups, uid, extra)
    if groups or uid or extra:
        raise InvalidInput(f"{user.where} has as-groups, as-uid or as-user-extra, but no as.")
    return ()


def _with_options(found: Connection, params: Params) -> Connection:
    """Options win over the kubeconfig."""
    changes: dict[str, t.Any] = {}
    if params.get("host") and found.source != "option host":
        # The TLS server name is that of the kubeconfig's server; kubectl's --server drops it, too.
        changes |= {"server": str(params["host"]), "source": f"option host with {found.source}", "tls_server_name": None}
    if params.get("api_key"):
        changes["credentials"] = token_of(Sensitive(str(params["api_key"])), "option api_key")
    elif params.get("username"):
        changes["credentials"] = basic(str(params["username"]), Sensitive(str(params.get("password") or "")))
    for option, field in (("ca_cert", "ca"), ("client_cert", "client_cert"), ("client_key", "client_key")):
        if params.get(option):
            changes[field] = read(expanded(str(params[option]), f"option {option}"), f"option {option}")
    if "client_key" in changes:
        changes["client_key"] = Sensitive(changes["client_key"])
    if "ca" in changes:
        changes["verify"] = True  # whatever the kubeconfig says; as kubectl's --certificate-authority
    if params.get("validate_certs") is not None:
        changes["verify"] = bool(params["validate_certs"])
    if params.get("proxy"):
        changes["proxy"] = proxy.parse(str(params["proxy"]), "option proxy")
    user, groups = params.get("impersonate_user"), params.get("impersonate_groups") or ()
    if groups and not user:
        raise InvalidInput("impersonate_groups needs impersonate_user.", hint="Kubernetes acts as groups only with a user.")
    if user:
        changes["headers"] = headers.impersonation(str(user), [str(group) for group in groups], "", {})
    return dataclasses.replace(found, **changes)
