# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests that others wrote, as they lie in the Go modules of their projects: the module proxy serves them, Go's cache keeps them."""

import dataclasses
import json
import re
import subprocess
from pathlib import Path

# Their servers cannot run here (no image can be pulled), and a webhook or an aggregated API without a server stands in everybody's way.
LEFT_OUT = ("APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


@dataclasses.dataclass(frozen=True)
class Project:
    """``installs``: what its documentation says to apply, a file, a folder of files, or a kustomization. ``others``: more to read."""

    module: str
    version: str
    sum: str
    installs: str
    others: tuple[str, ...] = ()

    def folder(self) -> Path:
        """Where Go keeps the module, which it downloads when it has not yet."""
        done = subprocess.run(
            ["go", "mod", "download", "-json", f"{self.module}@{self.version}"],
            capture_output=True, text=True, check=False, cwd="/",  # in no module
        )  # fmt: skip
        answer = json.loads(done.stdout or "{}")
        assert done.returncode == 0, answer.get("Error") or done.stderr
        assert answer["Sum"] == self.sum, f"{self.module}@{self.version} has the sum {answer['Sum']}"
        return Path(answer["Dir"])

    def install(self, kubectl: str) -> list[str]:
        """The documents to apply, as text."""
        path = self.folder() / self.installs
        if (path / "kustomization.yaml").exists():
            done = subprocess.run([kubectl, "kustomize", path], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            texts = [done.stdout]
        else:
            texts = [file.read_text() for file in sorted(path.glob("*.yaml") if path.is_dir() else [path])]
        found = [document for text in texts for document in re.split(r"(?m)^---.*$", text)]
        return [document for document in found if re.search(r"(?m)^kind:", document)]


PROJECTS = (
    Project(
        "github.com/prometheus-operator/prometheus-operator", "v0.85.0", "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
        "bundle.yaml", ("example",),
    ),
    Project("sigs.k8s.io/jobset", "v0.12.0", "h1:YYPuV0px8Ongq/RXmJg6V0w2UC67aiR+rCMD06vhQQQ=", "config/default", ("config", "examples")),
    Project("sigs.k8s.io/kueue", "v0.19.2", "h1:mPNzr37u0nwI7ikST5QQl5gg6EgtYOAvC9ZbTgywdN8=", "config/default", ("config", "examples")),
    Project("github.com/kedacore/keda/v2", "v2.21.0", "h1:R6z2HZvstK4RLUMxroNACzBj74xGxt3kG59b5Xc+Xps=", "config/default", ("config",)),
    Project("github.com/kubeflow/training-operator", "v1.9.4", "h1:MjYXzeaHGBmF47BlhCo6+Mb7ypHrVfO6vsys1ZHF56A=",
            "manifests/overlays/standalone", ("manifests", "examples")),
    Project("github.com/cert-manager/cert-manager", "v1.21.2", "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=", "deploy/crds"),
)  # fmt: skip


def applied(kubectl: str) -> list[str]:
    """The documents of all projects that are applied."""
    documents = [document for project in PROJECTS for document in project.install(kubectl)]
    return [document for document in documents if not re.search(rf"(?m)^kind: ({'|'.join(LEFT_OUT)})\s*$", document)]


def files() -> list[Path]:
    """Every file of the projects that may be a manifest."""
    return [
        file
        for project in PROJECTS
        for part in (project.installs, *project.others)
        for file in sorted((project.folder() / part).rglob("*.y*ml"))
    ]
