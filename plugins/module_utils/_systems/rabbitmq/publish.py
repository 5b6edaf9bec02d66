# SPDX-License-Identifier: GPL-3.0-or-later
"""One queue behind a topic exchange: bound, published to, counted.

The management API publishes as mandatory and waits for the broker's confirmation (rabbit_mgmt_wm_exchange_publish of 3.10 and 4.0), so
``routed`` means that a queue has the message.
"""

from __future__ import annotations

import base64
import dataclasses
import typing as t

from ..._core.errors import Failed, NotFound, ServerError, Unreachable
from .api import ManagementApi

STUDIOML = "StudioML.topic"
"""The exchange of StudioML."""
EXCHANGE_OF_STUDIOML: t.Final = {"type": "topic", "durable": True, "auto_delete": True, "arguments": {}}
"""The exchange as StudioML's client and runner declare it. A broker refuses a second declaration that differs."""
_COUNTS = ("messages", "messages_unacknowledged", "consumers")


@dataclasses.dataclass(frozen=True)
class TopicQueue:
    """A queue that gets messages by its routing key. ``bind``: whether exchange and binding may be created."""

    api: ManagementApi
    vhost: str
    queue: str
    exchange: str
    routing_key: str
    bind: bool

    def prepare(self, *, check: bool) -> list[str]:
        """Create exchange and binding if they are missing and may be created. Return the actions; in check mode, those a run would take."""
        if self.api.get("queues", self.vhost, self.queue, columns="name") is None:
            raise NotFound(
                f"The broker at {self.api.address} has no queue {self.queue} in vhost {self.vhost}.",
                "Create it first, with muster.ml.rabbitmq_definitions. Runners take experiments from queues whose name they match.",
            )
        rows = self.api.get("queues", self.vhost, self.queue, "bindings") or []
        if not self.bind or any(row["source"] == self.exchange and row["routing_key"] == self.routing_key for row in rows):
            return []
        steps = [] if self.api.get("exchanges", self.vhost, self.exchange) else [f"create exchange {self.exchange}"]
        if not check:
            if steps:
                self.api.call("PUT", ("exchanges", self.vhost, self.exchange), dict(EXCHANGE_OF_STUDIOML))
            where = ("bindings", self.vhost, "e", self.exchange, "q", self.queue)
            self.api.call("POST", where, {"routing_key": self.routing_key, "arguments": {}})
        return [*steps, f"bind queue {self.queue} to {self.exchange}"]

    def publish(self, body: bytes, name: str) -> None:
        """Publish one persistent message. ``may_be_published`` in an error: the broker may have the message."""
        message: dict[str, t.Any] = {
            "properties": {"delivery_mode": 2, "content_type": "application/json", "message_id": name},
            "routing_key": self.routing_key, "payload": base64.b64encode(body).decode(), "payload_encoding": "base64",
        }  # fmt: skip
        try:
            answer = self.api.call("POST", ("exchanges", self.vhost, self.exchange, "publish"), message)
        except (Unreachable, ServerError) as error:
            # Without a response, it is certain that the message was not published only if no connection was established.
            error.details["may_be_published"] = getattr(error, "sent", True)
            raise
        if not answer["routed"]:
            raise Failed(
                f"No queue is bound to {self.exchange} in vhost {self.vhost} with routing key {self.routing_key}: no queue got {name}.",
                f"Bind queue {self.queue}: bind: true does so, as StudioML's client does.",
            )

    def take(self, name: str) -> str | None:
        """Take the message NAME out of the queue if it is the first one. Return the reason why it was not taken; None if it was.

        If a consumer was faster and another message was taken instead, that one is published again at once.
        """
        first = self._get("ack_requeue_true")
        if first is None:
            return "no message waits"
        if _name_of(first) != name:
            return f"{_name_of(first)} waits before it"
        taken = self._get("ack_requeue_false")
        if taken is None or _name_of(taken) == name:
            return None if taken else "a consumer has it"
        again = {key: taken[key] for key in ("properties", "payload", "payload_encoding")}
        self.api.call("POST", ("exchanges", self.vhost, "amq.default", "publish"), {**again, "routing_key": self.queue})
        return "a consumer has it"

    def _get(self, mode: str) -> dict[str, t.Any] | None:
        order = {"count": 1, "ackmode": mode, "encoding": "base64"}
        found = self.api.call("POST", ("queues", self.vhost, self.queue, "get"), order)
        return dict(found[0]) if found else None

    def counts(self) -> tuple[int | None, int | None, int | None, int]:
        """The numbers of messages, unacknowledged messages, consumers, and redeliveries. None: not known yet."""
        found = self.api.get("queues", self.vhost, self.queue)
        if found is None:
            raise Failed(f"Queue {self.queue} in vhost {self.vhost} was deleted, with all that waited in it.")
        messages, held, consumers = (found.get(key) for key in _COUNTS)
        return messages, held, consumers, int((found.get("message_stats") or {}).get("redeliver", 0))


def _name_of(found: dict[str, t.Any]) -> str:
    return str(found["properties"].get("message_id") or "a message without a name")
