# SPDX-License-Identifier: GPL-3.0-or-later
"""The smallest system there can be, as the files that somebody adds to the collection: a greeting in a ConfigMap."""

NAME = "sample"
LIST = "playbooks/vars/systems.yml"
ENTRY = """\
  - name: sample
    title: The sample
    kubernetes: {version: "1.28", reason: nobody knows}
    needs: []
    uses: []
    eks: []
    gke: []
    images: [tools]
    must: []
    usual: []
    writes: [configmaps, jobs.batch]

"""

FILES = {
    "plugins/module_utils/_systems/sample/sample.py": """\
import dataclasses

from ..._core.errors import InvalidInput
from ..._manifests.meta import Manifest


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sample:
    namespace: str
    greeting: str


def manifests(sample: Sample) -> list[Manifest]:
    if len(sample.greeting) > 20:
        raise InvalidInput("greeting: nobody reads more than 20 characters.")
    metadata = {"name": "sample", "namespace": sample.namespace}
    return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"greeting": sample.greeting}}]
""",
    "roles/sample/defaults/main.yml": """\
sample_greeting: hello
sample_preflight: "{{ muster_preflight | default(true) }}"
""",
    "roles/sample/meta/argument_specs.yml": """\
argument_specs:
  main:
    options: &options
      sample_greeting: {type: str, default: hello}
      sample_preflight: {type: bool, default: "{{ muster_preflight | default(true) }}"}
  remove:
    options: *options
""",
    "roles/sample/vars/main.yml": """\
__sample_namespace: "{{ muster_namespace | default('ml') }}"
""",
    "roles/sample/tasks/main.yml": """\
- name: Check that the sample can be installed
  ansible.builtin.import_tasks: preflight.yml
  when: sample_preflight | bool
  tags: [sample, sample_preflight]
- name: Install the sample
  ansible.builtin.import_tasks: install.yml
  tags: [sample, sample_install]
""",
    "roles/sample/tasks/validate.yml": """\
- name: Assert that there is a greeting
  ansible.builtin.assert:
    that: sample_greeting | length > 0
    quiet: true
    fail_msg: sample_greeting is empty.
""",
    "roles/sample/tasks/preflight.yml": """\
- name: Validate the options of the sample
  ansible.builtin.import_tasks: validate.yml
- name: Validate the sample with a dry run
  ansible.builtin.include_tasks:
    file: objects.yml
    apply: {check_mode: true, diff: false}
  vars: {__sample_dry_run: true}
""",
    "roles/sample/tasks/objects.yml": """\
- name: Create the sample
  muster.ml.apply:
    owner: "sample.{{ __sample_namespace }}"
    namespace: "{{ __sample_namespace }}"
    # The preflight plans the object before the role creates its namespace.
    expected_namespaces: ["{{ __sample_namespace }}"]
    definition: "{{ lookup('muster.ml.manifests', 'sample', namespace=__sample_namespace, greeting=sample_greeting) }}"
  register: __sample
  changed_when: __sample is changed and not __sample_dry_run | default(false)
""",
    "roles/sample/tasks/install.yml": """\
- name: Create the namespace of the sample
  ansible.builtin.include_role:
    name: muster.ml.namespace
  vars:
    namespace_name: "{{ __sample_namespace }}"
- name: Create the objects of the sample
  ansible.builtin.import_tasks: objects.yml
- name: Report the sample in the summary of the run
  ansible.builtin.set_stats:
    per_host: true
    data: {muster_systems: {sample: {ok: true}}}
  when: not ansible_check_mode
""",
    "roles/sample/tasks/remove.yml": """\
- name: Remove the sample
  muster.ml.apply:
    owner: "sample.{{ __sample_namespace }}"
    namespace: "{{ __sample_namespace }}"
    state: absent
    wait: true
""",
    "playbooks/sample.yml": """\
- name: Install the sample
  ansible.builtin.import_playbook: systems.yml
  vars:
    muster_only: [sample]
""",
    f"docs/systems/{NAME}.md": "# The sample\n",
    "tests/acceptance/sample/claims.yml": "deploys: [sample]\nsystem_vars: {}\nclaims: []\n",
}
