# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""rabbitmq_certificates: one authority for brokers that come one after another, and the names that each is valid for."""

from __future__ import annotations

import base64
import json
import sys
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args
from cryptography import x509

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext
from ansible_collections.muster.ml.plugins.modules import rabbitmq_certificates


def make(folder: Path, host: str, *addresses: str, **more: t.Any) -> list[str]:
    params = {"directory": str(folder), "brokers": {host: list(addresses)}, "trusted": {}, **more}
    return t.cast("list[str]", rabbitmq_certificates.execute(HostContext(params=params, check=False))["fresh"])


def test_brokers_that_come_later_get_their_certificate_of_the_same_authority(tmp_path: Path) -> None:
    assert make(tmp_path, "broker-a", "broker.example.com", "10.0.0.4") == ["ca", "broker-a/server"]
    assert make(tmp_path, "broker-b", "10.0.0.5") == ["broker-b/server"]
    assert make(tmp_path, "broker-a", "broker.example.com", "10.0.0.4") == []
    found = x509.load_pem_x509_certificate((tmp_path / "broker-a" / "server.crt").read_bytes())
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["broker.example.com", "broker-a", "localhost"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.4", "127.0.0.1"]


def test_another_authority_than_clients_trust_is_refused(tmp_path: Path) -> None:
    make(tmp_path / "old", "broker-a")
    theirs = {"content": base64.b64encode((tmp_path / "old" / "ca.crt").read_bytes()).decode()}
    with pytest.raises(Failed, match="broker-a trusts another certificate authority"):
        make(tmp_path / "new", "broker-a", trusted={"broker-a": theirs})
    assert not (tmp_path / "new").exists()


def test_without_cryptography_the_message_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    options = {"directory": str(tmp_path), "brokers": {"broker-a": ["10.0.0.1"]}}
    with patch_module_args(options), pytest.raises(SystemExit):
        rabbitmq_certificates.main()
    said = json.loads(capsys.readouterr().out)
    assert said["failed"]
    assert "Python library (cryptography)" in said["msg"]
