# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that are dicts with keys of the user's own: what is taken out of one is taken away on Google (terraform-provider-google#8566)."""

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.muster.ml.plugins import modules
from ansible_collections.muster.ml.plugins.module_utils._gcp.compare import MAPS
from simulators.google import discovery
from simulators.google.client import PROJECT, Simulator
from simulators.google.reader import COMPUTE, GKE, REGION, Reader
from simulators.modules import Run

Body = dict[str, Any]
OWNER = "maps"
CLUSTER = f"{GKE}/{REGION}/clusters/maps"
IMAGES = f"https://artifactregistry.googleapis.com/v1/projects/{PROJECT}/locations/{REGION}/repositories/maps"
ZONE = f"{REGION}-b"
IMAGE = "projects/debian-cloud/global/images/family/debian-12"
KEEP = {"action": "KEEP", "mostRecentVersions": {"keepCount": 10}}
OLD = {"action": "DELETE", "condition": {"olderThan": "2592000s", "tagState": "UNTAGGED"}}
COMMON: dict[str, Body] = {
    "gke_cluster": {"name": "maps", "location": REGION},
    "gke_node_pool": {"name": "maps", "cluster_name": "maps", "location": REGION},
    "gcp_address": {"name": "maps", "region": REGION},
    "gcp_instance": {"name": "maps", "zone": ZONE, "network": "ground", "subnetwork": "ground"},
    "gcp_artifact_repository": {"name": "maps", "location": REGION},
    "gcs_bucket": {"name": "maps-of-x", "location": REGION},
}  # fmt: skip
URLS = {
    "gke_cluster": CLUSTER, "gke_node_pool": f"{CLUSTER}/nodePools/maps", "gcp_address": f"{COMPUTE}/regions/{REGION}/addresses/maps",
    "gcp_instance": f"{COMPUTE}/zones/{ZONE}/instances/maps", "gcp_artifact_repository": IMAGES,
    "gcs_bucket": "https://storage.googleapis.com/storage/v1/b/maps-of-x",
}  # fmt: skip
# Of a free dict: two values of a key, which all three keys of the test get.
TEXT = ("1", "2")


def labels(live: Body) -> Body:
    """Without the owner's and Google's own."""
    return {key: value for key, value in live.items() if not key.startswith(("muster-", "goog-"))}


def same(live: Body) -> Body:
    return live


# Module, path of the option, path of the field, two values, what is shown of the field.
Row = tuple[str, str, str, tuple[Any, Any], Callable[[Body], Body]]
FREE: list[Row] = [
    ("gke_cluster", "labels", "resourceLabels", TEXT, labels),
    ("gke_node_pool", "config.labels", "config.labels", TEXT, labels),
    ("gke_node_pool", "config.resource_labels", "config.resourceLabels", TEXT, labels),
    ("gke_node_pool", "config.other.linuxNodeConfig.sysctls", "config.linuxNodeConfig.sysctls", (4096, 8192), same),
    ("gke_node_pool", "config.other.resourceManagerTags.tags", "config.resourceManagerTags.tags", TEXT, same),
    ("gcp_address", "labels", "labels", TEXT, labels),
    ("gcp_instance", "labels", "labels", TEXT, labels),
    ("gcp_instance", "metadata", "metadata", TEXT, lambda live: {row["key"]: row["value"] for row in live.get("items", [])}),
    ("gcp_artifact_repository", "labels", "labels", TEXT, labels),
    ("gcp_artifact_repository", "cleanup_policies", "cleanupPolicies", (KEEP, OLD),
     lambda live: {name: {key: value for key, value in row.items() if key != "id"} for name, row in live.items()}),
    ("gcs_bucket", "labels", "labels", TEXT, labels),
]  # fmt: skip
# Free dicts that are no maps of the API.
OTHERS = {
    "gke_node_pool config.metadata": "refused, see below",
    "gke_node_pool config.other": "fields of NodeConfig, in which the maps are",
    "gke_node_pool upgrade_settings.blue_green_settings": "fields of BlueGreenSettings, which has no map",
}


def put(path: str, value: Any) -> Body:
    for name in reversed(path.split(".")):
        value = {name: value}
    return dict(value)


def look(body: Body, path: str) -> Any:
    for name in path.split("."):
        body = body.get(name) or {}
    return body


def options(module: str, path: str, value: Any, **more: Any) -> Body:
    found = {**COMMON[module], "owner": OWNER, **put(path, value), **more}
    if "maintenance_window" in found:
        found["maintenance_window"]["daily_start_time"] = "03:00"
    return found


@pytest.fixture(scope="module")
def made() -> set[str]:
    return set()


@pytest.fixture
def make(run: Run, ground: dict[str, str], made: set[str]) -> Callable[[str], None]:
    """Make what a module works on, once."""
    creation: dict[str, Body] = {
        "gke_cluster": {**ground, "release_channel": "REGULAR", "node_locations": [ZONE]},
        "gke_node_pool": {
            "node_count": 0, "config": {"machine_type": "e2-standard-4", "other": {"linuxNodeConfig": {"cgroupMode": "CGROUP_MODE_V2"}}},
        },
        "gcp_instance": {"machine_type": "e2-small", "disk": {"size_gb": 10, "source_image": IMAGE}},
    }  # fmt: skip

    def one(module: str) -> None:
        needed = ["gke_cluster"] if module == "gke_node_pool" else []
        for name in (*needed, module):
            if name not in made:
                done = run(name, **COMMON[name], owner=OWNER, **creation.get(name, {}))
                assert not done.get("failed"), done["msg"]
                made.add(name)

    return one


def shown(value: Any) -> Any:
    """As Google shows a value of a map."""
    return str(value) if isinstance(value, int) else value


@pytest.mark.parametrize(("module", "option", "field", "values", "read"), FREE, ids=lambda one: one if isinstance(one, str) else "")
def test_every_key_of_a_map_counts(
    make: Callable[[str], None], changes: Run, reader: Reader, module: str, option: str, field: str, values: tuple[Any, Any],
    read: Callable[[Body], Body],
) -> None:  # fmt: skip
    """Two keys; one more, and another value; one less; none. Each is planned, sent and found as it is afterwards."""
    make(module)
    one, other = values
    for wanted in ({"xmas": one, "launch": one}, {"xmas": other, "launch": one, "more": one}, {"xmas": other, "more": one}, {}):
        done = changes(module, **options(module, option, wanted))
        assert read(look(reader.get(URLS[module]), field)) == {key: shown(value) for key, value in wanted.items()}
        assert len(done["actions"]) == 1, done["actions"]


def test_what_a_request_replaces_beside_a_map_stays(make: Callable[[str], None], run: Run, reader: Reader) -> None:
    make("gke_node_pool")
    run("gke_node_pool", **options("gke_node_pool", "config.other.linuxNodeConfig.sysctls", {"vm.overcommit_memory": 1}))
    run("gke_node_pool", **options("gke_node_pool", "config.other.linuxNodeConfig.sysctls", {}))
    assert reader.get(URLS["gke_node_pool"])["config"]["linuxNodeConfig"] == {"cgroupMode": "CGROUP_MODE_V2"}


def test_metadata_of_nodes_cannot_be_changed_not_even_by_leaving_a_key_out(
    make: Callable[[str], None], run: Run, google: Simulator
) -> None:
    make("gke_cluster")
    pool = {**COMMON["gke_node_pool"], "name": "metadata", "owner": OWNER, "node_count": 0}
    config = {"machine_type": "e2-standard-4"}
    assert run("gke_node_pool", **pool, config={**config, "metadata": {"a": "1", "b": "2"}})["changed"] is True
    google.clear()
    for wanted in ({"a": "1"}, {"a": "1", "b": "3"}, {"a": "1", "b": "2", "c": "3"}, {}):
        refused = run("gke_node_pool", **pool, config={**config, "metadata": wanted})
        assert "has config.metadata {'a': '1', 'b': '2'}; Google cannot change it to" in refused["msg"]
    assert run("gke_node_pool", **pool, config={**config, "metadata": {"a": "1", "b": "2"}})["changed"] is False
    assert google.attempts() == []


LABELS = [row[:2] for row in FREE if row[1].rsplit(".", 1)[-1] in ("labels", "resource_labels") and row[1] != "config.labels"]
# Options, and what the refusal says of them.
IMPOSSIBLE: list[tuple[str, str, Any, str]] = [
    *((*row, {key: value}, words) for row in LABELS for key, value, words in (
        ("Team", "ml", "'Team' cannot be the key of a label"), ("team", "ML", "label team cannot be 'ML'"), ("1st", "", "'1st' cannot be"),
        ("cost.center", "", "'cost.center' cannot be"), ("x" * 64, "", "cannot be the key"), ("team", "x" * 64, "label team cannot be"),
        ("team", 1.5, "label team cannot be '1.5'"), ("team", None, "team has no value"), ("team", ["ml"], "team has a list as its value"),
    )),
    *((*row, {f"k{number}": "" for number in range(64)}, "would have 65 labels") for row in LABELS),
    ("gke_node_pool", "config.labels", {"team": "a b"}, "nodes cannot have the label or taint team=a b"),
    ("gke_node_pool", "config.labels", {"": "a"}, "nodes cannot have the label or taint =a"),
    ("gke_node_pool", "config.labels", {"a/b/c": "a"}, "nodes cannot have the label or taint a/b/c=a"),
    ("gke_node_pool", "config.labels", {"team": "x" * 64}, "nodes cannot have the label or taint team="),
    ("gke_node_pool", "config.tags", ["A"], "'A' cannot be a network tag"),
    ("gke_node_pool", "config.metadata", {"a b": "1"}, "metadata cannot have the key 'a b'"),
    ("gcp_instance", "metadata", {"a.b": "1"}, "metadata cannot have the key 'a.b'"),
    ("gcp_instance", "metadata", {"a": {"b": 1}}, "a has a mapping as its value"),
    ("gcp_instance", "tags", ["9"], "'9' cannot be a network tag"),
]  # fmt: skip


@pytest.mark.parametrize(("module", "option", "wanted", "words"), IMPOSSIBLE)
def test_what_google_does_not_take_is_refused_in_the_plan(
    run: Run, google: Simulator, ground: dict[str, str], module: str, option: str, wanted: Any, words: str
) -> None:
    """For what is not there yet, where a plan would otherwise look right until the request is sent."""
    creation: Body = {
        "gke_cluster": {"network": "ground", "subnetwork": "ground"},
        "gke_node_pool": {"node_count": 0},
        "gcp_instance": {"machine_type": "e2-small", "disk": {"size_gb": 10, "source_image": IMAGE}},
    }
    asked = {**options(module, option, wanted), **creation.get(module, {}), "name": "impossible"}
    google.clear()
    for check in (True, False):
        refused = run(module, **asked, check=check)
        assert (refused.get("failed"), google.attempts()) == (True, []), refused
        assert words in refused["msg"]


@pytest.mark.parametrize(("module", "option"), [*LABELS, ("gke_node_pool", "config.labels"), ("gcp_instance", "metadata")])
def test_numbers_and_booleans_are_text(make: Callable[[str], None], changes: Run, reader: Reader, module: str, option: str) -> None:
    """As YAML reads them from an inventory."""
    make(module)
    path, read = next(row[2::2] for row in FREE if row[:2] == (module, option))
    international = {"größe": "l"} if (module, option) in LABELS else {}
    changes(module, **options(module, option, {"cost-center": 1234, "prod": True, "old": False, **international}))
    found = read(look(reader.get(URLS[module]), path))
    assert {key: found[key] for key in ("cost-center", "prod", "old")} == {"cost-center": "1234", "prod": "true", "old": "false"}
    changes(module, **options(module, option, {}))


def free_dicts(spec: Body, path: str = "") -> Iterator[str]:
    for name, option in spec.items():
        if option["type"] == "dict" and "options" not in option:
            yield f"{path}{name}"
        yield from free_dicts(option.get("options", {}), f"{path}{name}.")


def test_no_option_is_missing_here() -> None:
    found = set()
    for one in pkgutil.iter_modules(modules.__path__):
        if one.name.startswith(("gcp_", "gcs_", "gke_")) and not one.name.endswith("_info"):
            spec = importlib.import_module(f"{modules.__name__}.{one.name}").ARGUMENT_SPEC
            found |= {f"{one.name} {path}" for path in free_dicts(spec)}
    tested = {f"{module} {option}" for module, option, *_rest in FREE}
    assert found <= tested | OTHERS.keys()


def test_the_maps_are_those_of_googles_documents() -> None:
    """All fields of the kinds that have additionalProperties, but for what only Google writes and what no option can say."""
    roots = {
        "container.v1": ("Cluster", "NodePool"),
        "compute.v1": ("Instance", "Disk", "Address", "Network", "Subnetwork", "Firewall", "Router"),
        "storage.v1": ("Bucket",), "artifactregistry.v1": ("Repository",),
    }  # fmt: skip
    found = {name for document, kinds in roots.items() for kind in kinds for name in maps(document, kind, set())}
    assert found - {"asyncSecondaryDisks", "acceleratorTopologyIds", "resourceManagerTags"} == MAPS


def maps(document: str, kind: str, seen: set[str]) -> Iterator[str]:
    if kind in seen:
        return
    seen.add(kind)
    for name, field in fields(discovery.load(document)["schemas"][kind]):
        inner = field
        while inner.get("type") == "array":
            inner = inner["items"]
        if "additionalProperties" in inner:
            yield name
            inner = inner["additionalProperties"]
        if "$ref" in inner:
            yield from maps(document, inner["$ref"], seen)


def fields(schema: Body) -> Iterator[tuple[str, Body]]:
    """Of the schema, and of the objects that it spells out in place."""
    for name, field in schema.get("properties", {}).items():
        yield name, field
        inner = field
        while inner.get("type") == "array":
            inner = inner["items"]
        yield from fields(inner)
