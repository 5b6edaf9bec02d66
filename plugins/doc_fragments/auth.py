# SPDX-License-Identifier: GPL-3.0-or-later
"""Connection options; the same as AUTH in module_utils/_edge/options.py."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
requirements:
  - PyYAML >= 6.0.1
options:
  kubeconfig:
    description:
      - Path of a kubeconfig file, or its content as a dictionary.
      - By default the environment variables E(K8S_AUTH_KUBECONFIG) and E(KUBECONFIG) are read (the latter may name several files,
        which are merged as kubectl does), then C(~/.kube/config), then the service account of the pod that the task runs in.
    type: raw
  context:
    description:
      - Context of the kubeconfig, instead of its current one.
      - Also read from E(K8S_AUTH_CONTEXT).
    type: str
  host:
    description:
      - URL of the API server. With it no kubeconfig is read unless O(kubeconfig) or O(context) is given too.
      - Without TLS (C(http://)) credentials are sent to this machine itself only, for C(kubectl proxy); elsewhere the task fails.
      - Also read from E(K8S_AUTH_HOST).
    type: str
  api_key:
    description:
      - Bearer token, without a line break at its end. Also read from E(K8S_AUTH_API_KEY).
    type: str
  username:
    description:
      - User name for basic authentication, for a proxy in front of the API server. Also read from E(K8S_AUTH_USERNAME).
    type: str
  password:
    description:
      - Password of O(username). Also read from E(K8S_AUTH_PASSWORD).
    type: str
  client_cert:
    description:
      - Path of a client certificate. Also read from E(K8S_AUTH_CERT_FILE).
    type: path
    aliases: [cert_file]
  client_key:
    description:
      - Path of the key of O(client_cert). Also read from E(K8S_AUTH_KEY_FILE).
    type: path
    aliases: [key_file]
  ca_cert:
    description:
      - Path of the certificate authority of the API server. Also read from E(K8S_AUTH_SSL_CA_CERT).
      - If given, the API server's certificate is verified, even if the kubeconfig disables that, unless O(validate_certs) is V(false).
    type: path
    aliases: [ssl_ca_cert]
  validate_certs:
    description:
      - Verify the API server's certificate. Defaults to the setting of the kubeconfig, which is normally V(true).
      - Also read from E(K8S_AUTH_VERIFY_SSL).
    type: bool
    aliases: [verify_ssl]
  proxy:
    description:
      - URL of a proxy to reach the API server through, C(http://) or C(socks5://), with user and password if it needs them.
      - Also read from E(K8S_AUTH_PROXY), the kubeconfig's C(proxy-url), and E(HTTPS_PROXY) with E(NO_PROXY), by the rules of kubectl.
    type: str
  impersonate_user:
    description:
      - User to act as, instead of the one that the kubeconfig names with C(as). Also read from E(K8S_AUTH_IMPERSONATE_USER).
    type: str
  impersonate_groups:
    description:
      - Groups to act as, together with O(impersonate_user). Also read from E(K8S_AUTH_IMPERSONATE_GROUPS).
    type: list
    elements: str
notes:
  - A kubeconfig with C(exec) needs its credential plugin on the host that runs the task.
"""

    # For modules whose objects are in one namespace.
    NAMESPACE = r"""
options:
  namespace:
    description: Namespace, which must exist. Defaults to the namespace of the kubeconfig's context.
    type: str
"""
