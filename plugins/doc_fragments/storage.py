# SPDX-License-Identifier: GPL-3.0-or-later
"""Options for claims, and for the volume that all pods of a training share; the same as CLAIM and STORAGE in module_utils/_edge/groups.py.

The options of a claim are here twice: ansible-test reads fragments as they are written, and suboptions cannot use fragments.
"""

from __future__ import annotations


class ModuleDocFragment:
    CLAIM = r"""
options:
  storage_class_name:
    description: StorageClass of the claim to create. Defaults to the cluster's default StorageClass.
    type: str
  access_modes:
    description: Access modes of the claim to create.
    type: list
    elements: str
    default: [ReadWriteMany]
"""

    DOCUMENTATION = r"""
options:
  storage:
    description: Shared volume that all pods mount at the same path, for data and checkpoints.
    type: dict
    suboptions:
      claim_name:
        description: Name of the PersistentVolumeClaim.
        type: str
        required: true
      mount_path:
        description: Mount path of the volume.
        type: str
        default: /workspace/shared
      size:
        description: Size of the claim to create. If omitted, the claim must exist.
        type: str
      storage_class_name:
        description: StorageClass of the claim to create. Defaults to the cluster's default StorageClass.
        type: str
      access_modes:
        description: Access modes of the claim to create.
        type: list
        elements: str
        default: [ReadWriteMany]
"""
