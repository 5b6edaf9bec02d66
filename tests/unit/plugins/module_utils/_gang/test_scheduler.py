# SPDX-License-Identifier: GPL-3.0-or-later

"""The verdict beside a scheduler of a few lines, on random small clusters: it places pod after pod, in every order and in every way."""

from __future__ import annotations

import functools
import typing as t

from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.muster.ml.plugins.module_utils._gang.judge import Seen, judge
from ansible_collections.muster.ml.plugins.module_utils._gang.preflight import gang
from ansible_collections.muster.ml.tests.unit.fakes.gang import GPU, NAMESPACE, Things

Manifest = dict[str, t.Any]
X = Things()
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
HARD = "requiredDuringSchedulingIgnoredDuringExecution"


def asks(pod: Manifest, name: str) -> int:
    return sum(int(c.get("resources", {}).get("requests", {}).get(name, 0)) for c in pod["spec"]["containers"])


class Scheduler:
    """The filters of kube-scheduler that these clusters need, written down pod by pod, as its documentation tells them."""

    def __init__(self, nodes: list[Manifest], pods: list[Manifest]) -> None:
        self.nodes = {node["metadata"]["name"]: node for node in nodes}
        self.there = [(pod, pod["spec"]["nodeName"]) for pod in pods]

    def allows(self, pod: Manifest, name: str, placed: list[tuple[Manifest, str]]) -> bool:
        node, others = self.nodes[name], [*self.there, *placed]
        here = [other for other, at in others if at == name]
        taints = [*node["spec"]["taints"], *([{"key": "cordoned"}] if node["spec"].get("unschedulable") else [])]
        tolerated = {row["key"] for row in pod["spec"].get("tolerations", [])}
        return (
            node["status"]["conditions"][0]["status"] == "True"
            and all(taint["key"] in tolerated for taint in taints)
            and self.chosen(pod, node)
            and all(self.enough(pod, node, here, what) for what in ("cpu", GPU))
            and len(here) < int(node["status"]["allocatable"]["pods"])
            and not any(self.apart(*pair) for other in here for pair in ((pod, other), (other, pod)))
            and all(self.even(pod, node, others, row) for row in pod["spec"].get("topologySpreadConstraints", []))
        )

    def chosen(self, pod: Manifest, node: Manifest) -> bool:
        return pod["spec"].get("nodeSelector", {}).items() <= node["metadata"]["labels"].items()

    def enough(self, pod: Manifest, node: Manifest, here: list[Manifest], what: str) -> bool:
        need = asks(pod, what)
        return not need or need + sum(asks(one, what) for one in here) <= int(node["status"]["allocatable"].get(what, 0))

    def apart(self, pod: Manifest, other: Manifest) -> bool:
        terms = pod["spec"].get("affinity", {}).get("podAntiAffinity", {}).get(HARD, [])
        return any(self.meant(term, other) for term in terms)

    def meant(self, row: Manifest, pod: Manifest) -> bool:
        return row["labelSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()

    def even(self, pod: Manifest, node: Manifest, others: list[tuple[Manifest, str]], row: Manifest) -> bool:
        key = row["topologyKey"]
        compared = [one for one in self.nodes.values() if self.chosen(pod, one) and key in one["metadata"]["labels"]]
        domain = {one["metadata"]["name"]: one["metadata"]["labels"][key] for one in compared}
        count = dict.fromkeys(domain.values(), 0)
        for other, at in others:
            if at in domain and self.meant(row, other):
                count[domain[at]] += 1
        mine = domain.get(node["metadata"]["name"])
        return mine is not None and count[mine] + self.meant(row, pod) - min(count.values()) <= row["maxSkew"]

    def outcomes(self, groups: list[Manifest]) -> tuple[bool, bool]:
        """Whether some run places all pods, and whether every run does."""
        names = list(self.nodes)
        made = [X.pod(g["name"], labels=g["template"]["metadata"]["labels"], **dict(g["template"]["spec"])) for g in groups]
        for pod, group in zip(made, groups, strict=True):
            pod["spec"] = group["template"]["spec"]

        @functools.cache
        def ends(state: tuple[tuple[int, ...], ...]) -> tuple[bool, bool]:
            left = [at for at, group in enumerate(groups) if sum(state[at]) < group["replicas"]]
            if not left:
                return True, True
            placed = [(made[at], names[n]) for at, row in enumerate(state) for n, many in enumerate(row) for _pod in range(many)]
            found = []
            for at in left:
                for n, name in enumerate(names):
                    if self.allows(made[at], name, placed):
                        row = tuple(many + (n == number) for number, many in enumerate(state[at]))
                        found.append(ends((*state[:at], row, *state[at + 1 :])))
            return any(some for some, _every in found), bool(found) and all(every for _some, every in found)

        return ends(tuple((0,) * len(names) for _group in groups))


def anti(label: str) -> Manifest:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": label}}}
    return {"podAntiAffinity": {HARD: [term]}}


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Manifest], list[Manifest]]:
    nodes = []
    for number in range(draw(st.integers(1, 3))):
        labels = {"pool": draw(st.sampled_from("xy")), ZONE: draw(st.sampled_from("ab"))}
        taints = draw(st.sampled_from([[], [], [{"key": "t", "effect": "NoSchedule"}]]))
        often = st.sampled_from([True, True, True, True, False])
        nodes.append(
            X.node(
                f"n{number}",
                labels=labels,
                taints=taints,
                cpu=draw(st.integers(0, 4)),
                gpu=draw(st.integers(0, 2)),
                pods=draw(st.sampled_from([2, 110])),
                cordoned=not draw(often),
                ready=draw(often),
            )
        )
    pods = [
        X.pod(
            f"p{number}",
            draw(st.sampled_from([node["metadata"]["name"] for node in nodes])),
            X.container(cpu=draw(st.integers(0, 1))),
            labels={"app": draw(st.sampled_from("abc"))},
            affinity=draw(st.sampled_from([{}, {}, anti("a"), anti("b")])),
        )
        for number in range(draw(st.integers(0, 2)))
    ]
    return nodes, pods


@st.composite
def gangs(draw: st.DrawFn) -> list[Manifest]:
    groups = []
    for name in "ab"[: draw(st.integers(1, 2))]:
        spec: Manifest = {
            "nodeSelector": draw(st.sampled_from([{}, {}, {"pool": "x"}])),
            "tolerations": draw(st.sampled_from([[], [{"key": "t", "operator": "Exists"}]])),
            "affinity": draw(st.sampled_from([{}, {}, anti("a"), anti("b"), anti("c")])),
        }
        if draw(st.integers(0, 3)) == 0:
            row = {"topologyKey": draw(st.sampled_from([HOST, ZONE])), "whenUnsatisfiable": "DoNotSchedule"}
            counted = {"labelSelector": {"matchLabels": {"app": draw(st.sampled_from("abc"))}}}
            spec["topologySpreadConstraints"] = [{**row, **counted, "maxSkew": draw(st.integers(1, 2))}]
        box = X.container(cpu=draw(st.integers(0, 3)), gpu=draw(st.sampled_from([0, 0, 1])))
        groups.append(X.group(draw(st.integers(0, 3)), box, name=name, labels={"app": name}, **spec))
    return groups


@settings(max_examples=max(40, settings().max_examples))
@given(clusters(), gangs())
def test_no_verdict_is_wrong(cluster: tuple[list[Manifest], list[Manifest]], groups: list[Manifest]) -> None:
    nodes, pods = cluster
    found = judge(gang([], NAMESPACE, rows=groups), Seen(nodes=nodes, pods=pods))
    some, every = Scheduler(nodes, pods).outcomes(groups)
    assert every or found.fits is not True
    assert not some or found.fits is not False
    for row in found.nearest:
        smaller = [{**g, "replicas": row["replicas"]} if g["name"] == row["name"] else g for g in groups]
        assert Scheduler(nodes, pods).outcomes(smaller)[1]
