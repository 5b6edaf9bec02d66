# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: manifests
short_description: List the Kubernetes objects that a role applies
author: Muster contributors (!UNKNOWN)
description:
  - Returns the Kubernetes objects of a role. Supported roles are P(muster.ml.nats_operator#role),
    P(muster.ml.persia_operator#role), P(muster.ml.training_operator#role), P(muster.ml.trainer#role),
    P(muster.ml.jobset#role), P(muster.ml.kueue#role), P(muster.ml.lws#role), P(muster.ml.traefik#role), P(muster.ml.gpu_drivers#role),
    P(muster.ml.prometheus#role), P(muster.ml.local_cluster#role), P(muster.ml.namespace#role), P(muster.ml.efs_csi#role),
    P(muster.ml.s3_artifacts#role) and P(muster.ml.inference_gateway#role).
    No cluster is asked or changed.
  - For an operator whose project releases a manifest these are the objects of that manifest (O(manifest)), in the namespace, and with the
    image and resources, that the options say.
  - The roles use it themselves. It is also useful for GitOps, where the objects are written to files that another program applies.
  - An option is a variable of the role without the role's name, or a key of its variable for other options, such as C(kueue_options).
    The role's defaults are good values for required options.
options:
  _terms:
    description:
      - Name of a role. For each name there is one list of objects; use it with C(lookup) and one name.
    type: list
    elements: str
    required: true
  part:
    description:
      - Objects to return. V(objects) are all but the CustomResourceDefinitions, and V(queues) are the queues of kueue.
    type: str
    choices: [all, crds, objects, queues]
    default: all
  manifest:
    description: URL or path of the manifest that the project of an operator released.
    type: str
  manifest_sha256:
    description: SHA-256 of O(manifest).
    type: str
  cluster_policy:
    description: Spec of the ClusterPolicy of gpu_drivers with O(flavour=gpu_operator). Required components default to V({}).
    type: dict
  overrides:
    description: Strategic merge patch of the Deployment in O(manifest).
    type: dict
  namespace:
    description: Namespace of the objects, which has to exist. Required for all but gpu_drivers, local_cluster and namespace.
    type: str
  image:
    description: Image of the operator or of prometheus. Required for these.
    type: str
  image_pull_policy:
    description: Pull policy of the operator's image. Defaults to V(IfNotPresent).
    type: str
    choices: [Always, IfNotPresent, Never]
  image_pull_secrets:
    description: Names of Secrets to pull the image of the operator with.
    type: list
    elements: str
  resources:
    description: Resources of the operator's container, as in Kubernetes.
    type: dict
  node_selector:
    description: Labels of the nodes that the operator may run on.
    type: dict
  tolerations:
    description: Tolerations of the operator's pod, as in Kubernetes.
    type: list
    elements: dict
  scope:
    description:
      - Namespaces that nats_operator watches, its own with V(namespace), the default, or all with V(cluster).
      - With V(cluster) it has to run in the namespace C(nats-io), with V(namespace) in any other.
    type: str
    choices: [namespace, cluster]
  replicas:
    description: Replicas of nats_operator, one of which leads, or of traefik. Defaults to 1.
    type: int
  service_accounts:
    description: Permission of nats_operator to read service accounts and to create tokens. Defaults to V(false).
    type: bool
  gc_interval:
    description: Time after which nats_operator collects left-over objects again, as a Go duration. Defaults to V(10m).
    type: str
  command:
    description: Command that starts persia_operator inside its image. Defaults to V([persia-k8s-utils, operator]).
    type: list
    elements: str
  log_level:
    description: Log level of persia_operator. Defaults to V(info).
    type: str
    choices: [error, warn, info, debug, trace]
  autoscaling:
    description: Permission of training_operator to create HorizontalPodAutoscalers. Defaults to V(false).
    type: bool
  controller_threads:
    description: Number of jobs that training_operator reconciles concurrently. Defaults to 1.
    type: int
  progress:
    description: Let trainer take the progress that pods report, its alpha feature C(TrainJobStatus). Defaults to V(false).
    type: bool
  flavour:
    description:
      - Flavour of gpu_drivers, see its role. There are no objects for V(managed) and V(none). Required for gpu_drivers.
    type: str
    choices: [managed, gke_cos, gke_ubuntu, nvidia_device_plugin, gpu_operator, simulated, none]
  version:
    description: Driver that gpu_drivers installs with O(flavour=gke_cos). Defaults to V(default).
    type: str
    choices: [default, latest]
  cos_installer_image:
    description: Installer that nodes with Container-Optimized OS carry, for O(flavour=gke_cos).
    type: str
  ubuntu_installer_image:
    description: Installer that Ubuntu nodes of GKE carry, for O(flavour=gke_ubuntu).
    type: str
  pause_image:
    description: Image of the container that runs after the driver is installed, for O(flavour=gke_cos) and O(flavour=gke_ubuntu).
    type: str
  device_plugin_image:
    description: Image of NVIDIA's device plugin, for O(flavour=nvidia_device_plugin).
    type: str
  simulated_image:
    description: Image of the device plugin of O(flavour=simulated).
    type: str
  simulated_gpus:
    description: GPUs that each node offers with O(flavour=simulated). Defaults to 2.
    type: int
  resource:
    description: Extended resource that the nodes offer with O(flavour=simulated). Defaults to V(nvidia.com/gpu).
    type: str
  device_plugin_env:
    description: Additional environment variables of the device plugin.
    type: dict
  device_plugin_node_selector:
    description: Labels of the nodes that the device plugin runs on. Defaults to all nodes.
    type: dict
  device_plugin_tolerations:
    description: Tolerations of the device plugin, as in Kubernetes, besides that for the taint C(nvidia.com/gpu).
    type: list
    elements: dict
  name:
    description: Name of the local cluster, of the namespace or of the Gateway. Required for local_cluster, namespace and inference_gateway.
    type: str
  dns_upstream:
    description: Name servers for names outside of the local cluster. Without any, such lookups fail at once.
    type: list
    elements: str
  default_storage_class:
    description: Return the objects of the default StorageClass of the local cluster. Defaults to V(true).
    type: bool
  storage_image:
    description: Image of the provisioner of the local cluster's volumes. Required for local_cluster.
    type: str
  network_policy_image:
    description: Image of the program that enforces NetworkPolicies on the local cluster. Without one they are only stored.
    type: str
  pod_subnet:
    description: Range of the addresses of the local cluster's pods. Derived from O(name) by default.
    type: str
  simulated_nodes:
    description: Groups of simulated nodes of the local cluster, as the role takes them.
    type: list
    elements: dict
  pod_security:
    description: Pod Security level that the API server enforces in the namespace. Defaults to V(baseline).
    type: str
    choices: [privileged, baseline, restricted]
  labels:
    description: Further labels of the namespace.
    type: dict
  annotations:
    description: Annotations of the namespace or of the Gateway.
    type: dict
  claim_name:
    description: Name of the claim of efs_csi. Required for efs_csi.
    type: str
  claim_size:
    description: Size of the claim of efs_csi. Kubernetes requires it, EFS ignores it. Defaults to V(5Gi).
    type: str
  file_system_id:
    description: File system of efs_csi. Without it the cluster has to have the StorageClass.
    type: str
  provisioning:
    description: Return a StorageClass that creates an access point for each claim of efs_csi, the default, or one volume.
    type: str
    choices: [dynamic, static]
  storage_class_name:
    description: StorageClass of efs_csi, which defaults to V(efs-sc), or of the claim of prometheus.
    type: str
  directory_perms:
    description: Permissions of the root folder of access points of efs_csi. Defaults to V("700").
    type: str
  base_path:
    description: Folder in which access points of efs_csi are created.
    type: str
  path:
    description: Folder of the static volume of efs_csi.
    type: str
  access_point_id:
    description: Access point of the static volume of efs_csi.
    type: str
  iam:
    description: Use IAM when mounting the static volume of efs_csi. Defaults to V(false).
    type: bool
  verify:
    description: Return the Jobs that verify the claim of efs_csi instead of its storage. Defaults to V(false).
    type: bool
  verify_image:
    description: Image of these Jobs, with C(sh). Required with O(verify=true).
    type: str
  verify_user:
    description: User of these Jobs. Defaults to 1000.
    type: int
  wait_timeout:
    description: Seconds after which these Jobs fail. Defaults to 600.
    type: int
  service_account:
    description: Service account whose pods read the bucket of s3_artifacts. Required for s3_artifacts.
    type: str
  identity:
    description: Way in which these pods get the IAM role. Defaults to V(pod_identity).
    type: str
    choices: [pod_identity, irsa]
  role_arn:
    description: ARN of that IAM role, for O(identity=irsa).
    type: str
  integrations:
    description: Kinds of jobs that kueue queues, by the names of its integrations. Defaults to those of all modules.
    type: list
    elements: str
  resource_flavors:
    description: Kinds of nodes, as the role kueue takes them.
    type: list
    elements: dict
  cluster_queues:
    description: Quotas, as the role kueue takes them.
    type: list
    elements: dict
  local_queues:
    description: Queues of namespaces, as the role kueue takes them.
    type: list
    elements: dict
  priority_classes:
    description: Priorities in queues, as the role kueue takes them.
    type: list
    elements: dict
  provisioning_requests:
    description: Requests for nodes, as the role kueue takes it.
    type: list
    elements: dict
  class_name:
    description: GatewayClass of traefik, which defaults to V(traefik), or of the Gateway.
    type: str
  service_type:
    description: Type of the Service of traefik. Defaults to V(LoadBalancer).
    type: str
    choices: [LoadBalancer, NodePort, ClusterIP]
  drain_timeout:
    description: Seconds for which a pod of traefik that ends still accepts requests. Defaults to 10.
    type: int
  exit_timeout:
    description: Seconds for requests to traefik that are in flight then. Defaults to 30.
    type: int
  namespaces:
    description:
      - Namespaces with pods that prometheus collects metrics of, by default its own; or whose objects traefik or training_operator serves,
        by default all. Their permissions are limited to these. training_operator takes one, and traefik adds its own.
    type: list
    elements: str
  scrape_interval:
    description: Time between two collections by prometheus. Defaults to V(15s).
    type: str
  retention:
    description: Time that prometheus keeps what it has collected. Defaults to V(1d).
    type: str
  rule_groups:
    description: Groups of rules of prometheus, as in its own files.
    type: list
    elements: dict
  storage_size:
    description: Size of a claim for what prometheus collects. Without it, that is lost with the pod.
    type: str
  network_policy:
    description: Return a NetworkPolicy that admits only pods of its namespace to prometheus. Defaults to V(true).
    type: bool
  network_policy_from:
    description: Further peers that it admits, as in C(ingress.from) of a NetworkPolicy.
    type: list
    elements: dict
  kind:
    description: Kind of the Gateway of inference_gateway. Defaults to V(gateway-api).
    type: str
    choices: [gateway-api, istio]
  selector:
    description: Labels of the pods of Istio's gateway. By default those of its own installation.
    type: dict
  addresses:
    description: Addresses that the Gateway asks for, as in its C(spec.addresses).
    type: list
    elements: dict
  hostnames:
    description: Host names that clients of the Gateway use. Without any, all are answered.
    type: list
    elements: str
  tls_secret:
    description: Secret with the certificate of the Gateway. Without one it answers by HTTP only.
    type: str
  http:
    description: Answer by HTTP at port 80 beside HTTPS. Defaults to V(false).
    type: bool
  backends:
    description: Servers behind the Gateway, as the role inference_gateway takes them.
    type: list
    elements: dict
  options:
    description: Other options of M(muster.ml.inference_route).
    type: dict
seealso:
  - module: muster.ml.apply
    description: Applies the objects.
"""

EXAMPLES = r"""
- name: Apply nats-operator
  muster.ml.apply:
    owner: nats_operator.ml
    definition: >-
      {{ lookup('muster.ml.manifests', 'nats_operator', namespace='ml', image='natsio/nats-operator:0.8.3') }}

- name: Write the manifests of JobSet into a Git repository that Argo CD or Flux applies
  ansible.builtin.copy:
    dest: "{{ my_repository }}/jobset.yml"
    content: "{{ objects | map('to_nice_yaml', indent=2) | join('---\n') }}"
    mode: "0644"
  vars:
    objects: >-
      {{ lookup('muster.ml.manifests', 'jobset', namespace='jobset-system', image='registry.k8s.io/jobset/jobset:v0.12.0',
                manifest='https://github.com/kubernetes-sigs/jobset/releases/download/v0.12.0/manifests.yaml',
                manifest_sha256='a41aaf12dd0b7b0a3d626b8d6107f32c3dc889d7e7830adc46b8cdb77a8963bb') }}
"""

RETURN = r"""
_raw:
  description: For each name the list of objects, as mappings. C(lookup) with one name returns that list itself.
  type: list
  elements: list
  sample: [[{apiVersion: v1, kind: Namespace, metadata: {name: ml}}]]
"""

import dataclasses
import importlib
import inspect
import pathlib
import types
import typing as t

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput, Unreachable
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import to_plain_values
from ansible_collections.muster.ml.plugins.module_utils._kube.source import from_release
from ansible_collections.muster.ml.plugins.module_utils._manifests.operators import DEFINITION, definitions, type_of

COLLECTION = pathlib.Path(__file__).parents[2]
UTILS = "ansible_collections.muster.ml.plugins.module_utils"
FOLDERS = ("_systems/*", "_manifests", "_local")


class LookupModule(LookupBase):
    def run(self, terms: list[str], variables: dict[str, t.Any] | None = None, **kwargs: t.Any) -> list[list[dict[str, t.Any]]]:
        self.set_options(var_options=variables, direct=kwargs)
        # A misspelt option has no type; build() refuses it, whatever its value.
        given = {name: self.get_option(name) if self.has_option(name) else kwargs[name] for name in kwargs}
        part = given.pop("part", "all")
        return [build(term, to_plain_values(given), part) for term in terms]


def build(name: str, given: dict[str, t.Any], part: str = "all") -> list[dict[str, t.Any]]:
    """The objects of role NAME; an option that is None keeps the builder's default."""
    builder = find(name)
    options = {field.name: field for field in dataclasses.fields(options_of(builder))}
    unknown = sorted(given.keys() - options.keys())
    if unknown:
        raise AnsibleError(f"{name} has no option {', '.join(unknown)}. Its options are {', '.join(options)}.")
    desired = {option: value for option, value in given.items() if value is not None}
    missing = [option for option, field in options.items() if option not in desired and required(field)]
    if missing:
        raise AnsibleError(f"{name} needs the option {', '.join(missing)}.")
    try:
        made = objects_of(builder, options_of(builder)(**desired), part)
    except (InvalidInput, Unreachable) as error:
        raise AnsibleError(f"{name}: {error}") from error
    return t.cast("list[dict[str, t.Any]]", to_plain_values(made))


def objects_of(builder: types.ModuleType, options: t.Any, part: str) -> list[dict[str, t.Any]]:
    """A part of the objects. The released manifest is read only for what is taken from it."""
    if part == "queues":
        return list(builder.queues(options))
    takes_released = len(inspect.signature(builder.manifests).parameters) > 1
    released: list[dict[str, t.Any]] = []
    if getattr(options, "manifest", "") and (takes_released or part != "objects"):
        released = [one for one in from_release(options.manifest, options.manifest_sha256) if one]
    crds = definitions(released)
    if part == "crds":
        return crds
    objects = builder.manifests(options, released) if takes_released else builder.manifests(options)
    others = [one for one in objects if type_of(one) != DEFINITION]
    return others if part == "objects" else [*crds, *others]


def builders() -> dict[str, str]:
    """Role -> module with its manifests, which has the name of the role."""
    utils = COLLECTION / "plugins" / "module_utils"
    roles = {path.name for path in (COLLECTION / "roles").iterdir()}
    files = {path.stem: path for folder in FOLDERS for path in utils.glob(f"{folder}/*.py") if path.stem in roles}
    return {role: ".".join((UTILS, *files[role].relative_to(utils).with_suffix("").parts)) for role in sorted(files)}


def find(name: str) -> types.ModuleType:
    known = builders()
    if name not in known:
        raise AnsibleError(f"No role with manifests is called {name!r}. There are {', '.join(known)}.")
    return importlib.import_module(known[name])


def options_of(builder: types.ModuleType) -> type[t.Any]:
    """The dataclass that is the argument of the builder's manifests()."""
    hints = t.get_type_hints(builder.manifests)
    return t.cast("type[t.Any]", next(hint for name, hint in hints.items() if name != "return"))


def required(field: dataclasses.Field[t.Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
