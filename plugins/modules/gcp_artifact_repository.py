# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gcp_artifact_repository
short_description: Manage repositories of Artifact Registry
description:
  - Creates, changes and deletes repositories of images or packages.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - google.cloud.gcp
  - muster.ml.attributes
  - muster.ml.gcp
  - muster.ml.gcp.owner
  - muster.ml.gcp.support
  - muster.ml.gcp.waits
  - muster.ml.gcp.labels
options:
  name:
    description: Name of the repository.
    type: str
    required: true
  location:
    description: Region, or V(us), V(europe) or V(asia). Cannot be changed.
    type: str
    required: true
  format:
    description: Format of what it holds. Cannot be changed.
    type: str
    choices: [APT, DOCKER, GENERIC, GO, KFP, MAVEN, NPM, PYTHON, YUM]
    default: DOCKER
  description:
    description: Text about the repository.
    type: str
  cleanup_policies:
    description:
      - Policies by their names, as the API has them, each with C(action) and either C(condition) or C(mostRecentVersions).
      - They are all that it has. An empty dictionary removes all. Without this option they stay as they are.
    type: dict
  cleanup_policy_dry_run:
    description: Log what the policies would delete, instead of deleting it.
    type: bool
  delete_data:
    description: Delete the repository with what it holds, with O(state=absent). Otherwise a repository that is not empty is kept.
    type: bool
    default: false
  wait_timeout:
    default: 300
"""

EXAMPLES = r"""
- name: Create a repository of images that keeps the last ten of each
  muster.ml.gcp_artifact_repository:
    project: my-project
    auth_kind: application
    name: images
    location: us-central1
    cleanup_policies:
      keep: {action: KEEP, mostRecentVersions: {keepCount: 10}}
      old: {action: DELETE, condition: {olderThan: 2592000s}}
    owner: training
"""

RETURN = r"""
kept:
  description: Reason why the resource was kept although O(state=absent) was given. A warning says the same.
  returned: when it was kept
  type: str
  sample: "Google repository images was kept: it does not have the mark of this owner (muster-owner=team)"
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["artifactregistry:projects.locations.repositories.create (create)"]
repository:
  description: Repository as Artifact Registry describes it, in snake_case. Empty if it does not exist.
  returned: success
  type: dict
  sample: {name: projects/my-project/locations/europe-west4/repositories/images, format: DOCKER}
"""

from ansible_collections.muster.ml.plugins.module_utils._edge.gcp import converger, gcp_main, spec_of
from ansible_collections.muster.ml.plugins.module_utils._gcp.gcp_artifact_repository import GcpArtifactRepository

ARGUMENT_SPEC = spec_of(GcpArtifactRepository)
execute = converger(GcpArtifactRepository, "repository")


def main() -> None:
    gcp_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
