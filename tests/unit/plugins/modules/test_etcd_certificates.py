# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module that works on the host fails with words where a library is missing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.muster.ml.plugins.modules import etcd_certificates


def test_without_cryptography_the_message_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    options = {"directory": str(tmp_path), "members": {"etcd-a": "10.0.0.1"}}
    with patch_module_args(options), pytest.raises(SystemExit):
        etcd_certificates.main()
    said = json.loads(capsys.readouterr().out)
    assert said["failed"]
    assert "Python library (cryptography)" in said["msg"]
