# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that modules share. Twins of the doc fragments auth, wait, apply and removal; a test compares them.

Connection and wait options are named as in kubernetes.core, so that users can keep their ``module_defaults`` and habits.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing as t
from collections.abc import Mapping, Sequence

from ansible.module_utils.basic import env_fallback

Spec = dict[str, dict[str, t.Any]]


def _env(name: str) -> tuple[t.Callable[..., t.Any], list[str]]:
    return (env_fallback, [f"K8S_AUTH_{name}"])


AUTH: Spec = {
    "kubeconfig": {"type": "raw", "fallback": _env("KUBECONFIG")},
    "context": {"type": "str", "fallback": _env("CONTEXT")},
    "host": {"type": "str", "fallback": _env("HOST")},
    "api_key": {"type": "str", "no_log": True, "fallback": _env("API_KEY")},
    "username": {"type": "str", "fallback": _env("USERNAME")},
    "password": {"type": "str", "no_log": True, "fallback": _env("PASSWORD")},
    "client_cert": {"type": "path", "aliases": ["cert_file"], "fallback": _env("CERT_FILE")},
    "client_key": {"type": "path", "no_log": False, "aliases": ["key_file"], "fallback": _env("KEY_FILE")},
    "ca_cert": {"type": "path", "aliases": ["ssl_ca_cert"], "fallback": _env("SSL_CA_CERT")},
    "validate_certs": {"type": "bool", "aliases": ["verify_ssl"], "fallback": _env("VERIFY_SSL")},
    "proxy": {"type": "str", "fallback": _env("PROXY")},
    "impersonate_user": {"type": "str", "fallback": _env("IMPERSONATE_USER")},
    "impersonate_groups": {"type": "list", "elements": "str", "fallback": _env("IMPERSONATE_GROUPS")},
}
"""Added to every module by ``module_main``."""

STATE: Spec = {"state": {"type": "str", "choices": ["present", "absent"], "default": "present"}}

WAIT: Spec = {"wait": {"type": "bool", "default": False}, "wait_timeout": {"type": "int", "default": 120}}

APPLY: Spec = {
    "adopt": {"type": "bool", "default": False},
    "force_conflicts": {"type": "bool", "default": False},
    "recreate": {"type": "bool", "default": False},
}

REMOVAL: Spec = {"ignore_users_of": {"type": "list", "elements": "str", "default": []}}
"""The options of modules that delete objects which others may use."""


_TEXTS: dict[str, t.Any] = {"type": "list", "elements": "str", "required": True}
_RULE: Spec = {"api_groups": _TEXTS, "resources": _TEXTS, "verbs": _TEXTS, "cluster_wide": {"type": "bool", "default": False}}
SURVEY: Spec = {"namespace": {"type": "str"}, "rules": {"type": "list", "elements": "dict", "default": [], "options": _RULE}}
"""The options of modules that look at one namespace and its cluster."""


def full_spec(own: Spec) -> Spec:
    """The options of one module, with those of the connection."""
    return {**AUTH, **own}


def options_of(kind: type, *names: str, hidden: Sequence[str] = (), required: bool = False) -> Spec:
    """The fields of a dataclass as options, so that type, choices and default of each are written once: those of NAMES, or all but HIDDEN.

    A field whose type is none of YAML's, such as ``PodSettings``, is no option. REQUIRED: a field without a default is a required option.
    """
    hints = t.get_type_hints(kind)
    fields = [field for field in dataclasses.fields(t.cast(t.Any, kind)) if field.name not in hidden and (not names or field.name in names)]
    found = {field.name: _option(field, hints[field.name], required=required) for field in fields}
    return {name: option for name, option in found.items() if option}


_YAML = {str: "str", int: "int", bool: "bool", float: "float", dict: "dict", Mapping: "dict"}
_ELEMENTS = {str: "str", int: "int", t.Any: "raw"}
_NAMES_SECRET = re.compile(r"secret|token")
"""Options that are called so hold names: a secret itself is ``Sensitive``, which is no type of YAML."""


def _option(field: dataclasses.Field[t.Any], hint: t.Any, *, required: bool) -> dict[str, t.Any]:
    given = next((one for one in t.get_args(hint) if one is not types.NoneType), hint) if types.NoneType in t.get_args(hint) else hint
    origin, inner = t.get_origin(given) or given, t.get_args(given)
    if origin is t.Literal:
        option: dict[str, t.Any] = {"type": "str", "choices": list(inner)}
    elif origin in (list, Sequence) and t.get_origin(inner[0]) is t.Literal:
        option = {"type": "list", "elements": "str", "choices": list(t.get_args(inner[0]))}
    elif origin in (list, Sequence):
        option = {"type": "list", "elements": _ELEMENTS.get(inner[0], "dict")}
    elif origin in _YAML:
        option = {"type": _YAML[origin]}
    else:
        return {}
    if _NAMES_SECRET.search(field.name):
        option["no_log"] = False
    default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
    if default is dataclasses.MISSING:
        return {**option, "required": True} if required else option
    return option if default is None else {**option, "default": list(default) if isinstance(default, tuple) else default}


def fields_of(value: type, params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The options that are fields of a dataclass, as its arguments. An option that was left out has the default of the field."""
    names = {field.name for field in dataclasses.fields(t.cast(t.Any, value))}
    return {name: given for name, given in params.items() if name in names and given is not None}
