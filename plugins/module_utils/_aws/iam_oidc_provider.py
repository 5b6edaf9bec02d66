# SPDX-License-Identifier: GPL-3.0-or-later
"""OpenID Connect providers of IAM as values: how IAM knows the service accounts of a cluster (IRSA)."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from .._cloud.plan import Body, Comparison, Plan, creation_plan, without_none
from .._core.errors import InvalidInput
from .api import Api
from .plan import OIDC_TAGS, Step, tag_dict, tag_list
from .resource import Immediate


@dataclasses.dataclass(frozen=True)
class IamOidcProvider(Immediate):
    LABEL = "IAM OpenID Connect provider {url}"
    IDENTITY = ("arn", "_created")
    TAGGING = OIDC_TAGS

    url: str
    client_ids: list[str] | None = None
    thumbprints: list[str] | None = None

    @property
    def issuer(self) -> str:
        """The address as ARNs and trust policies contain it."""
        return self.url.removeprefix("https://").rstrip("/")

    def read(self, api: Api) -> Body | None:
        rows = api.pages(self.label, "iam", "list_open_id_connect_providers", "OpenIDConnectProviderList")
        arn = next((row["Arn"] for row in rows if row["Arn"].endswith(f":oidc-provider/{self.issuer}")), None)
        found = api.read(self.label, "iam", "get_open_id_connect_provider", OpenIDConnectProviderArn=arn) if arn else None
        return {"arn": arn, **provider_view(found)} if found else None

    def plan(self, live: Body | None) -> Plan:
        if not re.fullmatch(r"https://[^\s?#]+", self.url):
            raise InvalidInput(f"url {self.url!r} is no issuer", hint="Give the cluster's identity.oidc.issuer, https://...")
        if live is None:
            return creation_plan(Step("create_open_id_connect_provider", self._create_request(), "create", "iam"))
        named = {"OpenIDConnectProviderArn": live["arn"]}
        compare = Comparison()
        steps = self.tag_steps(compare, live, **named)
        return compare.plan([*steps, *self._clients(compare, live, named), *self._thumbprints(compare, live, named)])

    def deletions(self, live: Body) -> list[Step]:
        return [Step("delete_open_id_connect_provider", {"OpenIDConnectProviderArn": live["arn"]}, "delete", "iam")]

    def _create_request(self) -> Body:
        return without_none(
            {
                "Url": f"https://{self.issuer}",
                "ClientIDList": self.client_ids,
                "ThumbprintList": self.thumbprints,
                "Tags": tag_list(self.tags) if self.tags else None,
            }
        )

    def _clients(self, compare: Comparison, live: Body, named: Body) -> t.Iterator[Step]:
        desired = None if self.client_ids is None else sorted({*self.client_ids})
        if compare.differs("client_ids", live["client_ids"], desired):
            for client in sorted(set(desired or ()) - set(live["client_ids"])):
                operation = "add_client_id_to_open_id_connect_provider"
                yield Step(operation, {**named, "ClientID": client}, f"client {client}", "iam")
            for client in sorted(set(live["client_ids"]) - set(desired or ())):
                operation = "remove_client_id_from_open_id_connect_provider"
                yield Step(operation, {**named, "ClientID": client}, f"without client {client}", "iam")

    def _thumbprints(self, compare: Comparison, live: Body, named: Body) -> t.Iterator[Step]:
        desired = None if self.thumbprints is None else sorted({*self.thumbprints})
        if compare.differs("thumbprints", live["thumbprints"], desired):
            request = {**named, "ThumbprintList": desired}
            yield Step("update_open_id_connect_provider_thumbprint", request, "thumbprints", "iam")


def provider_view(found: Body) -> Body:
    return {
        "url": found["Url"],
        "client_ids": sorted(found.get("ClientIDList", [])),
        "thumbprints": sorted(found.get("ThumbprintList", [])),
        "tags": tag_dict(found.get("Tags")),
        "_created": found.get("CreateDate"),
    }
