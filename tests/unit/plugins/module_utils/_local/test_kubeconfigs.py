# SPDX-License-Identifier: GPL-3.0-or-later
"""The certificate in a kubeconfig is renewed before it ends."""

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext
from ansible_collections.muster.ml.plugins.module_utils._local import kubeconfigs, membership, spec
from ansible_collections.muster.ml.plugins.module_utils._local.cluster import CLUSTER_OPTION, LocalCluster
from ansible_collections.muster.ml.plugins.modules import kubeadm_node
from ansible_collections.muster.ml.tests.unit.fakes.certificates import signed

NOW = datetime(2026, 11, 27, tzinfo=UTC)
OPTIONS = {key: one.get("default") for key, one in CLUSTER_OPTION["options"].items()} | {"name": "dev"}


def kubeconfig(end: datetime) -> str:
    """A kubeconfig as `kubeadm kubeconfig user` prints it (v1.36.3), with a certificate that is valid until END."""
    made = signed("kubernetes-admin", days=(end - datetime.now(UTC)) / timedelta(days=1), life=365)
    data = base64.b64encode(made.pem.encode()).decode()
    return f"users:\n- name: kubernetes-admin\n  user:\n    client-certificate-data: {data}\n    client-key-data: a2V5\n"


@pytest.mark.parametrize(("days", "soon"), [(365, False), (91, False), (89, True), (-1, True)])
def test_a_certificate_is_renewed_from_90_days_before_its_end(tmp_path: Path, days: int, soon: bool) -> None:
    path = tmp_path / "kubeconfig"
    assert kubeconfigs.ends_soon(path, NOW)
    path.write_text("    client-certificate-data: bm9uZQ==\n")
    assert kubeconfigs.ends_soon(path, NOW)
    path.write_text(kubeconfig(NOW + timedelta(days=days)))
    assert kubeconfigs.ends_soon(path, NOW) is soon


def test_a_run_renews_the_certificate_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spec, "STATE_ROOT", str(tmp_path))
    cluster = LocalCluster.of(OPTIONS)
    node, asked = cluster.spec.control_plane, []
    Path(node.state_dir).mkdir(parents=True)
    (Path(node.state_dir) / "initialised").touch()
    cluster.admin_kubeconfig.write_text(kubeconfig(datetime.now(UTC) + timedelta(days=20)))

    def kubeadm_in_node(_node: object, _pid: int, argv: list[str], **_options: object) -> str:
        asked.append(argv)
        return kubeconfig(datetime.now(UTC) + timedelta(days=365))

    monkeypatch.setattr(membership, "namespace_command", kubeadm_in_node)
    monkeypatch.setattr(membership, "_pid", lambda _node: 1)
    ctx = HostContext(params={"cluster": OPTIONS, "index": 1, "state": "present", "wait_timeout": 9}, check=False)
    assert [kubeadm_node.execute(ctx)["changed"] for _run in range(2)] == [True, False]
    assert [argv[:3] for argv in asked] == [["kubeadm", "kubeconfig", "user"]]
    assert "--validity-period=8760h" in asked[0]
    assert cluster.admin_kubeconfig.stat().st_mode & 0o777 == 0o600
    assert "key" not in str(kubeadm_node.execute(ctx))
