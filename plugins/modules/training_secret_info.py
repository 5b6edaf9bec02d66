# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: training_secret_info
short_description: Read keys and logins of StudioML from Secrets
description:
  - Returns the values of Secrets that M(muster.ml.training_secret) has made, or of others with such keys, for tasks that use them.
  - On the controller its result is never shown. Set C(no_log=true) at the task all the same, which holds wherever it runs.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.auth
  - muster.ml.attributes
  - muster.ml.attributes.kube_info
  - muster.ml.requires.cryptography
options:
  names:
    description: Names of the Secrets.
    type: list
    elements: str
    required: true
  namespace:
    description: Namespace of the Secrets. Defaults to the namespace of the kubeconfig's context.
    type: str
"""

EXAMPLES = r"""
- name: Read the login of the experimenters
  muster.ml.training_secret_info:
    names: [studioml-client-login]
    namespace: studioml
  register: login
  no_log: true

- name: Read how many messages wait, as an experimenter
  muster.ml.rabbitmq_info:
    login_kubernetes: {namespace: studioml}
    match: ^rmq_
    login_user: "{{ login.secrets['studioml-client-login'].username }}"
    login_password: "{{ login.secrets['studioml-client-login'].password }}"
"""

RETURN = r"""
secrets:
  description: Values by key, of each Secret by its name. A Secret that does not exist is missing.
  returned: success
  type: dict
  sample: {}
generations:
  description: Number of the key or password in each Secret, as O(muster.ml.training_secret#module:generation).
  returned: success
  type: dict
  sample: {studioml-runner-key-secret: 1}
"""

from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, Result, Spec, module_main
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml import key_secrets

ARGUMENT_SPEC: Spec = {
    "names": {"type": "list", "elements": "str", "required": True, "no_log": False},
    "namespace": {"type": "str"},
}


def execute(ctx: Context) -> Result:
    """Read the values."""
    found = key_secrets.contents(ctx.cluster, ctx.namespace, ctx.params["names"])
    values = {name: {key: text.reveal() for key, text in one.values.items()} for name, one in found.items()}
    generations = {name: one.generation for name, one in found.items()}
    return {"changed": False, "secrets": values, "generations": generations}


def main() -> None:
    module_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
