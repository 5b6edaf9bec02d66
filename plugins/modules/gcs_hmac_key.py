# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gcs_hmac_key
short_description: Manage HMAC keys of Cloud Storage in Secrets of Kubernetes
description:
  - Creates an HMAC key of a service account and writes it into a Secret, with the keys C(access_key) and C(secret_key). Google shows the
    secret only once, and it is never in the result, the diff, a log or a file.
  - Only a key whose ID this module wrote into the Secret is ever changed or deleted. Google tells the ID only in its answer, so a key
    whose answer was lost with a run that was killed is kept. The next run creates another key, and names in a warning every key that
    appeared since the killed one began.
  - A key that was deleted on Google Cloud is replaced. One that was deactivated is reported by a warning.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - google.cloud.gcp
  - muster.ml.attributes
  - muster.ml.auth
  - muster.ml.gcp
  - muster.ml.gcp.support
options:
  email:
    description: Email address of the service account. Google allows ten keys of one.
    type: str
    required: true
  secret:
    description: Secret that the key is kept in.
    type: dict
    required: true
    suboptions:
      name:
        description: Name of the Secret.
        type: str
        required: true
      namespace:
        description: Namespace of the Secret. Defaults to that of the kubeconfig's context.
        type: str
  rotate:
    description:
      - Create another key, write it into the Secret, then deactivate and delete the old one.
      - A pod that reads the Secret only when it starts has to be restarted.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Create the key of the runner
  muster.ml.gcs_hmac_key:
    project: my-project
    auth_kind: application
    email: training-storage@my-project.iam.gserviceaccount.com
    secret: {name: gcs-hmac, namespace: ml}
"""

RETURN = r"""
kept:
  description: Reason why the resource was kept although O(state=absent) was given. A warning says the same.
  returned: when it was kept
  type: str
  sample: "GOOG1EXAMPLE of a@x.iam.gserviceaccount.com were kept: Secret ml/gcs-hmac does not exist, so nothing says whose they are"
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["kubernetes:secrets.apply (note which keys there are)", "storage:projects.hmacKeys.create (create)"]
objects:
  description: Secret with the action that was taken, or would be in check mode. Empty if it stays as it is.
  returned: success
  type: list
  elements: dict
  sample: [{kind: Secret, name: gcs-hmac, namespace: ml, action: created}]
key:
  description: Key that the Secret has. Empty if there is none.
  returned: success
  type: dict
  sample: {access_id: GOOG1EXAMPLE, state: ACTIVE, service_account: a@my-project.iam.gserviceaccount.com}
"""

from ansible_collections.muster.ml.plugins.module_utils._edge.gcp import full_spec
from ansible_collections.muster.ml.plugins.module_utils._edge.hmac import execute
from ansible_collections.muster.ml.plugins.module_utils._edge.options import STATE
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Spec, module_main

SECRET: Spec = {"name": {"type": "str", "required": True}, "namespace": {"type": "str"}}
ARGUMENT_SPEC: Spec = full_spec(
    {
        **STATE,
        "email": {"type": "str", "required": True},
        "secret": {"type": "dict", "required": True, "options": SECRET, "no_log": False},
        "rotate": {"type": "bool", "default": False},
    }
)


def main() -> None:
    module_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
