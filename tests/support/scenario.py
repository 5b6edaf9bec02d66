# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the playbooks of a molecule scenario by ansible-playbook itself, with the inventory and settings that molecule would write.

molecule (scripts/molecule) is the developer's front end. It costs three seconds of processor time a command, and a scenario has six.
"""

import configparser
import os
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

import yaml

from support.places import BIN, ROOT

SCENARIOS = ROOT / "extensions" / "molecule"
CONFIG = {
    "defaults": {"interpreter_python": "auto_silent", "internal_poll_interval": "0.01", "nocows": "1", "retry_files_enabled": "False"}
}
LOCAL = {"ansible_connection": "local"}
"""The connection of the checks, which bring their clusters up themselves: the one of molecule reads the kubeconfig again for each task."""
# A step and the playbook and options that molecule runs for it.
STEPS = {
    "prepare": ("prepare",),
    "check": ("converge", "--check"),
    "converge": ("converge",),
    "idempotence": ("converge",),
    "verify": ("verify",),
    "cleanup": ("cleanup",),
}
Body = dict[str, Any]


def merged(base: Any, more: Any) -> Any:
    """Two settings as one: dictionaries key by key, everything else from ``more``."""
    if isinstance(base, dict) and isinstance(more, dict):
        return {**base, **{key: merged(base.get(key), value) for key, value in more.items()}}
    return more


@dataclass(frozen=True)
class Scenario:
    """One folder of extensions/molecule. What its steps keep between them is in ``state``."""

    name: str
    state: Path

    @property
    def folder(self) -> Path:
        return SCENARIOS / self.name

    @property
    def extra_variables(self) -> Path:
        """Variables of all steps, as extra variables."""
        return self.state / "variables.json"

    def has(self, step: str) -> bool:
        return (self.folder / f"{STEPS[step][0]}.yml").exists()

    def command(self, step: str) -> tuple[str | Path, ...]:
        """Words of ansible-playbook for a step."""
        playbook, *options = STEPS[step]
        if self.extra_variables.is_file():
            options += ["--extra-vars", f"@{self.extra_variables}"]
        return (BIN / "ansible-playbook", "--inventory", self.state / "inventory.yml", *options, self.folder / f"{playbook}.yml")

    def environment(self) -> dict[str, str]:
        """The variables of molecule that playbooks read."""
        return {
            "ANSIBLE_CONFIG": str(self.state / "ansible.cfg"),
            "MOLECULE_EPHEMERAL_DIRECTORY": str(self.state),
            "MOLECULE_INVENTORY_FILE": str(self.state / "inventory.yml"),
            "MOLECULE_PROJECT_DIRECTORY": str(ROOT),
            "MOLECULE_SCENARIO_DIRECTORY": str(self.folder),
            "MOLECULE_SCENARIO_NAME": self.name,
        }

    def settings(self) -> Body:
        """The file that all scenarios share and the scenario's own."""
        shared, own = (self._read(path) for path in (SCENARIOS / "config.yml", self.folder / "molecule.yml"))
        return dict(merged(shared, own))

    def write(self) -> None:
        """Write inventory.yml and ansible.cfg."""
        provisioner = self.settings()["provisioner"]
        given = provisioner["inventory"]
        inventory = merged({"all": {"children": {"ungrouped": {"hosts": {"localhost": LOCAL}}}}}, given.get("hosts", {}))
        for group, values in given.get("group_vars", {}).items():
            place = inventory["all"] if group == "all" else inventory["all"]["children"][group]
            place["vars"] = merged(place.get("vars", {}), values)
        self.state.mkdir(parents=True, exist_ok=True)
        (self.state / "inventory.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")
        config = configparser.RawConfigParser()
        config.read_dict(merged(CONFIG, provisioner["config_options"]))
        with (self.state / "ansible.cfg").open("w", encoding="utf-8") as file:
            config.write(file)

    def _read(self, path: Path) -> Body:
        text = Template(path.read_text(encoding="utf-8")).safe_substitute({**os.environ, **self.environment()})
        found: Body = yaml.safe_load(text)
        return found
