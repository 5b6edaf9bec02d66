# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports of this machine for tests that run beside others."""

import contextlib
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def refused_port() -> Iterator[int]:
    """A port that refuses connections: it is held, so that no server of another test gets it, and nobody listens there."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
