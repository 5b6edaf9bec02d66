# SPDX-License-Identifier: GPL-3.0-or-later
"""Judges variables of an inventory or of ``-e`` by the argument specs of the roles: names that no role has, and values that none takes.

Among those are values that their argument specs take, and that the roles or a cloud would refuse or misread later.
"""

from __future__ import annotations

import fnmatch
import re
import typing as t
from collections.abc import Iterable, Mapping, Sequence

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.muster.ml.plugins.module_utils._aws.plan import refuse_tags
from ansible_collections.muster.ml.plugins.module_utils._cloud.texts import texts
from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._gcp import labels
from ansible_collections.muster.ml.plugins.plugin_utils._role_options import Target, free, target, variables_of
from ansible_collections.muster.ml.plugins.plugin_utils._specs import names, nearest, options, roles

AS_TEXT: t.Final = ("muster_only", "muster_systems")
"""Lists that may be given as text with commas: ``-e muster_systems=elastic``, and surveys of AWX."""
_FORMS: t.Final = {"list": '["a", "b"]', "dict": '{"key": "value"}'}


def refused(name: str, value: object, spec: t.Mapping[str, t.Any]) -> str:
    """Say why the value of a variable is refused, as the rest of a sentence that begins with its name; empty for a good value."""
    kind = str(spec.get("type", "str"))
    if isinstance(value, str) and kind in _FORMS and name not in AS_TEXT:
        # An argument spec takes text for both; a template that reads the variable gets the text, letter by letter.
        written = f'{{"{name}": {_FORMS[kind]}}}'
        return f"must be a {kind}, not text. With -e it is written as JSON: -e '{written}'."
    try:
        if isinstance(value, dict) and name == "muster_aws_tags":
            # IAM takes less than the others, and the same tags are on roles of IAM.
            refuse_tags(name, texts(name, value), "iam")
        if isinstance(value, dict) and name == "muster_gcp_labels":
            labels.refuse_labels(name, labels.texts(value, name))
    except InvalidInput as error:
        return f"has what the cloud refuses: {str(error).removeprefix(f'{name}: ')}."
    return ""


IGNORED: t.Final = "muster_ignored_variables"

_SHARED = ("dataset", "etcd", "jobset", "kueue", "lws", "namespace", "object_store", "prometheus", "rabbitmq", "traefik")
"""Roles with the name of a program that inventories of other projects configure, too (kubespray has 60 variables etcd_*)."""

_CHECKED: t.Final = ("type", "elements", "choices", "no_log")
_SECRET = re.compile(r"password|secret|token|key|credential", re.IGNORECASE)


class Given(t.NamedTuple):
    """A variable or a key of one, its value, and where it was set (``file:line`` or ``-e``)."""

    name: str
    value: object
    place: str
    constant: bool = True
    """False: the value is a template or encrypted, and is not judged."""
    keys: Sequence[Given] = ()
    """The entries of a mapping."""


def problems(given: Iterable[Given], ignored: Sequence[str] = ()) -> list[str]:
    """One sentence for each variable or option that is unknown or has a value that is refused, in the order of their names."""
    rows = sorted(row for row in given if not any(fnmatch.fnmatchcase(row.name, pattern) for pattern in ignored))
    return [sentence for row in rows for sentence in (_unknown(row), *_wrong(row)) if sentence]


def _unknown(given: Given) -> str:
    known = names()
    if given.name in known:
        return ""
    own = next((role for role in roles() if given.name.startswith(f"{role}_")), "")
    others = {f"{name.removesuffix('_options')}_{key}": f"{key} in {name}" for name in variables_of(own) for key in free(name)}
    near = nearest(given.name, {**known, **others})
    if not near and (not (own or given.name.startswith("muster_")) or own in _SHARED):
        return ""
    advice = f"Did you mean {near if near in known else others[near]}?" if near else "docs/reference has those that exist."
    return f"{given.name} ({given.place}) is not a variable of Muster. {advice} If it is yours, name it in {IGNORED}."


def _wrong(given: Given) -> list[str]:
    """One sentence if the value is refused, and one for each key that is, of a variable whose keys are options."""
    role, found = names().get(given.name), target(given.name) if given.keys else None
    own = "" if role is None else _refused(given, given.name, options(role)[given.name])
    return [own, *([_wrong_option(key, f"{given.name}.{key.name}", found) for key in given.keys] if found else [])]


def _wrong_option(given: Given, shown: str, found: Target) -> str:
    if given.name in found.taken:
        by = f"the variable {found.taken[given.name]}" if found.taken[given.name] else "the role itself"
        return f"{shown} ({given.place}) is set by {by}."
    if given.name in found.options:
        return _refused(given, shown, found.options[given.name])
    near = nearest(given.name, found.options)
    meant = found.taken.get(near) or near
    advice = f" Did you mean {meant}?" if near else ""
    return f"{shown} ({given.place}) is no option of the {found.title} that the role passes on.{advice}"


def _refused(given: Given, shown: str, whole: Mapping[str, t.Any]) -> str:
    """A sentence if the spec refuses the value. Its default, which may be a template, is left out."""
    spec = {key: value for key, value in whole.items() if key in _CHECKED}
    if not given.constant or given.value is None:
        return ""
    if shown == given.name and (wrong := refused(shown, given.value, spec)):
        return f"{shown} ({given.place}) {wrong}"
    if not ArgumentSpecValidator({given.name: spec}).validate({given.name: given.value}).error_messages:
        return ""
    value = "" if spec.get("no_log") or _SECRET.search(given.name) else f", not {given.value}"
    choices = [str(choice) for choice in spec.get("choices") or ()]
    if not choices:
        elements = f" of {spec['elements']}" if "elements" in spec else ""
        return f"{shown} ({given.place}) must be of type {spec.get('type', 'str')}{elements}{value}."
    several = isinstance(given.value, list)
    near = [nearest(str(one), choices) for one in t.cast("list[t.Any]", given.value if several else [given.value])]
    meant = f" Did you mean {', '.join(filter(None, near))}?" if any(near) else ""
    return f"{shown} ({given.place}) must be {'of' if several else 'one of'} {', '.join(choices)}{value}.{meant}"
