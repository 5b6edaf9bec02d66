# SPDX-License-Identifier: GPL-3.0-or-later
"""An S3 store with buckets and nothing in them. It looks at the access key of a request, and not at its signature."""

import re
import typing as t

from ansible_collections.muster.ml.tests.unit.fakes.served import Answering, Served

FORBIDDEN = "<Error><Code>{}</Code><Message>as the store says.</Message></Error>"


class FakeStore(Served):
    """Listens at ``port`` until it is stopped."""

    def __init__(self) -> None:
        self.access_key = ""
        """The one that it takes; empty: every one."""
        self.buckets: list[str] = []
        self.requests: list[str] = []
        self.refusals: dict[str, tuple[int, str]] = {}
        """Method and path -> status and code of the answer."""
        store = self

        class Handler(Answering):
            def do_GET(self) -> None:
                rows = "".join(f"<Bucket><Name>{name}</Name></Bucket>" for name in store.buckets)
                self.reply(200, f"<ListAllMyBucketsResult><Buckets>{rows}</Buckets></ListAllMyBucketsResult>")

            def do_PUT(self) -> None:
                self.reply(200)

            def reply(self, status: int, body: t.Any = None, headers: t.Mapping[str, str] | None = None) -> None:
                asked = f"{self.command} {self.path}"
                store.requests.append(asked)
                found = re.search(r"Credential=([^/]*)/", self.headers.get("Authorization") or "")
                known = found is not None and store.access_key in ("", found[1])
                refusal = store.refusals.get(asked) if known else (403, "InvalidAccessKeyId")
                if refusal:
                    status, body = refusal[0], FORBIDDEN.format(refusal[1])
                elif self.command == "PUT":
                    store.buckets.append(self.path.strip("/"))
                super().reply(status, body, headers)

        super().__init__(Handler)
