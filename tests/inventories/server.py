# SPDX-License-Identifier: GPL-3.0-or-later
"""As much of an API server as a run asks that installs nothing: version, nodes, and that there are no objects.

Plain HTTP, which Muster takes on the loopback address only.
"""

from simulators.apiserver import ApiServer, node


class Server(ApiServer):
    """An API server that serves no kind but nodes, of which it has one."""

    def __init__(self, name: str) -> None:
        super().__init__(None, f"token-of-{name}", node("node-1"))
        self.name = name
        served = self.cluster.kinds_served
        self.cluster.kinds_served = {kind: served[kind] for kind in (("v1", "Node"),)}
