# SPDX-License-Identifier: GPL-3.0-or-later
"""What is there before anybody asks for anything, and the modules that answer."""

from . import artifactregistry, compute, container, iam, resourcemanager, serviceusage, storage
from .operations import OPERATIONS
from .serviceusage import enable
from .state import BUCKETS, NUMBER, PROJECT, PROJECTS, Project

__all__ = ["artifactregistry", "compute", "container", "enable", "iam", "reset", "resourcemanager", "serviceusage", "storage"]


def reset() -> None:
    """The project as its owner gets it: nothing but the service that enables others."""
    OPERATIONS.clear()
    BUCKETS.clear()
    PROJECTS.clear()
    found = Project(PROJECT, NUMBER)
    PROJECTS[PROJECT] = found
    resourcemanager.start(found)
    enable(found, ["serviceusage.googleapis.com"], late=0)
    storage.others()
