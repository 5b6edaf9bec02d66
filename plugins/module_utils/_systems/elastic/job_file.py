# SPDX-License-Identifier: GPL-3.0-or-later
"""A job file as options: an ElasticJob of torchelastic's operator, its pods and Services of before, or a PyTorchJob of training-operator.

The fields are those of kubernetes/api/v1alpha1 and kubernetes/config/samples of pytorch/elastic at bc88e69, of kubernetes/imagenet.yaml
at f8d2b6b (January 2020), and of pkg/apis/kubeflow.org/v1 of kubeflow/training-operator 1.9.
"""

from __future__ import annotations

import posixpath
import re
import shlex
import typing as t
from collections.abc import Mapping, Sequence

from ..._manifests.job_file import UNFILLED, Field, Kind, Translation
from ..._manifests.job_file import translate as read

_RESTARTS = "ignored; torchrun starts failed processes again (elastic_options.max_restarts), a Job pods (elastic_options.backoff_limit)"
_SIZES = {"MIN_SIZE": "min_replicas", "MAX_SIZE": "max_replicas", "SIZE": "replicas"}

_MEETING = Field(why="ignored; the sizes of the job and the name of the job say it")
_RUN: Mapping[str, Field] = {
    "backoffLimit": Field("backoff_limit"),
    "activeDeadlineSeconds": Field("active_deadline_seconds"),
    "ttlSecondsAfterFinished": Field("ttl_seconds_after_finished"),
    "suspend": Field(why="ignored; a queue (elastic_queue_name) says when the job begins"),
    "cleanPodPolicy": Field(why="ignored; pods of an ended job stay until it is removed, for their logs"),
}
_REPLICA: Mapping[str, Field] = {
    "replicas": Field("replicas"), "restartPolicy": Field(why=_RESTARTS), "template": Field("template"),
}  # fmt: skip
_SIZE: Mapping[str, Field] = {"minReplicas": Field("min_replicas"), "maxReplicas": Field("max_replicas")}
_JOB: Mapping[str, Field] = {
    **_SIZE,
    **_RUN,
    "rdzvEndpoint": Field("rdzv_endpoint"),
    "replicaSpecs": Field(inside={"Worker": Field(inside=_REPLICA)}),
    "RunPolicy": Field(inside=_RUN),
}
_ELASTIC: Mapping[str, Field] = {
    **_SIZE,
    "maxRestarts": Field("max_restarts"),
    "nProcPerNode": Field("nproc_per_node"),
    "rdzvConf": Field("rdzv_conf"),
    "metrics": Field(why="ignored; elastic_replicas is the number of pods, within the sizes"),
    **dict.fromkeys(("rdzvBackend", "rdzvHost", "rdzvPort", "rdzvId"), Field(why="ignored; pod 0 hosts the rendezvous")),
}
_PYTORCH: Mapping[str, Field] = {
    **_RUN,
    "runPolicy": Field(inside=_RUN),
    "elasticPolicy": Field(inside=_ELASTIC),
    "nprocPerNode": Field("nproc_per_node"),
    "pytorchReplicaSpecs": Field("pods"),
}

_ENV: Mapping[str, Field] = {
    "RDZV_ENDPOINT": Field("rdzv_endpoint"),
    "JOB_ID": Field("name"),
    **{variable: Field(option, f"is {option}") for variable, option in _SIZES.items()},
}

_FLAGS: Mapping[str, Field] = {
    **{
        name: Field(name, f"a flag of the launcher; option {name}")
        for name in ("nproc_per_node", "max_restarts", "monitor_interval", "rdzv_conf")
    },
    "start_method": Field(why="ignored; torchrun starts processes of their own"),
    "use_env": Field(why="ignored; torchrun always passes ranks by variables"),
    "standalone": Field(why="ignored; the pods train together, where each of them trained alone"),
    **dict.fromkeys(("rdzv_backend", "rdzv_endpoint"), Field(why="ignored; elastic_rdzv_backend and elastic_rdzv_endpoint say it")),
    **dict.fromkeys(("nnodes", "rdzv_id", "node_rank", "master_addr", "master_port"), _MEETING),
}
# Its images have the torch of 2020, and torchrun needs 1.13.
_OLD_IMAGE = re.compile(r"(^|/)torchelastic/examples(:|@|$)")
_ETCD_IMAGE = re.compile(r"(.*/)?etcd([:@].*)?")
_SIMPLE = re.compile(r"""(?:exec )?(?:[^\s;&|<>$`()*?~#{}\[\]'"\\]|'[^']*'|[ \t])+""")
"""A command of a shell that only starts a program."""
_PROGRAM = re.compile(r"(.*/)?(torchrun|python[0-9.]*|bash|sh)")
"""A first argument that is a program, for images whose ENTRYPOINT is none or starts one."""
_REFERENCE = re.compile(r"(?<!\$)\$\((\w+)\)")
_OF_A_PROCESS = re.compile(r"((LOCAL_|GROUP_|ROLE_)?RANK|(LOCAL_|ROLE_)?WORLD_SIZE|MASTER_(ADDR|PORT)|(TORCHELASTIC|PET)_\w+)")
"""Variables that torchrun gives its processes, or training-operator its pods."""
_SWITCHES = ("standalone", "use_env")
"""Flags of the launcher without a value."""
_LAUNCHERS = ("torch.distributed.run", "torch.distributed.launch", "torchelastic.distributed.launch")


def translate(documents: Sequence[t.Any], source: str) -> Translation:
    """Return the options for a job file; InvalidInput has all fields that cannot be taken over."""
    pods: list[tuple[str, dict[str, t.Any]]] = []
    etcds: list[str] = []

    def read_pod(found: Translation, name: str, spec: Mapping[str, t.Any]) -> None:
        containers = spec.get("containers")
        images = [one.get("image") for one in containers if isinstance(one, Mapping)] if isinstance(containers, list) else []
        if any(_ETCD_IMAGE.fullmatch(str(image)) for image in images):
            etcds.append(name)
            found.differences.append(f"Pod {name}: ignored; role etcd makes one (elastic_rdzv_backend)")
        else:
            pods.append((name, _pod(found, {"spec": spec}, f"Pod {name}", {})))

    kinds = {
        "ElasticJob": Kind("elastic.pytorch.org/v1alpha1", _elastic_job),
        "PyTorchJob": Kind("kubeflow.org/v1", _pytorch_job),
        "Pod": Kind("v1", read_pod, many=True),
        "Service": Kind("v1", _service, many=True),
    }
    return read(documents, source, kinds, ("ElasticJob", "PyTorchJob", "Pod"), lambda found: _end(found, pods, etcds))


def _service(found: Translation, name: str, _spec: Mapping[str, t.Any]) -> None:
    found.differences.append(f"Service {name}: ignored; one headless Service has the names of all pods")


def _elastic_job(found: Translation, name: str, spec: Mapping[str, t.Any]) -> None:
    job = found.take(spec, _JOB, "spec")
    found.options |= {"name": name, **_pod(found, job.pop("template", {}), "spec.replicaSpecs.Worker.template", job)}


def _pytorch_job(found: Translation, name: str, spec: Mapping[str, t.Any]) -> None:
    """A Master is one more worker: torchrun elects rank 0."""
    job, where, replicas, pods = found.take(spec, _PYTORCH, "spec"), "spec.pytorchReplicaSpecs", 0, []
    if "rdzv_conf" in job:
        job["rdzv_conf"] = {str(one["key"]): str(one["value"]) for one in job["rdzv_conf"]}
    for role, given in found.take(job.pop("pods", {}), {"Master": Field("Master"), "Worker": Field("Worker")}, where).items():
        group = found.take(given, _REPLICA, f"{where}.{role}")
        count = group.get("replicas", 1)
        if not isinstance(count, int):
            found.refused.append(f"{where}.{role}.replicas: {count!r} is not a number; write it.")
        replicas += count if isinstance(count, int) else 0
        pods.append(_pod(found, group.get("template", {}), f"{where}.{role}.template", {}, {}))
    if not pods or pods[0] != pods[-1]:
        found.refused.append(f"{where}: {'Master is not as Worker; all pods of a job are equal' if pods else 'no pods'}.")
    sizes = dict.fromkeys(("replicas", "min_replicas", "max_replicas"), replicas)
    for option, value in (pods[0] if pods else {}).items():
        found.put(job, Field(option), value, f"{where} args")
    found.options |= {"name": name, "rdzv_backend": "c10d", **sizes, **job}


def _pod(
    found: Translation, template: Mapping[str, t.Any], where: str, job: dict[str, t.Any], known: Mapping[str, Field] = _ENV
) -> dict[str, t.Any]:
    """Return the options of a worker's pod, added to those of its JOB; KNOWN variables are options."""
    pod = {**job, **found.pod(template, where)}
    if labels := pod.pop("labels", None):
        pod["overrides"] = {"spec": {"template": {"metadata": {"labels": labels}}}}
    options, kept = found.variables(pod.pop("env", None), known, f"{where} env")
    for option, value in options.items():
        number = option in _SIZES.values() and str(value).isdecimal()
        found.put(pod, Field(option), int(value) if number else value, f"{where} env")
    command, args = (found.words(pod.pop(key, None), f"{where} {key}") for key in ("command", "args"))
    _inside(found, [*command, *args], kept, known, where)
    words = _launched([*command, *args]) if command or _PROGRAM.fullmatch("".join(args[:1])) else args
    if words is None:
        found.refused.append(f"{where} command: torchrun runs the script; give the script and its arguments as args.")
    script, args = _arguments(found, pod, words or [], f"{where} args")
    arguments = {"args": args} if script or args else {}
    image = str(pod.get("image") or "")
    found.unfilled(image, f"{where} image")
    if _OLD_IMAGE.search(image):
        found.differences.append(
            f"{where} image: {image} ignored, with its pull policy; its torch is of 2020 and has no torchrun. elastic_image is used"
        )
        del pod["image"]
        pod.pop("image_pull_policy", None)
        if script.startswith("/"):
            found.differences.append(f"{where} args: {script} is a program of that image; elastic_script is used with its arguments")
            script = ""
    elif not image:
        pod.pop("image", None)
        found.missing(f"{where} image", "elastic_image is used")
    return {**pod, **({"env": kept} if kept else {}), **({"script": script} if script else {}), **arguments}


def _inside(found: Translation, words: Sequence[str], env: Sequence[Mapping[str, t.Any]], known: Mapping[str, Field], where: str) -> None:
    """Refuse variables that the pod will not have and WORDS or ENV use; tell what the launcher of before gave to the script."""
    given = {str(variable.get("name")) for variable in env}
    used = dict.fromkeys(_REFERENCE.findall(" ".join([*words, *(str(variable.get("value")) for variable in env)])))
    for name in used:
        if name not in given and (name in known or _OF_A_PROCESS.fullmatch(name)):
            found.refused.append(f"{where}: $({name}) has no value in the pod; torchrun sets ranks and addresses, which the script reads.")
    text = " ".join(words)
    if re.search(r"-m torch\.distributed\.launch\b", text) and not re.search(r"--use[_-]env\b", text):
        found.differences.append(f"{where} command: without --use_env the script got --local-rank=N; here it reads variable LOCAL_RANK")


def _launched(words: list[str]) -> list[str] | None:
    """Return the words after torchrun or Python; none if a command is of another program."""
    program = posixpath.basename(words[0])
    if program in ("bash", "sh") and words[1:2] in (["-c"], ["-lc"]) and len(words) == 3:
        text = words[2].replace("\\\n", " ").strip()
        return _launched(shlex.split(text.removeprefix("exec "))) if _SIMPLE.fullmatch(text) else None
    if program == "torchrun":
        return words[1:]
    if not re.fullmatch(r"python[0-9.]*", program):
        return None
    rest = words[2:] if words[1:2] == ["-u"] else words[1:]
    return rest[2:] if rest[:1] == ["-m"] and {*rest[1:2]} & {*_LAUNCHERS} else rest


def _arguments(found: Translation, pod: dict[str, t.Any], words: list[str], where: str) -> tuple[str, list[str]]:
    """Return the script and its arguments; the flags before it are the launcher's, and go to the options of POD."""
    rest = list(words)
    while rest and rest[0].startswith("-"):
        flag, equals, value = rest.pop(0).partition("=")
        name = flag.lstrip("-").replace("-", "_")
        field = _FLAGS.get(name)
        if field is None:
            found.refused.append(f"{where} {flag}: no flag of torchelastic's launcher that has an option. Name the file of a program.")
        elif not equals and rest and name not in _SWITCHES:
            value = rest.pop(0)
        if name == "nnodes" and (sizes := re.fullmatch(r"(\d+):(\d+)", value)):
            for option, size in zip(("min_replicas", "max_replicas"), sizes.groups(), strict=True):
                found.put(pod, Field(option), int(size), f"{where} {flag}")
        elif field is not None:
            typed: t.Any = (
                dict(one.split("=", 1) for one in value.split(","))
                if name == "rdzv_conf"
                else value
                if name == "nproc_per_node" or not value.isdecimal()
                else int(value)
            )
            found.put(pod, field, typed, f"{where} {flag}")
    if not rest:
        found.missing(f"{where} script", "elastic_script is used")
    else:
        found.unfilled(rest[0], where)
    return (rest[0], rest[1:]) if rest else ("", [])


def _end(found: Translation, pods: Sequence[tuple[str, dict[str, t.Any]]], etcds: Sequence[str]) -> None:
    """Make one job of equal pods, and settle where the rendezvous is. ETCDS: the pods of etcd in the file."""
    if "replicas" not in found.options and not pods:
        found.missing("spec.replicaSpecs.Worker.replicas", "elastic_replicas is used")
    count = found.options.get("replicas", pods[0][1].get("replicas", len(pods)) if pods else None)
    taken = {**found.options, **(pods[0][1] if pods else {})}
    for name, option in (("minReplicas", "min_replicas"), ("maxReplicas", "max_replicas")):
        if option not in taken:
            found.missing(name, f"it is {count}, the number of pods" if count else f"elastic_{option} is used")
            found.options |= {option: count} if count else {}
    if found.options.get("rdzv_backend") == "c10d":
        return
    if pods:
        found.options |= pods[0][1]
        others = [name for name, pod in pods if pod != pods[0][1]]
        if others:
            found.refused.append(f"Pod {', '.join(others)}: not as Pod {pods[0][0]}; all pods of a job are equal.")
        if "name" not in found.options:
            found.missing("JOB_ID", "elastic_job_name is used")
        size = found.options.setdefault("replicas", len(pods))
        if str(size) != str(len(pods)):
            found.differences.append(f"SIZE: {size} pods are made; the file has {len(pods)}, and SIZE says how many")
    elif "name" not in found.options:
        found.refused.append("Pod: only that of etcd; give the file of the workers, imagenet.yaml in torchelastic's documents.")
    if etcds:
        found.options.pop("rdzv_endpoint", None)
    endpoint = str(found.options.get("rdzv_endpoint") or "")
    found.options["rdzv_backend"] = "etcd-v2"
    if not endpoint or UNFILLED.search(endpoint):
        found.options.pop("rdzv_endpoint", None)
        found.differences.append(f"rendezvous: {endpoint or 'no etcd of yours'} in the file; role etcd makes one (elastic_rdzv_backend)")
