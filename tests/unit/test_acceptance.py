# SPDX-License-Identifier: GPL-3.0-or-later
"""The acceptance suite: every claim has its tasks, and what it reads from logs is what they say."""

import json
from pathlib import Path
from typing import Any

import pytest
from acceptance.filter_plugins import elastic_log as log
from acceptance.filter_plugins import objects as listed
from acceptance.filter_plugins.persia_log import persia_endings, persia_event, persia_lost, persia_ranks
from acceptance.filter_plugins.reports import claim_problems, claims_to_check, failure_text
from support.docs.collection import tasks_in
from support.reading import load

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT / "extensions" / "molecule" / "shared"
SCENARIOS = sorted(path.parent for path in SHARED.parent.glob("*/molecule.yml"))
SYSTEMS = sorted((ROOT / "tests" / "acceptance").glob("*/claims.yml"))

Event = dict[str, Any]


def text(*events: Event) -> str:
    return "".join(f"[noise]\nmuster.ml/elastic {json.dumps(event)}\n" for event in events)


def event(kind: str, time: float, **fields: Any) -> Event:
    return {"event": kind, "time": time, **fields}


def result(**changes: Any) -> Event:
    history = [{"epoch": number, "samples": 1440} for number in range(2)]
    return event("result", 90, **{"history": history, "steps": 48, **changes})


DISTURBED = [
    event("start", 10, world_size=3),
    event("step", 11, step=1),
    event("step", 12, step=2),
    event("rendezvous", 26, formed=25.5),
    event("start", 26, world_size=2),
    event("epoch", 30, step=3, epoch=0),
    event("step", 31.5, step=4),
]


def test_there_are_systems() -> None:
    assert len(SYSTEMS) >= 3, "the checks below would hold for nothing"


@pytest.mark.parametrize("folder", [ROOT / "tests" / "acceptance", *SCENARIOS], ids=lambda path: path.name)
def test_no_variable_of_a_task_has_the_name_of_a_fact_or_a_result(folder: Path) -> None:
    """Ansible takes the fact, wherever it was set: an assertion would judge something else, and what depends on the order of systems."""
    facts: set[str] = set()
    variables: dict[str, str] = {}
    for path in [*folder.rglob("*.yml"), *SHARED.glob("*.yml")]:
        for task in tasks_in(page if isinstance(page := load(path), list) else []):
            facts |= {task["register"]} if "register" in task else set()
            facts |= task.get("ansible.builtin.set_fact", {}).keys()
            # Those of an include come before facts.
            if not task.keys() & {"ansible.builtin.include_tasks", "ansible.builtin.include_role"}:
                variables |= dict.fromkeys(task.get("vars", {}), str(path.relative_to(ROOT)))
    assert facts
    assert variables
    assert {name: path for name, path in variables.items() if name in facts} == {}


@pytest.mark.parametrize("path", SYSTEMS, ids=lambda path: path.parent.name)
def test_every_claim_has_its_tasks_and_every_variable_that_a_system_needs(path: Path) -> None:
    page = load(path)
    assert {"deploys", "system_vars", "claims"} <= page.keys()
    named = [claim["name"] for claim in page["claims"]]
    assert len(set(named)) == len(named)
    files = [path.parent / f"{claim.get('tasks', claim['name'])}.yml" for claim in page["claims"]]
    assert [file for file in files if not file.is_file()] == []


@pytest.mark.parametrize("path", SYSTEMS, ids=lambda path: path.parent.name)
def test_every_event_has_its_limit(path: Path) -> None:
    """Claims `ends` are about what the events before have left."""
    faults = [claim for claim in load(path)["claims"] if claim.get("fault") and claim.get("tasks") != "ends"]
    assert [claim["name"] for claim in faults if not isinstance(claim.get("limit"), int)] == []


PAGES = {
    "one": {"claims": [{"name": "plan"}, {"name": "killed", "fault": True}]},
    "two": {"claims": [{"name": "node", "local": True}, {"name": "example", "given": "acceptance_example"}]},
}


@pytest.mark.parametrize(
    ("names", "faults", "local", "says"),
    [
        ([], False, True, []),
        (["plan", "node"], False, True, []),
        (["plan"], True, True, ["No claim of two can be checked."]),
        (["plam", "node", "plan"], True, True, ["Claim plam does not exist; there is plan, killed, node, example."]),
        (["plan", "node", "example"], True, True, ["Claim example needs acceptance_example."]),
        (["plan", "killed", "node"], False, True, ["Claim killed breaks things, which only acceptance_faults=true allows."]),
        (["plan", "node"], True, False, ["Claim node needs the local cluster.", "No claim of two can be checked."]),
        ([], True, False, ["No claim of two can be checked."]),
    ],
)
def test_what_cannot_be_judged_is_an_error(names: list[str], faults: bool, local: bool, says: list[str]) -> None:
    assert claim_problems(PAGES, names, faults=faults, local=local, given=[]) == says


def test_claims_are_checked_in_their_order() -> None:
    claims = PAGES["one"]["claims"]
    assert claims_to_check(claims, ["killed", "plan"], faults=True, local=False, given=[]) == claims
    assert claims_to_check(claims, [], faults=False, local=False, given=[]) == claims[:1]


@pytest.mark.parametrize("path", SYSTEMS, ids=lambda path: path.parent.name)
def test_no_file_of_a_system_is_forgotten(path: Path) -> None:
    """Each is a claim's or is included by one."""
    claims = {Path(c.get("tasks", c["name"])).name for c in load(path)["claims"]}
    pages = [page for page in path.parent.glob("*.yml") if page != path]
    included = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert [page.name for page in pages if page.stem not in claims and f"include_tasks: {page.name}\n" not in included] == []


def test_events_are_found_among_other_lines() -> None:
    assert log.elastic_events(text(*DISTURBED)) == DISTURBED
    assert log.events_after(DISTURBED, "26", "step", "epoch") == DISTURBED[-2:]


@pytest.mark.parametrize(("until", "pods", "trains"), [(2, 3, False), (3, 3, True), (3, 2, False), (6, 2, False)])
def test_a_world_trains_when_it_has_made_two_steps(until: int, pods: int, trains: bool) -> None:
    assert log.trains_with(DISTURBED[:until], str(pods)) is trains


def test_nobody_trains_before_the_first_word() -> None:
    assert not log.trains_with([], 2)


def test_the_reaction_is_measured_to_the_first_progress_of_the_new_world() -> None:
    assert log.reaction(DISTURBED, "20.0") == {"seconds": 10.0, "seconds_to_rendezvous": 5.5, "step": 3, "world_size": 2}
    assert log.first_progress(DISTURBED) == 30


@pytest.mark.parametrize("until", [3, 4, 5])
def test_there_is_no_reaction_before_the_next_step(until: int) -> None:
    assert log.reaction(DISTURBED[:until], 20) is None


def test_the_longest_silence_is_that_after_the_event() -> None:
    assert log.longest_silence(DISTURBED, 10) == 18.0
    assert log.longest_silence(DISTURBED, 27) == 3.0, "a pause that begins with the event"


@pytest.mark.parametrize(
    ("events", "wrong"),
    [
        ([result()], []),
        ([], ["the training told no result"]),
        ([result(steps=47)], ["47 steps count, not 48"]),
        ([event("epoch", 1, epoch=0), event("epoch", 2, epoch=0), result()], ["epoch 0 was told twice"]),
        ([result(history=[{"epoch": 1, "samples": 1439}])], ["epoch 1 had 1439 samples", "the history is not that of 2 epochs: [1]"]),
    ],
)
def test_a_lost_epoch_is_named(events: list[Event], wrong: list[str]) -> None:
    assert log.lost_epochs(events, "2") == wrong


def test_the_last_result_counts() -> None:
    assert log.training_result(DISTURBED) is None
    assert log.training_result([result(), result(steps=1)]) == result(steps=1)


def test_times() -> None:
    asked = {"deletionTimestamp": "1970-01-01T00:01:00Z", "deletionGracePeriodSeconds": 30}
    assert log.deletion_asked(asked) == 30
    assert log.durations(["1.0", 2.5, 4], ["up_s", "down_s"]) == {"up_s": 1.5, "down_s": 1.5, "total_s": 3.0}


def test_a_failure_names_its_task_and_the_errors_of_the_playbook_that_it_ran() -> None:
    lines = ["TASK [x]", "[ERROR]: Task failed: replicas is -1"]
    said = failure_text({"msg": "non-zero return code", "stdout_lines": lines}, "Wait")
    assert said == "Wait: non-zero return code [ERROR]: Task failed: replicas is -1"
    assert failure_text({"rc": 3}, "Wait") == "Wait: {'rc': 3}"


def test_the_ranks_of_a_persia_training() -> None:
    logs = [
        "launch.py: starting: persia-launcher nn-worker /x/train.py --nproc-per-node 4 --nnodes 2 --node-rank 1\n",
        "noise\nlaunch.py: starting: persia-launcher data-loader /x/l.py --replica-index 2 --replica-size 3\n" * 2,
        "nothing",
    ]
    assert persia_ranks(logs) == ["data-loader 2 of 3", "nn-worker 1 of 2"]


def test_what_each_rank_of_a_persia_training_ended_with() -> None:
    line = "MUSTER rank={} world_size=2 device=cpu backend=gloo\nMUSTER rank={} world_size=2 loss=0.540000 auc=0.740000 weights=ab{}\n"
    found = persia_endings([line.format(1, 1, 2), line.format(0, 0, 1)])
    assert [(each["rank"], each["loss"], each["weights"]) for each in found] == [(0, 0.54, "ab1"), (1, 0.54, "ab2")]


BEFORE = {"Node a": {"uid": "1", "writes": []}, "Job.batch ml/fair": {"uid": "2", "writes": ["muster Apply  10:00"]}}


@pytest.mark.parametrize(
    ("after", "written", "differing"),
    [
        (BEFORE, [], []),
        ({**BEFORE, "PV p": {"uid": "3", "writes": []}}, [], ["left: PV p"]),
        ({**BEFORE, "Secret ml/s": {"uid": "3", "writes": ["muster"]}}, ["created Secret ml/s"], ["left: Secret ml/s"]),
        ({**BEFORE, "Node a": {"uid": "1", "writes": ["muster"]}}, ["updated Node a"], ["not as before: Node a"]),
        ({**BEFORE, "Node a": {"uid": "9", "writes": ["muster"]}}, ["created Node a"], ["not as before: Node a"]),
        ({"Node a": BEFORE["Node a"]}, ["deleted Job.batch ml/fair"], ["gone: Job.batch ml/fair"]),
    ],
)
def test_what_a_run_wrote_is_read_from_two_listings(after: dict[str, Any], written: list[str], differing: list[str]) -> None:
    assert listed.written_objects(BEFORE, after) == written
    assert listed.differing_objects(BEFORE, after) == differing


def test_a_pod_that_was_ending_already_was_not_deleted_by_the_run() -> None:
    ending = {"uid": "4", "writes": [], "deleting": True}
    assert listed.written_objects({**BEFORE, "Pod ml/server-0": ending}, BEFORE) == []
    assert listed.differing_objects({**BEFORE, "Pod ml/server-0": ending}, BEFORE) == ["gone: Pod ml/server-0"]


def test_the_note_of_what_stays_may_be_renewed() -> None:
    note = "ConfigMap kube-system/muster-settled-local-cluster-prove-1"
    first, renewed = ({note: {"uid": uid, "writes": ["muster"]}} for uid in "12")
    assert listed.differing_objects({**BEFORE, **first}, {**BEFORE, **renewed}) == []
    assert listed.differing_objects(BEFORE, {**BEFORE, **first}) == [f"left: {note}"]
    assert listed.differing_objects({**BEFORE, **first}, BEFORE) == [f"gone: {note}"]
    secrets = [{name.replace("ConfigMap", "Secret"): row for name, row in note.items()} for note in (first, renewed)]
    assert listed.differing_objects(*secrets) == [f"not as before: {note.replace('ConfigMap', 'Secret')}"]


def test_plan_and_run_are_compared_object_by_object() -> None:
    plan = [
        {"action": "created", "kind": "Job", "namespace": "ml", "name": "fair"},
        {"action": "deleted", "kind": "Node", "namespace": None, "name": "a"},
    ]
    assert listed.plan_differences(plan, ["deleted Node a", "created Job.batch ml/fair"]) == []
    assert listed.plan_differences(plan, ["updated Job.batch ml/fair", "deleted Node a"]) == [
        "only done: updated Job ml/fair",
        "only planned: created Job ml/fair",
    ]
    noted = ["deleted Node a", "created Job.batch ml/fair", "created ConfigMap ml/muster-settled-persia-ml-1"]
    assert listed.plan_differences(plan, noted) == []
    assert listed.plan_differences(plan, [*noted, "created Secret ml/muster-settled-x"]) == [
        "only done: created Secret ml/muster-settled-x"
    ]
    assert listed.differences(["CreateSubnet"] * 2, ["CreateSubnet"]) == ["only planned: CreateSubnet"]


def change(module: str, *actions: str) -> dict[str, Any]:
    return {"module": module, "item": None, "actions": list(actions)}


def sent(*names: str) -> list[dict[str, str]]:
    return [dict(zip(("service", "operation"), name.split(":"), strict=True)) for name in names]


ACCOUNT_PLAN = [
    change("amazon.aws.ec2_vpc_subnet"),
    change("amazon.aws.ec2_vpc_net"),
    change("muster.ml.iam_oidc_provider", "iam:create_open_id_connect_provider (create)"),
]


@pytest.mark.parametrize(
    ("names", "unlike"),
    [
        (["iam:CreateOpenIDConnectProvider", "ec2:CreateVpc", "ec2:ModifyVpcAttribute", "ec2:CreateSubnet"], []),
        (
            ["iam:CreateOpenIDConnectProvider", "ec2:CreateSubnet", "ec2:CreateSubnet", "iam:CreateRole"],
            ["only done: ec2:CreateSubnet", "only done: iam:CreateRole", "only planned: ec2:CreateVpc"],
        ),
    ],
)
def test_the_plan_for_an_account_is_compared_with_the_requests_that_it_got(names: list[str], unlike: list[str]) -> None:
    assert listed.cloud_differences(ACCOUNT_PLAN, sent(*names)) == unlike


def test_every_module_of_amazon_that_a_plan_may_list_is_known() -> None:
    """The policies of a role that is not there yet are planned by a task of their own."""
    tasks = [
        task
        for path in sorted((ROOT / "roles").glob("*/tasks/*.yml"))
        if "remove" not in path.stem and isinstance(page := load(path), list)
        for task in tasks_in(page)
    ]
    names = {key.rpartition(".")[2] for task in tasks for key in task if key.startswith("amazon.aws.")}
    desired = {name for name in names if not name.endswith("_info") and name != "iam_policy"}
    assert desired == listed.OF_AMAZON.keys()


def test_what_google_makes_by_itself_is_nobodys() -> None:
    agent = "roles/compute.serviceAgent serviceAccount:service-123@compute-system.iam.gserviceaccount.com"
    left = {"services": {"x": {}}, "deletedBuckets": {"b": {}}, "bindings": {agent: {}}, "networks": {"muster": {}}}
    assert listed.holdings_of_people(left) == {"networks": {"muster": {}}}


def test_a_plan_for_google_is_compared_by_the_ids_of_methods() -> None:
    plan = [
        {"actions": ["compute:networks.insert (create)", "container:projects.locations.clusters.create (create)"]},
        {"actions": ["kubernetes:secrets.apply (write the key)"]},
    ]
    assert listed.google_differences(plan, ["compute.networks.insert", "storage.buckets.insert"]) == [
        "only done: storage.buckets.insert",
        "only planned: container.projects.locations.clusters.create",
    ]


PERSIA = """\
MUSTER trained attempt=ab epoch=1 batches=0-2 time=10.5
MUSTER trained attempt=ab epoch=2 batches=0-2 time=12
MUSTER resume epoch=2 step=6 checkpoint=x
MUSTER attempt=cd step=6 time=30.25
MUSTER trained attempt=cd epoch=3 batches={} time=31
"""


@pytest.mark.parametrize(
    ("batches", "wrong"),
    [
        ("0-2", []),
        ("0,2", ["epoch 3: batch 1 was lost"]),
        ("0-1,1-2", ["epoch 3: batch 1 was trained 2 times"]),
        ("0-3", ["epoch 3: batch 3 was trained 1 times"]),
    ],
)
def test_the_steps_of_a_persia_training(batches: str, wrong: list[str]) -> None:
    assert persia_lost([PERSIA.format(batches)], "3", 3) == wrong


def test_an_epoch_of_a_persia_training_that_nobody_trained_is_lost() -> None:
    assert len(persia_lost([PERSIA.format("0-2")], 4, 3)) == 3
    assert len(persia_lost([], 1)) == 79


def test_what_an_event_did_to_a_persia_training() -> None:
    log_text = [PERSIA.format("0-2")]
    assert persia_event(log_text, "11.0") == {"seconds": 18.2, "attempts": 1, "epochs": 2}
    assert persia_event(log_text, 30.5) == {"seconds": 0.5, "attempts": 0, "epochs": 1}
    assert persia_event(log_text, 0)["attempts"] == 2
    assert persia_event([], 5) == {"seconds": 0, "attempts": 0, "epochs": 0}
