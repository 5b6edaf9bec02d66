# SPDX-License-Identifier: GPL-3.0-or-later
"""Job files in the shapes of torchelastic's documentation: what is taken over, what is told, what is refused."""

import re
import typing as t

import pytest
import yaml

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic import native
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic.job_file import translate
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic.spec import from_params

# The fields of kubernetes/config/samples/imagenet.yaml of pytorch/elastic at bc88e69, and those of its RunPolicy.
JOB = """
apiVersion: elastic.pytorch.org/v1alpha1
kind: ElasticJob
metadata: {name: imagenet, namespace: elastic-job}
spec:
  rdzvEndpoint: "<your_etcd_endpoint>:<your_etcd_port>"
  minReplicas: 1
  maxReplicas: 3
  cleanPodPolicy: Running
  backoffLimit: 4
  activeDeadlineSeconds: 3600
  ttlSecondsAfterFinished: 60
  replicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: ExitCode
      template:
        apiVersion: v1
        kind: Pod
        spec:
          nodeSelector: {pool: gpu}
          containers:
            - name: elasticjob-worker
              image: torchelastic/examples:0.2.0
              imagePullPolicy: Always
              args: ["--nproc_per_node=1", /workspace/examples/imagenet/main.py, "--arch=resnet18", "--workers=0", /workspace/data]
              env: [{name: NCCL_DEBUG, value: INFO}]
              resources: {limits: {nvidia.com/gpu: 1}}
"""
# The fields of one worker of kubernetes/imagenet.yaml of pytorch/elastic at f8d2b6b, which document 004 applies.
WORKER = """
apiVersion: v1
kind: Pod
metadata: {name: imagenet-worker-N, labels: {job-name: imagenet, worker: "N"}}
spec:
  restartPolicy: OnFailure
  containers:
    - name: elastic-trainer-worker
      image: torchelastic/examples:0.1.0rc1
      args: ["s3://data/petctl/me/imagenet-job/main.py", --input_path, /data/tiny-imagenet-200/train, --epochs, "10"]
      env:
        - {name: RDZV_ENDPOINT, value: "etcd:2379"}
        - {name: JOB_ID, value: imagenet}
        - {name: MIN_SIZE, value: "1"}
        - {name: MAX_SIZE, value: "3"}
        - {name: SIZE, value: "2"}
      resources: {limits: {nvidia.com/gpu: 1}}
      volumeMounts: [{name: persistent-storage, mountPath: /data}, {name: dshm, mountPath: /dev/shm}]
  volumes:
    - {name: persistent-storage, persistentVolumeClaim: {claimName: efs-claim}}
    - {name: dshm, emptyDir: {medium: Memory}}
---
apiVersion: v1
kind: Service
metadata: {name: imagenet-worker-N}
spec: {selector: {job-name: imagenet, worker: "N"}, clusterIP: None}
"""
PODS = WORKER.replace("N}", "1}").replace("-N", "-1").replace('"N"', '"1"') + "---" + WORKER.replace("-N", "-2").replace('"N"', '"2"')


def read(text: str) -> list[t.Any]:
    return list(yaml.safe_load_all(text))


def test_an_elastic_job_is_a_training() -> None:
    options = translate(read(JOB), "imagenet.yaml").options
    assert options == {
        "name": "imagenet",
        "min_replicas": 1,
        "max_replicas": 3,
        "backoff_limit": 4,
        "active_deadline_seconds": 3600,
        "ttl_seconds_after_finished": 60,
        "replicas": 2,
        "node_selector": {"pool": "gpu"},
        "resources": {"limits": {"nvidia.com/gpu": 1}},
        "nproc_per_node": "1",
        "env": [{"name": "NCCL_DEBUG", "value": "INFO"}],
        "args": ["--arch=resnet18", "--workers=0", "/workspace/data"],
        "rdzv_backend": "etcd-v2",
    }
    job = from_params({**options, "namespace": "ml", "image": "example/torch:2", "script": "/main.py", "rdzv_endpoint": "etcd:2379"})
    assert job.pod.args[0] == "--arch=resnet18"
    assert native.manifests(job)


def test_each_difference_of_an_elastic_job_is_told() -> None:
    told = "\n".join(translate(read(JOB), "imagenet.yaml").differences)
    for words in (
        "metadata.namespace: ignored",
        "cleanPodPolicy: ignored",
        "restartPolicy: ignored; torchrun starts failed processes again",
        "args --nproc_per_node: a flag of the launcher",
        "image: torchelastic/examples:0.2.0 ignored, with its pull policy",
        "/workspace/examples/imagenet/main.py is a program of that image; elastic_script is used",
        "<your_etcd_endpoint>:<your_etcd_port> in the file; role etcd makes one",
    ):
        assert words in told


# Shows row 004.14.
def test_the_pods_of_the_document_are_a_training() -> None:
    found = translate(read(PODS), "imagenet.yaml")
    options = found.options
    assert (options["name"], options["replicas"], options["min_replicas"], options["max_replicas"]) == ("imagenet", 2, 1, 3)
    assert (options["rdzv_backend"], options["rdzv_endpoint"]) == ("etcd-v2", "etcd:2379")
    assert options["script"] == "s3://data/petctl/me/imagenet-job/main.py"
    assert options["args"] == ["--input_path", "/data/tiny-imagenet-200/train", "--epochs", "10"]
    assert {"name": "dshm", "mountPath": "/dev/shm"} in options["volume_mounts"]
    assert native.manifests(from_params({**options, "namespace": "ml", "image": "example/torch:2"}))
    told = "\n".join(found.differences)
    assert "Service imagenet-worker-2: ignored" in told
    assert "Pod imagenet-worker-1 metadata.labels: ignored" in told


# The fields of kubernetes/etcd.yaml of pytorch/elastic at f8d2b6b, and of the one by Bitnami that was there in 2021.
@pytest.mark.parametrize(
    "more", ["image: quay.io/coreos/etcd:latest, command: [/usr/local/bin/etcd, --enable-v2]", "image: bitnami/etcd:latest"]
)
def test_the_etcd_of_the_document_is_that_of_the_role(more: str) -> None:
    etcd = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: etcd}}\nspec: {{containers: [{{name: etcd, {more}}}]}}\n---\n"
    found = translate(read(etcd + PODS), "all.yaml")
    assert found.options == {key: value for key, value in translate(read(PODS), "imagenet.yaml").options.items() if key != "rdzv_endpoint"}
    assert "Pod etcd: ignored; role etcd makes one (elastic_rdzv_backend)" in found.differences
    with pytest.raises(InvalidInput, match="Pod: only that of etcd; give the file of the workers"):
        translate(read(etcd.removesuffix("---\n")), "etcd.yaml")


# The fields of examples of kubeflow/training-operator 1.9 and of awslabs/awsome-distributed-training.
PYTORCH = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: fsdp}
spec:
  nprocPerNode: "2"
  elasticPolicy: {rdzvBackend: c10d, rdzvPort: 29400, minReplicas: 1, maxReplicas: 4, maxRestarts: 3, metrics: []}
  runPolicy: {cleanPodPolicy: None, backoffLimit: 2}
  pytorchReplicaSpecs:
    Master: &same
      replicas: 1
      restartPolicy: OnFailure
      template: &pod
        spec:
          containers:
            - name: pytorch
              image: example/torch:2
              command: [/usr/local/bin/torchrun, --nnodes=3, /fsdp/train.py]
              args: [--epochs, "1"]
              env: [{name: JOB_ID, value: "of its script"}]
    Worker: {replicas: 2, restartPolicy: OnFailure, template: *pod}
"""


def test_a_pytorch_job_is_a_training() -> None:
    found = translate(read(PYTORCH), "fsdp.yaml")
    assert found.options == {
        "name": "fsdp",
        "replicas": 3,
        "min_replicas": 1,
        "max_replicas": 4,
        "nproc_per_node": "2",
        "max_restarts": 3,
        "backoff_limit": 2,
        "rdzv_backend": "c10d",
        "image": "example/torch:2",
        "script": "/fsdp/train.py",
        "args": ["--epochs", "1"],
        "env": [{"name": "JOB_ID", "value": "of its script"}],
    }
    assert native.manifests(from_params({**found.options, "namespace": "ml"}))
    fixed = translate(read(PYTORCH.replace("elasticPolicy: {", "runPolicy: {} #")), "fsdp.yaml").options
    assert (fixed["min_replicas"], fixed["max_replicas"]) == (3, 3)
    told = "\n".join(found.differences)
    assert "spec.elasticPolicy.rdzvPort: ignored; pod 0 hosts the rendezvous" in told
    assert "Worker.template args --nnodes: ignored" in told


@pytest.mark.parametrize(
    "command",
    ["torchrun", "python, -m, torch.distributed.launch", "/opt/python3.11, -u, -m, torch.distributed.run", "python3, -u"],
)
def test_a_command_that_starts_the_script_is_taken(command: str) -> None:
    """As in the job of a workshop for EKS, which names torchrun before the arguments."""
    text = JOB.replace("args: [", f"command: [{command}]\n              args: [").replace("torchelastic/examples:0.2.0", "example/torch:2")
    options = translate(read(text.replace("cleanPodPolicy: Running", "RunPolicy: {cleanPodPolicy: None}")), "imagenet.yaml").options
    assert (options["script"], options["nproc_per_node"]) == ("/workspace/examples/imagenet/main.py", "1")


def in_a_shell(text: str) -> list[t.Any]:
    pod = {"spec": {"containers": [{"name": "pytorch", "image": "example/torch:2", "command": ["/bin/bash", "-c"], "args": [text]}]}}
    spec = {"runPolicy": {"suspend": False}, "pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": pod}}}
    return [{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "j"}, "spec": spec}]


@pytest.mark.parametrize(
    "text",
    [
        "torchrun --nnodes=2 --nproc_per_node=1 train.py --epochs 3",
        "exec python3 -m torch.distributed.launch --use_env --nproc_per_node=1 train.py --epochs 3\n",
        "torchrun \\\n  --standalone --nproc-per-node 1 \\\n  train.py --epochs '3'",
    ],
)
def test_a_shell_that_only_starts_the_launcher_is_none(text: str) -> None:
    """As many jobs for training-operator have it."""
    options = translate(in_a_shell(text), "job.yaml").options
    assert (options["script"], options["args"], options["nproc_per_node"]) == ("train.py", ["--epochs", "3"], "1")


@pytest.mark.parametrize(
    "text", ["cd /x && torchrun t.py", "torchrun t.py | tee log", "torchrun --nnodes=$N t.py", "a\ntorchrun t.py", "", "'"]
)
def test_a_shell_that_does_more_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="torchrun runs the script"):
        translate(in_a_shell(text), "job.yaml")


def test_an_image_and_an_etcd_of_ones_own_are_taken() -> None:
    text = JOB.replace("torchelastic/examples:0.2.0", "example/torch:2").replace(
        "<your_etcd_endpoint>:<your_etcd_port>", "etcd-service:2379"
    )
    options = translate(read(text), "imagenet.yaml").options
    assert (options["image"], options["image_pull_policy"]) == ("example/torch:2", "Always")
    assert options["script"] == "/workspace/examples/imagenet/main.py"
    assert options["rdzv_endpoint"] == "etcd-service:2379"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (JOB.replace("  minReplicas", "  minReplica"), r"spec\.minReplica: unknown; did you mean minReplicas\?"),
        (JOB.replace("    Worker:", "    Etcd:"), r"spec\.replicaSpecs\.Etcd: unknown"),
        (JOB.replace("cleanPodPolicy: Running", "schedulingPolicy: {}"), r"spec\.schedulingPolicy: unknown"),
        (JOB.replace("--nproc_per_node=1", "--role=x"), "--role: no flag of torchelastic's launcher"),
        (JOB.replace("args: [", "command: [sh]\n              args: ["), "torchrun runs the script"),
        (
            JOB.replace("args: [", "command: [python, -m, pkg.main]\n              args: ["),
            "-m: no flag of torch.* Name the file of a program",
        ),
        (PYTORCH.replace("replicas: 1", "replicas: $N"), r"Master.replicas: '\$N' is not a number"),
        (PYTORCH.replace("template: *pod", "template: {spec: {containers: []}}"), "Master is not as Worker"),
        (PYTORCH.replace("- name: pytorch", "- workingDir: /x"), r"workingDir: unknown; no option has it, but overrides may"),
        (PYTORCH.replace("pytorchReplicaSpecs:", "pytorchReplicaSpecs: {}\n  x:"), "pytorchReplicaSpecs: no pods"),
        (JOB.replace("v1alpha1", "v1beta1"), "apiVersion elastic.pytorch.org/v1beta1 is not"),
        (JOB + "---" + WORKER, "kind ElasticJob or PyTorchJob or Pod: only one of them"),
        (
            JOB + "---\napiVersion: v1\nkind: ConfigMap\n",
            "kind ConfigMap: a job file has ElasticJob or PyTorchJob or Pod, and of others Service",
        ),
        (PODS.replace("s3://data/petctl", "s3://<BUCKET>/petctl"), "<BUCKET> stands for a name of yours"),
        (PODS.replace('"10"', '"11"', 1), "Pod imagenet-worker-2: not as Pod imagenet-worker-1"),
        (PODS.replace('value: "3"', "valueFrom: {fieldRef: {fieldPath: x}}", 1), "MAX_SIZE: no value"),
    ],
)
def test_what_cannot_be_taken_over_is_refused(text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        translate(read(text), "imagenet.yaml")


def command(words: str, env: str = "") -> str:
    """The PyTorchJob with other words for its pods."""
    text = PYTORCH.replace('[/usr/local/bin/torchrun, --nnodes=3, /fsdp/train.py]\n              args: [--epochs, "1"]', words)
    return text.replace('{name: JOB_ID, value: "of its script"}', env).replace("command: args:", "args:")


def test_a_script_without_arguments_gets_none() -> None:
    """Not those of the role's example."""
    assert translate(read(command("[torchrun, /t.py]")), "f.yml").options["args"] == []


@pytest.mark.parametrize("words", ["[/usr/bin/python3, /t.py]", "[torchrun, /t.py]", '[bash, -c, "torchrun /t.py"]'])
def test_arguments_that_begin_with_a_program_are_a_command(words: str) -> None:
    assert translate(read(command(f"args: {words}")), "f.yml").options["script"] == "/t.py"


@pytest.mark.parametrize(
    ("old", "new"), [(JOB, JOB.replace("  minReplicas: 1\n  maxReplicas: 3\n", "")), (PODS, re.sub("M(IN|AX)_SIZE", "N", PODS))]
)
def test_sizes_that_are_not_given_are_the_number_of_pods(old: str, new: str) -> None:
    found = translate(read(new), "f.yml")
    assert translate(read(old), "f.yml").options["max_replicas"] == 3
    assert (found.options["min_replicas"], found.options["max_replicas"]) == (2, 2)
    assert "maxReplicas: not in the file, so it is 2, the number of pods" in found.differences
    assert "Worker.replicas: not in the file" in str(translate(read(JOB.replace("      replicas: 2\n", "")), "f.yml").differences)


def test_the_rank_that_scripts_of_before_got_as_an_argument_is_told() -> None:
    for words, told in (
        ("[python, -m, torch.distributed.launch, /t.py]", True),
        ("[python, -m, torch.distributed.launch, --use_env, /t.py]", False),
    ):
        assert ("got --local-rank=N" in str(translate(read(command(words)), "f.yml").differences)) == told


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (command('[python, /t.py, "--rank=$(RANK)"]'), r"\$\(RANK\) has no value in the pod"),
        (command("[python, /t.py]", '{name: A, value: "tcp://$(MASTER_ADDR):1"}'), r"\$\(MASTER_ADDR\) has no value"),
        (JOB.replace("--workers=0", "--id=$(JOB_ID)"), r"\$\(JOB_ID\) has no value"),
        (command("[torchrun, /t.py, 007]"), r"command\[2\]: 7 is not text but int; put it in quotes"),
        (command("[torchrun, /t.py, yes]"), r"command\[2\]: True is not text but bool"),
    ],
)
def test_words_that_would_say_something_else_are_refused(text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        translate(read(text), "f.yml")
    own = command('[python, /t.py, "--rank=$(RANK)", "$$(WORLD_SIZE)"]', '{name: RANK, value: "3"}')
    assert translate(read(own), "f.yml").options["args"] == ["--rank=$(RANK)", "$$(WORLD_SIZE)"]


def test_what_kubernetes_would_do_otherwise_is_told() -> None:
    text = JOB.replace("        spec:", "        metadata: {labels: {team: a}}\n        spec:", 1).replace(
        "torchelastic/examples:0.2.0", "example/torch:latest"
    )
    found = translate(read(text.replace("              imagePullPolicy: Always\n", "")), "f.yml")
    assert found.options["overrides"] == {"spec": {"template": {"metadata": {"labels": {"team": "a"}}}}}
    for words in ("imagePullPolicy: not in the file, so IfNotPresent is used", "securityContext: not in the file"):
        assert words in str(found.differences)
    assert "SIZE: 2 pods are made; the file has 1" in str(translate(read(PODS.split("---")[0]), "f.yml").differences)


def test_nulls_and_comments_are_not_there() -> None:
    text = (
        command("[torchrun, /t.py]", "{name: A}").replace("replicas: 1", "replicas: null").replace("image: example/torch:2", "image: null")
    )
    found = translate(read(text.replace("  runPolicy:", "  runPolicy: null #") + "---\n# end\n"), "f.yml")
    assert (found.options["replicas"], found.options["env"]) == (3, [{"name": "A", "value": ""}])
    assert "image: not in the file, so elastic_image is used" in str(found.differences)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PYTORCH.replace("example/torch:2", '"<your_user>/x:1"'), "<your_user> stands for a name of yours"),
        (PYTORCH.replace("--nnodes=3", "--nproc_per_node=4"), "nproc_per_node is given a second time"),
        (PYTORCH.replace("--nnodes=3", '"--nnodes=1:3"'), "max_replicas is given a second time"),
        (PYTORCH.replace("- name: pytorch", "- envFrom: []"), "envFrom: unknown; no option has it"),
    ],
)
def test_a_contradiction_is_refused_with_its_remedy(text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        translate(read(text), "f.yml")
    found = translate(
        read(
            PYTORCH.replace("--nnodes=3", '--standalone, "--nnodes=1:4", --nproc_per_node=2, "--rdzv_conf=a=1,b=2"').replace(
                "metrics: []", "nProcPerNode: 2, rdzvConf: [{key: a, value: 1}, {key: b, value: 2}]"
            )
        ),
        "f.yml",
    )
    assert (found.options["max_replicas"], found.options["nproc_per_node"]) == (4, "2")
    assert found.options["rdzv_conf"] == {"a": "1", "b": "2"}
    assert "the pods train together, where each of them trained alone" in str(found.differences)
