# SPDX-License-Identifier: GPL-3.0-or-later
"""Which claims are checked, and what the report of a claim says of a failure."""

from collections.abc import Callable, Mapping
from typing import Any


def failure_text(result: Mapping[str, Any], task: str) -> str:
    """The task that failed and why; where it ran a playbook, the errors of that playbook, too."""
    errors = [line for line in result.get("stdout_lines") or [] if line.startswith("[ERROR]")]
    return " ".join([f"{task}: {result.get('msg') or dict(result)}", *errors])


Claim = dict[str, Any]


def why_unchecked(claim: Claim, *, faults: bool, local: bool, given: list[str]) -> str:
    """Why a claim cannot be checked here; empty if it can. GIVEN: the names of the variables that are set."""
    if "given" in claim and claim["given"] not in given:
        return f"needs {claim['given']}"
    if claim.get("fault") and not faults:
        return "breaks things, which only acceptance_faults=true allows"
    return "needs the local cluster" if claim.get("local") and not local else ""


def claims_to_check(claims: list[Claim], names: list[str], *, faults: bool, local: bool, given: list[str]) -> list[Claim]:
    """The claims of these names, all if none is named, that can be checked here."""
    asked = [claim for claim in claims if not names or claim["name"] in names]
    return [claim for claim in asked if not why_unchecked(claim, faults=faults, local=local, given=given)]


def claim_problems(pages: Mapping[str, Any], names: list[str], *, faults: bool, local: bool, given: list[str]) -> list[str]:
    """What would not be judged although it was asked for: a name, or a whole system."""
    known = {claim["name"]: claim for page in pages.values() for claim in page["claims"]}
    wrong = [f"Claim {name} does not exist; there is {', '.join(known)}." for name in names if name not in known]
    whys = {name: why_unchecked(known[name], faults=faults, local=local, given=given) for name in names if name in known}
    wrong += [f"Claim {name} {why}." for name, why in whys.items() if why]
    found = {system: claims_to_check(page["claims"], names, faults=faults, local=local, given=given) for system, page in pages.items()}
    return wrong + [f"No claim of {system} can be checked." for system, claims in found.items() if not claims]


class FilterModule:
    """Filters of the report."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Every filter by its name."""
        return {"claim_problems": claim_problems, "claims_to_check": claims_to_check, "failure_text": failure_text}
