# SPDX-License-Identifier: GPL-3.0-or-later
"""A Kubernetes user for each check that runs beside others on one cluster, so that the audit log tells whose request is whose."""

import base64
import contextlib
import time
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from kubernetes import client, config

GROUP = "muster-checks"


def write_kubeconfig(admin: Path, user: str, path: Path) -> None:
    """Write a kubeconfig of USER, an administrator of the cluster, whose certificate the cluster signs (CertificateSigningRequest)."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, GROUP), x509.NameAttribute(NameOID.COMMON_NAME, user)])
    asked = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    with config.new_client_from_config(str(admin)) as api:
        _bind_group(client.RbacAuthorizationV1Api(api))
        certificate = _signed(client.CertificatesV1Api(api), user, asked.public_bytes(serialization.Encoding.PEM))
    settings: dict[str, Any] = yaml.safe_load(admin.read_text(encoding="utf-8"))
    plain = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    login = {"client-certificate-data": certificate, "client-key-data": base64.b64encode(plain).decode()}
    settings["users"] = [{**entry, "user": login} for entry in settings["users"]]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")


def _bind_group(api: Any) -> None:
    binding = {
        "metadata": {"name": GROUP},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": GROUP}],
    }
    with contextlib.suppress(client.ApiException):  # it is there
        api.create_cluster_role_binding(binding)


def _signed(api: Any, user: str, request: bytes) -> str:
    """The certificate, as a kubeconfig holds it."""
    spec = {"request": base64.b64encode(request).decode(), "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]}
    made = api.create_certificate_signing_request({"metadata": {"generateName": f"{user}-"}, "spec": spec})
    condition = client.V1CertificateSigningRequestCondition(type="Approved", status="True", reason="Check", message=user)
    made.status = client.V1CertificateSigningRequestStatus(conditions=[condition])
    api.replace_certificate_signing_request_approval(made.metadata.name, made)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = api.read_certificate_signing_request(made.metadata.name)
        if found.status.certificate:
            return str(found.status.certificate)
        time.sleep(0.1)
    raise TimeoutError(f"the cluster signed no certificate for {user} within a minute")
