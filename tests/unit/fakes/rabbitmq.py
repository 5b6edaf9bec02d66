# SPDX-License-Identifier: GPL-3.0-or-later
"""A management API of RabbitMQ on the loopback interface: users, vhosts, permissions, limits, policies, queues, messages.

It answers as 3.10 and 4.0 do, traps included; tests/rabbitmq runs the modules at the real ones.
"""

import base64
import hashlib
import http.server
import json
import threading
import typing as t
import urllib.parse

from ansible_collections.muster.ml.tests.unit.fakes.served import Answering

Rows = dict[tuple[str, ...], dict[str, t.Any]]
PASSWORD = "secret-of-admin"
_SALT = b"abcd"
_NAMES = {
    "users": ("name",), "vhosts": ("name",), "permissions": ("vhost", "user"), "topic-permissions": ("vhost", "user", "exchange"),
    "parameters": ("component", "vhost", "name"), "global-parameters": ("name",),
}  # fmt: skip
_KEYS = dict.fromkeys(("policies", "operator-policies", "exchanges", "queues"), 3) | {
    kind: len(names) + 1 for kind, names in _NAMES.items()
}
"""Parts of the path of an object; a shorter path lists objects."""


class FakeBroker(http.server.ThreadingHTTPServer):
    """Objects by their path. ``requests`` has what was asked; ``faults`` breaks the next requests, one each, None for none."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.objects: Rows = {}
        self.messages: dict[tuple[str, ...], list[str]] = {}
        self.bindings: list[dict[str, t.Any]] = []
        self.published: list[dict[str, t.Any]] = []
        self.stats: dict[str, t.Any] = {}
        """What else is known of every queue."""
        self.requests: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.faults: list[str | None] = []
        self.alarms: list[dict[str, str]] = []
        self.nodes = ["n"]
        self.version = "3.10.8"
        self.flags: dict[str, tuple[str, str]] = {}
        """Feature flag -> its stability and its state."""
        self.counts = True
        """Whether the numbers of messages are known; a real broker needs some seconds."""
        self.put(("vhosts", "/"), {})
        self.put(("users", "admin"), {"password": PASSWORD, "tags": "administrator"})
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        self.shutdown()
        self.server_close()

    def writes(self) -> list[str]:
        return [request for request in self.requests if not request.startswith("GET ")]

    def login(self, user: str = "admin", password: str = PASSWORD) -> dict[str, t.Any]:
        where = {"login_host": "127.0.0.1", "login_port": self.server_port, "login_protocol": "http", "startup_timeout": 0}
        return {**where, "login_user": user, "login_password": password}

    def is_user(self, name: str, password: str) -> bool:
        user = self.objects.get(("users", name))
        return bool(user and user["password_hash"] == _hashed(password))

    def put(self, path: tuple[str, ...], body: dict[str, t.Any]) -> None:
        kind = path[0]
        key = dict(zip(_NAMES.get(kind, ("vhost", "name")), path[1:], strict=False))
        if kind == "users":
            old = self.objects.get(path, {"limits": {}})["limits"]
            body = {**_user(body), "limits": {**old, **body.get("limits", {})}}
        elif kind == "vhosts":
            body = _vhost(body)
        elif kind == "queues":
            body = {"type": body["arguments"].get("x-queue-type", "classic"), **body}
            self.messages[path] = []
        elif kind == "exchanges":
            body = {"internal": False, "arguments": {}, **body}
        self.objects[path] = {**key, **body}


def _user(body: dict[str, t.Any]) -> dict[str, t.Any]:
    """Without a password and without a hash the user has none any more."""
    hashed = _hashed(body["password"]) if "password" in body else body.get("password_hash", "")
    algorithm = body.get("hashing_algorithm", "rabbit_password_hashing_sha256")
    return {"password_hash": hashed, "hashing_algorithm": algorithm, "tags": [tag for tag in body["tags"].split(",") if tag]}


def _hashed(password: str) -> str:
    return base64.b64encode(_SALT + hashlib.sha256(_SALT + password.encode()).digest()).decode()


def _vhost(body: dict[str, t.Any]) -> dict[str, t.Any]:
    """What a PUT does not name is emptied."""
    tags = [tag for tag in body.get("tags", "").split(",") if tag]
    plain = {"description": body.get("description", ""), "tags": tags, "tracing": body.get("tracing", False)}
    return {**plain, "default_queue_type": "undefined", "cluster_state": {"n": "running"}}


class _Handler(Answering):
    wbufsize = 1 << 16  # an answer in one piece
    server: FakeBroker

    def relay(self) -> None:
        target, _mark, query = self.path.partition("?")
        self.server.requests.append(f"{self.command} {target}")
        self.server.headers.append(dict(self.headers))
        body = self.body()
        fault = self.server.faults.pop(0) if self.server.faults else None
        if fault == "cut before":
            self.close_connection = True
            return
        path = tuple(urllib.parse.unquote(part) for part in target.removeprefix("/api/").split("/"))
        status, found = self.respond(path, json.loads(body) if body else None, dict(urllib.parse.parse_qsl(query)))
        if fault == "cut after":
            self.close_connection = True
        elif fault == "failing":
            self.reply(500, {"error": "internal", "reason": "mnesia"})
        elif fault == "a page":
            self.reply(200, "<html>")
        elif fault == "a redirect":
            self.reply(302, headers={"Location": "http://127.0.0.1:9/"})
        elif fault == "half":
            self.reply(200, '{"half', {"Content-Length": "100"})
            self.close_connection = True
        elif fault and fault.startswith("{"):
            self.reply(400, json.loads(fault))
        else:
            self.reply(status, found)

    do_GET = do_PUT = do_DELETE = do_POST = relay

    def respond(self, path: tuple[str, ...], body: t.Any, query: dict[str, str]) -> tuple[int, t.Any]:
        kind, word = self.headers.get("Authorization", " ").split(" ", 1)
        user, _colon, password = base64.b64decode(word).decode().partition(":")
        if kind != "Basic" or not self.server.is_user(user, password):
            return 401, {"error": "not_authorized", "reason": "Login failed"}
        if path == ("whoami",):
            return 200, {"name": user, "tags": self.server.objects["users", user]["tags"]}
        if "administrator" not in self.server.objects["users", user]["tags"]:
            return 401, {"error": "not_authorised", "reason": "Not administrator user"}
        return getattr(self, self.command.lower())(path, body, query)

    def get(self, path: tuple[str, ...], _body: t.Any, _query: dict[str, str]) -> tuple[int, t.Any]:
        broker = self.server
        if path[0] in ("overview", "nodes", "health"):
            return self.health(path[0])
        if path == ("feature-flags",):
            rows = broker.flags.items()
            return 200, [{"name": name, "stability": stable, "state": state} for name, (stable, state) in rows]
        if path[0] == "bindings":
            return 200, [row for row in broker.bindings if row["vhost"] == path[1]]
        if path[0] == "queues" and path[3:] == ("bindings",):
            return 200, [row for row in broker.bindings if (row["vhost"], row["destination"]) == path[1:3]]
        if len(path) < _KEYS[path[0]]:
            if path[0] in ("queues", "policies", "exchanges") and path[1:] and ("vhosts", path[1]) not in broker.objects:
                return 404, {"error": "Object Not Found", "reason": "Not Found"}
            return 200, [self.counted(key) for key in broker.objects if key[: len(path)] == path]
        if path not in broker.objects:
            return 404, {"error": "Object Not Found", "reason": "Not Found"}
        return 200, self.counted(path)

    def counted(self, path: tuple[str, ...]) -> dict[str, t.Any]:
        if path[0] != "queues":
            return self.server.objects[path]
        numbers = {"messages": len(self.server.messages[path])} if self.server.counts else {}
        return {**self.server.objects[path], **numbers, **self.server.stats}

    def health(self, what: str) -> tuple[int, t.Any]:
        if what == "health":
            return (503 if self.server.alarms else 200), {"status": "x", "alarms": self.server.alarms}
        if what == "nodes":
            facts = {"running": True, "mem_used": 8, "mem_limit": 7, "partitions": []}
            return 200, [{"name": name, **facts} for name in self.server.nodes]
        listener = {"node": "n", "protocol": "amqp/ssl", "ip_address": "::", "port": 5671}
        return 200, {"rabbitmq_version": self.server.version, "erlang_version": "25.2.3", "cluster_name": "c", "listeners": [listener]}

    def put(self, path: tuple[str, ...], body: t.Any, _query: dict[str, str]) -> tuple[int, t.Any]:
        broker = self.server
        if path[0] == "feature-flags":
            broker.flags[path[1]] = (broker.flags[path[1]][0], "enabled")
            return 204, None
        if path[0] in ("permissions", "topic-permissions") and not {("vhosts", path[1]), ("users", path[2])} <= broker.objects.keys():
            return 400, {"error": "bad_request", "reason": "vhost_or_user_not_found"}
        if path[0] in ("queues", "policies") and ("vhosts", path[1]) not in broker.objects:
            return 404, {"error": "Object Not Found", "reason": "Not Found"}
        if path[0] == "topic-permissions":
            path = (*path, body["exchange"])
        new = path not in broker.objects
        broker.put(path, body)
        return (201 if new else 204), None

    def delete(self, path: tuple[str, ...], _body: t.Any, query: dict[str, str]) -> tuple[int, t.Any]:
        broker = self.server
        if path[0] == "user-limits":
            return (204, None) if broker.objects["users", path[1]]["limits"].pop(path[2], None) is not None else (404, {})
        if path[0] == "bindings":
            ends = (path[1], path[3], path[5], path[6])
            named = ("vhost", "source", "destination", "properties_key")
            broker.bindings = [row for row in broker.bindings if tuple(row[name] for name in named) != ends]
            return 204, None
        if path not in broker.objects:
            return 404, {"error": "Object Not Found", "reason": "Not Found"}
        if query.get("if-empty") and broker.messages[path]:
            return 400, {"error": "bad_request", "reason": f"queue '{path[2]}' in vhost '{path[1]}' not empty"}
        del broker.objects[path]
        return 204, None

    def post(self, path: tuple[str, ...], body: t.Any, _query: dict[str, str]) -> tuple[int, t.Any]:
        if path[0] == "bindings":
            ends = {"vhost": path[1], "source": path[3], "destination": path[5]}
            kind = {"q": "queue", "e": "exchange"}[path[4]]
            self.server.bindings.append({**ends, "destination_type": kind, **body, "properties_key": body["routing_key"] or "~"})
            return 201, None
        if path[-1] == "publish":
            self.server.published.append(body)
            names = {"amq.default": body["routing_key"]} | {
                row["source"]: row["destination"] for row in self.server.bindings if row["routing_key"] == body["routing_key"]
            }
            if path[2] not in names:
                return 200, {"routed": False}
            queue = ("queues", path[1], names[path[2]])
            self.server.messages[queue].append(body["payload"])
            return 200, {"routed": True}
        found = self.server.messages[path[:-1]]
        if not found:
            return 200, []
        payload = found[0] if body["ackmode"] == "ack_requeue_true" else found.pop(0)
        return 200, [next(row for row in self.server.published if row["payload"] == payload)]
