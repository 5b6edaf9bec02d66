# SPDX-License-Identifier: GPL-3.0-or-later
"""JobSet's controller is installed as released."""

from support.released import manifest

from ansible_collections.muster.ml.plugins.module_utils._systems.jobset.jobset import JobSetController, manifests

RELEASED = manifest("jobset", {"jobsets.jobset.x-k8s.io": "JobSet"})
CONTROLLER = JobSetController(manifest="m", manifest_sha256="s", namespace="jobset-system", image="muster.local/jobset:0.12.0")


def test_the_controller_is_kept_while_there_are_jobsets() -> None:
    (deployment,) = [one for one in manifests(CONTROLLER, RELEASED) if one["kind"] == "Deployment"]
    assert deployment["metadata"]["name"] == "jobset-controller-manager"
    assert deployment["metadata"]["annotations"] == {"muster.ml/serves": "instances:jobsets.jobset.x-k8s.io"}
