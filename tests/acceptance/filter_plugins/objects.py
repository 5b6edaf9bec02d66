# SPDX-License-Identifier: GPL-3.0-or-later
"""What is different between two listings of a cluster by support.objects, or between a plan and what the cluster or AWS then got."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Objects = Mapping[str, Mapping[str, Any]]

# The notes with which a run tells the next one where it need not search; docs/architecture/kubernetes-client.md has when they are written.
# And the records of trainings, which are kept however often these are made and removed.
OWN_NOTES = re.compile("/muster-(settled-|history$)")


def written_objects(before: Objects, after: Objects) -> list[str]:
    """What Muster did between two listings, such as 'created Job ml/fair'. An object that is gone counts, whoever made it.

    One whose deletion had begun before is no deletion of this time: a pod may take its whole grace period to end.
    """
    found = [f"deleted {name}" for name in before.keys() - after.keys() if not before[name].get("deleting")]
    for name in after:
        old, new = before.get(name), after[name]
        if new["writes"] and (old is None or old["uid"] != new["uid"]):
            found.append(f"created {name}")
        elif old is not None and set(new["writes"]) - set(old["writes"]):
            found.append(f"updated {name}")
    return sorted(found)


def differing_objects(before: Objects, after: Objects) -> list[str]:
    """Every object that one listing has and the other has not, that is another by the same name, or that Muster has written since.

    A note that was there before is that of something which stays, such as the local cluster itself, and every run may renew it.
    """
    words = {(True, False): "gone", (False, True): "left", (True, True): "not as before"}
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    renewed = {name for name in before.keys() & after.keys() if name.startswith("ConfigMap ") and OWN_NOTES.search(name)}
    return sorted(f"{words[name in before, name in after]}: {name}" for name in names if name not in renewed)


def plan_differences(planned: Iterable[Mapping[str, str]], written: Iterable[str]) -> list[str]:
    """What was planned and not done, and what was done and not planned; nothing where the plan was the truth.

    Muster's own notes are left out: whether one is written is known only when everything else is.
    """
    words = (f"{o['action']} {o['kind']} {o.get('namespace') or ''}/{o['name']}".replace(" /", " ") for o in planned)
    return differences(
        words,
        (
            f"{action} {kind.split('.')[0]} {name}"
            for action, kind, name in map(str.split, written)
            if kind != "ConfigMap" or not OWN_NOTES.search(name)
        ),
    )


def differences(planned: Iterable[str], done: Iterable[str]) -> list[str]:
    """Two lists as they differ, in which one word may stand several times."""
    plan, fact = Counter(planned), Counter(done)
    return sorted([f"only planned: {word}" for word in plan - fact] + [f"only done: {word}" for word in fact - plan])


# What modules of amazon.aws send for each object that they plan: once, and besides as often as the object needs.
OF_AMAZON: dict[str, tuple[str, tuple[str, ...]]] = {
    "ec2_vpc_net": ("ec2:CreateVpc", ("ec2:ModifyVpcAttribute",)),
    "ec2_vpc_igw": ("ec2:CreateInternetGateway", ("ec2:AttachInternetGateway",)),
    "ec2_vpc_subnet": ("ec2:CreateSubnet", ()),
    "ec2_eip": ("ec2:AllocateAddress", ()),
    "ec2_vpc_nat_gateway": ("ec2:CreateNatGateway", ()),
    "ec2_vpc_route_table": ("ec2:CreateRouteTable", ("ec2:CreateRoute", "ec2:AssociateRouteTable")),
    # A new group may send anything, and that of a new VPC may besides hear from itself.
    "ec2_security_group": (
        "ec2:RevokeSecurityGroupEgress",
        ("ec2:CreateSecurityGroup", "ec2:AuthorizeSecurityGroupIngress", "ec2:CreateTags", "ec2:RevokeSecurityGroupIngress"),
    ),
    "iam_role": ("iam:CreateRole", ("iam:AttachRolePolicy", "iam:PutRolePolicy")),
}


def cloud_differences(planned: Iterable[Mapping[str, Any]], sent: Iterable[Mapping[str, Any]]) -> list[str]:
    """Requests that the plan has and the account did not get, and those that it got unplanned."""
    desired: list[str] = []
    besides: set[str] = set()
    for change in planned:
        if change["module"].startswith("amazon.aws."):
            once, often = OF_AMAZON[change["module"].rpartition(".")[2]]
            desired.append(once)
            besides.update(often)
        desired += [operation(action) for action in change["actions"]]
    return differences(desired, (name for row in sent if (name := f"{row['service']}:{row['operation']}") not in besides))


def operation(action: str) -> str:
    """AWS's name of a request that a module announces, such as 'eks:create_addon (install)'."""
    service, _colon, name = action.split(" ")[0].partition(":")
    return f"{service}:{''.join(word.title() for word in name.split('_')).replace('OpenId', 'OpenID')}"


def google_differences(planned: Iterable[Mapping[str, Any]], sent: Iterable[str]) -> list[str]:
    """The same for Google, whose requests go by the ids of their methods, such as container.projects.locations.clusters.create.

    What a module does in Kubernetes besides is among the objects.
    """
    words = (action.split(" ")[0].replace(":", ".") for change in planned for action in change["actions"])
    return differences((word for word in words if not word.startswith("kubernetes.")), sent)


# What Google makes by itself: services stay enabled, with accounts of Google's own and their roles; a project's pool of identities comes
# with its first cluster, and stays; what is deleted is kept for a while.
OF_GOOGLE = re.compile(r"service-\d+@|\d+-compute@developer\.gserviceaccount\.com")
KINDS_OF_GOOGLE = re.compile(r"services$|identityPools$|deleted")


def holdings_of_people(holdings: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """What a project holds, without what Google makes by itself."""
    kept = {
        kind: {name: body for name, body in rows.items() if not OF_GOOGLE.search(name)}
        for kind, rows in holdings.items()
        if not KINDS_OF_GOOGLE.match(kind)
    }
    return {kind: rows for kind, rows in kept.items() if rows}


class FilterModule:
    """Filters of what is on a cluster or in an account."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Every filter by its name."""
        return {
            "cloud_differences": cloud_differences,
            "differing_objects": differing_objects,
            "google_differences": google_differences,
            "holdings_of_people": holdings_of_people,
            "plan_differences": plan_differences,
            "written_objects": written_objects,
        }
