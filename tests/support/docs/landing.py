# SPDX-License-Identifier: GPL-3.0-or-later
"""What a system creates in its namespace, drawn from the objects of its builders: Services, workloads that they lead to, what those mount.

make docs puts one on the page of each system; that of elastic PyTorch is README's, too.
"""

from collections.abc import Iterator
from html import escape
from typing import Any

import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.muster.ml.plugins.module_utils._systems.elastic import native, spec
from ansible_collections.muster.ml.plugins.modules import elastic_job
from support.docs.rights import GOLDENS

Object = dict[str, Any]
SYSTEMS = {
    "elastic": (),
    "llm": ("llm_claim",),
    "persia": ("nats_cluster_statefulset", "persia_job_native"),
    "studioml": ("rabbitmq_cluster_one", "object_store", "studioml_runner"),
    "tpu": ("jobset_tpu",),
    "triton": ("triton_volume",),
}
ELASTIC = {
    "name": "digits",
    "namespace": "ml",
    "replicas": 2,
    "image": "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime",
    "script": "train.py",
    "files": {"train.py": "# The script of the reader."},
    "storage": {"claim_name": "digits", "size": "10Gi"},
}
README = "docs/elastic.svg"
MOUNTED = {
    "configMap": ("ConfigMap", "name"),
    "secret": ("Secret", "secretName"),
    "persistentVolumeClaim": ("PersistentVolumeClaim", "claimName"),
}
WIDTH, HEIGHT, BOX, ROW = 760, 40, 220, 54
STYLE = "rect{fill:#fff;stroke:#57606a}text{font:12px sans-serif;fill:#1f2328}.k{fill:#57606a;font-size:11px}path{stroke:#57606a;fill:none}"


def objects(system: str) -> list[Object]:
    """What the builders make: the goldens, and for elastic PyTorch its module's."""
    if system == "elastic":
        checked = ArgumentSpecValidator(elastic_job.ARGUMENT_SPEC).validate(ELASTIC)
        return list(native.manifests(spec.from_params(checked.validated_parameters)))
    return [item for name in SYSTEMS[system] for item in yaml.safe_load((GOLDENS / f"{name}.yaml").read_text(encoding="utf-8"))]


def templates(value: Any) -> Iterator[Object]:
    """The pod templates in an object, however deep."""
    if isinstance(value, dict):
        if isinstance(value.get("spec"), dict) and "containers" in value["spec"]:
            yield value
        else:
            for part in value.values():
                yield from templates(part)
    elif isinstance(value, list):
        for part in value:
            yield from templates(part)


def mounts(workload: Object) -> Iterator[tuple[str, str]]:
    """Kind and name of what its pods mount."""
    for volume in (volume for template in templates(workload) for volume in template["spec"].get("volumes") or ()):
        yield from ((kind, volume[key][name]) for key, (kind, name) in MOUNTED.items() if key in volume)
    for claim in workload["spec"].get("volumeClaimTemplates") or ():
        yield "PersistentVolumeClaim", f"{claim['metadata']['name']}, one a pod"


def leads_to(service: Object, workload: Object) -> bool:
    """Whether the Service selects the workload's pods."""
    selector = service["spec"].get("selector") or {}
    labels = [(template.get("metadata") or {}).get("labels") or {} for template in templates(workload)]
    return bool(selector) and any(selector.items() <= found.items() for found in labels)


def picture(system: str) -> str:
    """The drawing as SVG."""
    made = objects(system)
    services = [item for item in made if item["kind"] == "Service"]
    workloads = [item for item in made if any(templates(item))]
    read = list(dict.fromkeys(mount for item in workloads for mount in mounts(item)))
    columns = [[_key(item) for item in services], [_key(item) for item in workloads], read]
    places = {(column, key): row for column, keys in enumerate(columns) for row, key in enumerate(keys)}
    arrows = [(0, _key(one), _key(other)) for one in services for other in workloads if leads_to(one, other)]
    arrows += [(1, _key(one), mount) for one in workloads for mount in dict.fromkeys(mounts(one))]
    rest = sorted({item["kind"] for item in made} - {"Service", *(kind for kind, _name in (*columns[1], *read))})
    below = 20 + ROW * max(map(len, columns))
    parts = [_line(column, places[column, one], places[column + 1, other]) for column, one, other in arrows]
    parts += [_box(10 + column * 250, row, *key) for (column, key), row in places.items()]
    parts += [f'<text x="10" y="{below}" class="k">and {escape(", ".join(rest))}</text>'] if rest else []
    size = f'viewBox="0 0 {WIDTH} {below + 12}" width="{WIDTH}" height="{below + 12}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><style>{STYLE}</style>{"".join(parts)}</svg>\n'


def _key(item: Object) -> tuple[str, str]:
    return item["kind"], item["metadata"]["name"]


def _line(column: int, row: int, beside: int) -> str:
    x = 10 + BOX + column * 250
    return f'<path d="M{x},{30 + row * ROW} L{x + 30},{30 + beside * ROW}"/>'


def _box(x: int, row: int, kind: str, name: str) -> str:
    y = 10 + row * ROW
    lines = ((y + 16, "k", kind), (y + 32, "n", name))
    texts = "".join(f'<text x="{x + 8}" y="{at}" class="{style}">{escape(text)}</text>' for at, style, text in lines)
    return f'<rect x="{x}" y="{y}" width="{BOX}" height="{HEIGHT}" rx="5"/>{texts}'
