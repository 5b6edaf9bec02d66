# SPDX-License-Identifier: GPL-3.0-or-later
"""A job file of PERSIA's documentation as options: a PersiaJob or the four StatefulSets, and perhaps a NatsCluster.

The names of 2021 (globalConfigPath) and today's (persiaEnv) are both read.
"""

from __future__ import annotations

import posixpath
import re
import typing as t
from collections.abc import Mapping, Sequence

from ..._manifests.job_file import Field, Kind, Translation
from ..._manifests.job_file import translate as read
from .job_fields import ENV, FLAGS, JOB, NATS, STATEFUL_SET, role_of, section_fields
from .spec import NATS_ADDRESS, WORDS, Role

_NATS_URL = re.compile(r"nats://([a-z0-9]([a-z0-9-]*[a-z0-9])?):4222/?")
# Tags that name another image tomorrow.
_MOVING = re.compile(r"(^|/)[^:@/]+(:(latest|dev))?$")
_SCRIPT = (
    "ignored; launch.py of this collection does what {} does, with the launcher of today: ranks and addresses are worked out, and a "
    "script of 2021 may have ---port, RUST_BACKTRACE-full and programs that were renamed. persia_launch_script runs a script of yours"
)
_ENDS = "a Job, which ends; persia_completion: false makes a StatefulSet, which starts it again"


def translate(documents: Sequence[t.Any], source: str) -> Translation:
    """Return the options for a job file, those of nats_cluster as ``nats``; InvalidInput has all fields that cannot be taken over."""
    kinds = {
        "PersiaJob": Kind("persia.com/v1", _job),
        "StatefulSet": Kind("apps/v1", _stateful_set, many=True),
        "NatsCluster": Kind("nats.io/v1alpha2", _nats_cluster),
    }
    return read(documents, source, kinds, ("PersiaJob", "StatefulSet"), _end)


def _job(found: Translation, name: str, spec: Mapping[str, t.Any]) -> None:
    found.options["name"] = name
    sections: dict[str, Role] = {word: role for role, words in WORDS.items() for word in (words.section, words.former_section)}
    rest = {key: item for key, item in spec.items() if key not in sections}
    given = found.take(rest, JOB, "spec")
    sizes: dict[str, t.Any] = {}
    env = _env(found, given.pop("env", []), "spec.env", sizes, "")
    for option, value in given.items():
        found.put(found.options, Field(option), value, "spec")
    found.options["env"] = env
    for section, role in sections.items():
        if spec.get(section) is not None:
            _section(found, role, section, spec[section])
    if "replica_size" in sizes:
        found.refused.append("spec.env REPLICA_SIZE: each group has a size of its own; write replicas of the groups.")
    if "nproc_per_node" in sizes and "nn_worker" in found.options:
        found.put(found.options["nn_worker"], Field("nproc_per_node"), sizes["nproc_per_node"], "spec.env NPROC_PER_NODE")
    elif "nproc_per_node" in sizes:
        found.refused.append("spec.env NPROC_PER_NODE: it is of trainers, and the file has none.")


def _section(found: Translation, role: Role, section: str, given: t.Any) -> None:
    where = f"spec.{section}"
    if section != WORDS[role].section:
        found.differences.append(f"{where}: renamed to {WORDS[role].section}, as PERSIA calls it since 24 November 2021")
    group = found.take(given, section_fields(role), where)
    found.mounts(group, where)
    if "replicas" not in group:
        found.refused.append(f"{where}.replicas: missing.")
    _group(found, role, group, where)


def _stateful_set(found: Translation, name: str, spec: Mapping[str, t.Any]) -> None:
    where = f"StatefulSet {name}"
    group = found.take(spec, STATEFUL_SET, f"{where} spec")
    pod = found.pod(group.pop("template", {}), f"{where} template")
    labels = pod.pop("labels", None) or {}
    words = [word for key in ("command", "args") for word in found.words(pod.pop(key, None), f"{where} {key}")]
    role = role_of([name, *map(str, labels.values()), *words[-1:], *words[1:2]])
    if role is None:
        known = ", ".join(words.group for words in reversed(WORDS.values()))
        found.refused.append(f"{where}: no group of PERSIA by its name, the labels of its pods or its last argument. Groups: {known}.")
        return
    if role in ("nn_worker", "dataloader"):
        found.differences.append(f"{where} kind: {_ENDS}")
    if words[:-1] and words[-2].endswith(".sh") and role_of(words[-1:]):
        found.differences.append(f"{where} args: {_SCRIPT.format(' '.join(words))}")
    elif words:
        _launcher(found, role, words, pod, f"{where} args")
    if labels:
        pod["overrides"] = {"spec": {"template": {"metadata": {"labels": labels}}}}
    _volumes(found, pod.pop("volumes", None), f"{where} volumes")
    _group(found, role, {"replicas": 1, **group, **pod}, where)


def _launcher(found: Translation, role: Role, words: list[str], pod: dict[str, t.Any], where: str) -> None:
    """Read a command of persia-launcher: its program and number of processes are options, and what has none is refused."""
    words = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    if posixpath.basename(words[0]) != "persia-launcher" or role_of(words[1:2]) != role:
        found.refused.append(
            f"{where}: {' '.join(words)} is no launcher of {WORDS[role].group}; persia_launch_script runs a script of yours."
        )
        return
    rest = words[2:]
    while rest:
        word = rest.pop(0)
        field = FLAGS.get(word) if word.startswith("-") else Field(f"{role}.entry") if role in ("nn_worker", "dataloader") else None
        value = word if not word.startswith("-") else rest.pop(0) if rest else ""
        if field is None or not value:
            found.refused.append(f"{where} {word}: no option has it.")
        elif field.name == "nproc_per_node":
            found.put(pod, field, int(value) if value.isdecimal() else value, f"{where} {word}")
        else:
            found.put(found.options, field, value, f"{where} {word}")


def _volumes(found: Translation, given: t.Any, where: str) -> None:
    """Volumes are those of all groups."""
    volumes = found.options.setdefault("volumes", [])
    for volume in found.sequence(given, where):
        same = [known for known in volumes if known.get("name") == volume.get("name")]
        if same and same != [volume]:
            found.refused.append(f"{where}: {volume.get('name')} is another volume elsewhere in the file; rename one of both.")
        volumes += [] if same else [volume]


def _group(found: Translation, role: Role, group: dict[str, t.Any], where: str) -> None:
    """Add a group with what its variables say of it and of the job."""
    if role in found.options:
        found.refused.append(f"{where}: the file has {WORDS[role].group} a second time; keep one of both.")
    if "env" in group:
        group["env"] = _env(found, group["env"], f"{where}.env", group, role)
    size = group.pop("replica_size", group.get("replicas"))
    if str(size) != str(group.get("replicas")):
        found.refused.append(f"{where} REPLICA_SIZE: {size}, but replicas is {group.get('replicas')}; keep one of both.")
    if role != "nn_worker" and group.pop("nproc_per_node", None):
        found.refused.append(f"{where} NPROC_PER_NODE: only trainers have several processes in a pod.")
    found.unfilled(group.get("image"), f"{where}.image")
    if not group.get("image"):
        group.pop("image", None)
        found.missing(f"{where}.image", "persia_image is used; PERSIA's operator takes persiaml/...-runtime:latest")
    elif _MOVING.search(str(group["image"])):
        found.differences.append(f"{where}.image: {group['image']} may be another image tomorrow; a digest would not")
    found.options[role] = group


def _end(found: Translation) -> None:
    """Note what the file leaves to the variables, and put the programs to their groups."""
    options = found.options
    if "name" not in options:
        found.missing("name of the training", "persia_job_name is used; pod 0 of group trainer is <persia_job_name>-trainer-0")
    for option, variable in (("global_config_path", "PERSIA_GLOBAL_CONFIG"), ("embedding_config_path", "PERSIA_EMBEDDING_CONFIG")):
        if option not in options:
            found.missing(variable, f"persia_{option.removesuffix('_path')} is used")
    if "image_pull_policy" not in options and "name" in options:
        found.missing("spec.imagePullPolicy", "IfNotPresent, or persia_options.image_pull_policy, is used; PERSIA's operator takes Always")
    url, made = options.get("nats_url", ""), options.get("nats", {}).get("name")
    if made and re.fullmatch(rf"nats://{re.escape(made)}\.[a-z0-9-]+(\.svc(\.[a-z0-9.-]+)?)?:4222/?", url):
        del options["nats_url"]
        found.differences.append(f"address of NATS: {url} is nats://{made}:4222 here, in the namespace of the role")
    elif url:
        found.differences.append(f"address of NATS: the servers at {_bare(url)} are used, and none are made (persia_nats_url)")
    for role in WORDS:
        entry = options.pop(f"{role}.entry", None)
        if role not in options:
            found.missing(WORDS[role].group, f"it is made as persia_{role}_replicas and the like say")
        group = options.setdefault(role, {})
        if entry:
            group["entry"] = entry
        elif role in ("nn_worker", "dataloader"):
            found.missing(f"program of {WORDS[role].group}", f"persia_{role}_entry is used")


def _env(found: Translation, env: t.Any, where: str, group: dict[str, t.Any], role: Role | t.Literal[""]) -> list[dict[str, t.Any]]:
    """Return the variables that are no options. Those of a group's size go to GROUP, others to the job; no ROLE is the job's."""
    options, kept = found.variables(env, ENV, where)
    for option, value in options.items():
        if option == "nats_url":
            _nats_url(found, str(value), where)
        elif option in ("nproc_per_node", "replica_size"):
            number = int(value) if str(value).isdecimal() else value
            found.put(group, Field(option), number, where)
        else:
            if role and not option.endswith(".entry"):
                found.differences.append(f"{where}: {option} of this group is that of all groups, as an option of the job")
            found.put(found.options, Field(option), value, where)
    return kept


def _bare(url: str) -> str:
    """Return an address without its login, which is not to be printed."""
    return re.sub(r"^(\w+://)?.*@", r"\1", url, flags=re.DOTALL)


def _nats_url(found: Translation, url: str, where: str) -> None:
    matched = _NATS_URL.fullmatch(url)
    if matched:
        _nats_name(found, matched[1], f"{where} address of NATS")
    elif NATS_ADDRESS.fullmatch(url):
        found.put(found.options, Field("nats_url"), url, where)
    else:
        found.refused.append(
            f"{where}: address of NATS {_bare(url) or 'no value'}; give nats://HOST:PORT, or nats://NAME:4222, whose servers are made."
        )


def _nats_cluster(found: Translation, name: str, spec: Mapping[str, t.Any]) -> None:
    found.options.setdefault("nats", {}).update(found.take(spec, NATS, "NatsCluster spec"))
    _nats_name(found, name, "NatsCluster metadata.name")


def _nats_name(found: Translation, name: str, where: str) -> None:
    before = found.options.setdefault("nats", {}).setdefault("name", name)
    if before != name:
        found.refused.append(f"{where}: {name}, but NATS is called {before} elsewhere in the file.")
