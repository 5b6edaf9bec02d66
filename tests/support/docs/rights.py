# SPDX-License-Identifier: GPL-3.0-or-later
"""What the service accounts of the collection may do: the table of docs/operating/security.md, from the goldens of the builders.

The check `differential` asks an API server for the same.
"""

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from support.places import ROOT
from support.reading import load

NAME = "scripts/docs"
PAGE = ROOT / "docs" / "operating" / "security.md"
GOLDENS = ROOT / "tests" / "unit" / "goldens"
# Golden -> the variant that it shows. The table has all that have a ServiceAccount.
VARIANTS = {
    "local_cluster_default": "", "nats_operator_namespace": "`scope: namespace`", "nats_operator_cluster": "`scope: cluster`",
    "persia_operator": "", "prometheus": "", "prometheus_adapter": "", "s3_artifacts_irsa": "", "studioml_runner": "", "traefik": "",
    "traefik_namespaces": "`namespaces: [ml]`", "training_operator": "", "training_operator_namespace": "`namespaces: [ml]`",
    "llm_claim": "",
    "triton_volume": "",
}  # fmt: skip
ACCESS = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
# A role that every API server makes (plugin/pkg/auth/authorizer/rbac/bootstrappolicy).
READER = "extension-apiserver-authentication-reader"
OF_KUBERNETES = {
    READER: [
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["extension-apiserver-authentication"],
         "verbs": ["get", "list", "watch"]},
    ],
}  # fmt: skip
EVERYWHERE = ""

Object = dict[str, Any]
Right = tuple[str, str, str, str]
"""API group, resource, name (empty: any), verb."""


def access_objects(golden: str) -> list[Object]:
    """The service accounts of a golden with their roles and bindings."""
    found = load(GOLDENS / f"{golden}.yaml")
    return [item for item in found if item["kind"] in ACCESS]


def rules_of(objects: Iterable[Object]) -> dict[tuple[str, str], dict[str, list[Object]]]:
    """(namespace, name) of each account -> its rules by the namespace in which they hold."""
    objects = list(objects)
    roles = {(item["kind"], item["metadata"]["name"], item["metadata"].get("namespace")): item["rules"]
             for item in objects if item["kind"].endswith("Role")}  # fmt: skip
    found: dict[tuple[str, str], dict[str, list[Object]]] = {
        (item["metadata"]["namespace"], item["metadata"]["name"]): {} for item in objects if item["kind"] == "ServiceAccount"
    }
    for item in (one for one in objects if one["kind"].endswith("Binding")):
        where, role = item["metadata"].get("namespace", EVERYWHERE), item["roleRef"]
        own = roles.get((role["kind"], role["name"], where or None))
        rules = OF_KUBERNETES[role["name"]] if own is None else own
        for subject in item["subjects"]:
            found[subject["namespace"], subject["name"]].setdefault(where, []).extend(rules)
    return found


def atoms(rules: Iterable[Mapping[str, Any]]) -> set[Right]:
    """The rules one right at a time."""
    return {
        right
        for rule in rules
        for right in itertools.product(rule["apiGroups"], rule["resources"], rule.get("resourceNames") or [""], rule["verbs"])
    }


def _said(rules: Iterable[Mapping[str, Any]]) -> str:
    rows = []
    for rule in rules:
        groups = [group for group in rule["apiGroups"] if group]
        of = f" of `{'`, `'.join(groups)}`" if groups else ""
        only = f", only `{'`, `'.join(rule['resourceNames'])}`" if rule.get("resourceNames") else ""
        rows.append(f"{', '.join(rule['verbs'])} `{'`, `'.join(rule['resources'])}`{of}{only}")
    return "<br>".join(rows)


def table() -> str:
    """The table as Markdown."""
    lines = ["| account | in | may |", "|---|---|---|"]
    for golden, variant in VARIANTS.items():
        for (own, name), places in rules_of(access_objects(golden)).items():
            named = f"`{name}`" + (f", {variant}" if variant else "")
            for where, rules in sorted(places.items(), reverse=True):
                place = "all namespaces" if where == EVERYWHERE else "its own namespace" if where == own else f"`{where}`"
                lines.append(f"| {named} | {place} | {_said(rules)} |")
            if not places:
                lines.append(f"| {named} | | nothing |")
    return "\n".join(lines)
