# SPDX-License-Identifier: GPL-3.0-or-later
"""A certificate authority of the simulator's own, and a certificate for every host that it stands for."""

from __future__ import annotations

import ssl
from pathlib import Path

from ansible_collections.muster.ml.tests.unit.fakes.certificates import signed

DAYS = 30


class Authority:
    """Its certificate is ``folder/ca.pem``; keys stay in the folder, too, which is the test's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca = folder / "ca.pem"
        self._own = signed("Muster's simulated Google", ca=True, days=DAYS, life=DAYS + 1, strict=True)
        self._contexts: dict[str, ssl.SSLContext] = {}
        self.ca.write_text(self._own.pem)

    def context(self, host: str) -> ssl.SSLContext:
        if host not in self._contexts:
            self._contexts[host] = self._make(host)
        return self._contexts[host]

    def _make(self, host: str) -> ssl.SSLContext:
        made, pem = signed(host[:64], self._own, host=host, days=DAYS, life=DAYS + 1, strict=True), self.folder / f"{host}.pem"
        pem.touch(mode=0o600)
        pem.write_text(made.key_pem() + made.pem)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        context.set_alpn_protocols(["http/1.1"])
        return context
