# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gcs_bucket
short_description: Manage buckets of Cloud Storage
description:
  - Creates, changes and deletes buckets. Access is by IAM alone (uniform) and public access is prevented. Neither can be disabled.
  - Settings that have no option here are left as they are.
  - A deleted bucket and its objects can be restored, and are charged for, until O(soft_delete_retention_seconds) has passed. Its name is
    free at once, but only for the same project until then.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - google.cloud.gcp
  - muster.ml.attributes
  - muster.ml.gcp
  - muster.ml.gcp.owner
  - muster.ml.gcp.support
options:
  name:
    description: Name of the bucket, unique in all of Google Cloud.
    type: str
    required: true
  location:
    description: Region, or pair or continent of regions, such as V(us-central1) or V(EU). Cannot be changed.
    type: str
    required: true
  storage_class:
    description: Class of new objects. Google's own default is V(STANDARD).
    type: str
    choices: [STANDARD, NEARLINE, COLDLINE, ARCHIVE]
  versioning:
    description: Keep older versions of objects.
    type: bool
  lifecycle_rules:
    description:
      - Rules as the API has them, each with C(action) and C(condition). They are all that the bucket has. An empty list removes all.
      - Without this option they stay as they are.
    type: list
    elements: dict
  soft_delete_retention_seconds:
    description: Seconds that deleted objects can be restored. Either 0, or from 604800 (7 days) to 7776000 (90 days).
    type: int
  labels:
    description: Labels. They are all that the bucket has, besides the mark of its owner. Without this option they stay as they are.
    type: dict
  delete_data:
    description:
      - Delete the bucket with its objects, with O(state=absent). Otherwise a bucket that is not empty is kept.
    type: bool
    default: false
  wait_timeout:
    description: Seconds for the deletion of the objects. Another run goes on with it.
    type: int
    default: 3600
"""

EXAMPLES = r"""
- name: Create a bucket for the results of experiments
  muster.ml.gcs_bucket:
    project: my-project
    auth_kind: application
    name: example-experiments
    location: us-central1
    lifecycle_rules:
      - {action: {type: Delete}, condition: {age: 90}}
    owner: training
"""

RETURN = r"""
kept:
  description: Reason why the resource was kept although O(state=absent) was given. A warning says the same.
  returned: when it was kept
  type: str
  sample: "Google bucket my-models was kept: it does not have the mark of this owner (muster-owner=team)"
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["storage:buckets.insert (create)"]
bucket:
  description: Bucket as Cloud Storage describes it, in snake_case. Empty if it does not exist.
  returned: success
  type: dict
  sample: {name: my-models, location: EUROPE-WEST4, storage_class: STANDARD}
"""

from ansible_collections.muster.ml.plugins.module_utils._edge.gcp import converger, gcp_main, spec_of
from ansible_collections.muster.ml.plugins.module_utils._gcp.gcs_bucket import GcsBucket

ARGUMENT_SPEC = spec_of(GcsBucket, wait=None, wait_timeout={"type": "int", "default": 3600})
execute = converger(GcsBucket, "bucket")


def main() -> None:
    gcp_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
