# SPDX-License-Identifier: GPL-3.0-or-later
"""Connection options for RabbitMQ's management API; the same as CONNECTION in module_utils/_systems/rabbitmq/api.py."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
requirements:
  - PyYAML >= 6.0.1, for O(login_kubernetes)
options:
  login_host:
    description: Host of the management API, as seen from the host that the task runs on.
    type: str
    default: 127.0.0.1
  login_port:
    description: Port of the management API. Defaults to 15671 for C(https) and 15672 for C(http).
    type: int
  login_protocol:
    description: Protocol of the management API. With V(http) the passwords of the task can be read on the network.
    type: str
    choices: [https, http]
    default: https
  login_kubernetes:
    description:
      - Broker of M(muster.ml.rabbitmq_cluster) to reach through the Kubernetes API, by a forwarded port, instead of O(login_host),
        O(login_port) and O(login_protocol). Certificates are checked against the broker's authority, and O(ca_cert), O(client_cert) and
        O(client_key) are not used.
      - The kubeconfig's user needs the verbs C(get) and C(create) for C(pods/portforward), and C(get) for the Secrets.
    type: dict
    suboptions:
      name:
        description: Name of the broker.
        type: str
        default: rabbitmq
      namespace:
        description: Namespace of the broker. Defaults to the namespace of the kubeconfig's context.
        type: str
      kubeconfig:
        description: Path of a kubeconfig file, or its content as a dictionary. Found as by kubectl if it is omitted.
        type: raw
      context:
        description: Context of the kubeconfig, instead of its current one.
        type: str
  login_user:
    description:
      - User that the task logs in as. Managing users and vhosts needs the tag C(administrator).
      - Defaults to the first administrator of O(login_kubernetes), and is required without it.
    type: str
  login_password:
    description: Password of O(login_user).
    type: str
  ca_cert:
    description: Path of the certificate authority of the broker, in PEM. Defaults to the authorities of the system.
    type: path
  client_cert:
    description: Path of a client certificate, for brokers that ask for one.
    type: path
  client_key:
    description: Path of the key of O(client_cert).
    type: path
  request_timeout:
    description: Seconds that one answer may take.
    type: int
    default: 10
  startup_timeout:
    description: Seconds to try again while no process listens at O(login_port) or the broker fails, as it does while it starts.
    type: int
    default: 30
"""

    SUPPORT = r"""
options: {}
attributes:
  check_mode:
    support: full
    details:
      - Only reads. RV(ignore:actions) lists the requests that would be sent.
  diff_mode:
    support: full
    details:
      - Shows the fields that change, and never a password or its hash.
  idempotent:
    support: full
    details:
      - A second run sends no request that changes anything.
  action_group:
    description: Use C(group/muster.ml.rabbitmq) in C(module_defaults) to set defaults for this module.
    support: full
    membership:
      - muster.ml.rabbitmq
  action:
    support: full
"""

    READING = r"""
options: {}
attributes:
  check_mode:
    support: full
    details:
      - Only reads. The probe is left out.
  diff_mode:
    support: N/A
    details:
      - This module only reads.
  idempotent:
    support: full
    details:
      - Only reads. The queue of a probe is deleted again.
  action_group:
    description: Use C(group/muster.ml.rabbitmq) in C(module_defaults) to set defaults for this module.
    support: full
    membership:
      - muster.ml.rabbitmq
  action:
    support: full
"""
