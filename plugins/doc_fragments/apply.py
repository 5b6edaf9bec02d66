# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of all modules that apply objects; the same as STATE and APPLY in module_utils/_edge/options.py."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  state:
    description:
      - State of the objects. V(present) creates and updates them, V(absent) deletes them.
    type: str
    choices: [present, absent]
    default: present
  adopt:
    description:
      - Take over existing objects that Muster did not create.
      - Otherwise such an object is used without becoming Muster's if it equals the desired one. If it differs, the task fails before
        anything is changed.
      - Fields that the maker of an adopted object set, or a tool such as C(kubectl), Helm or C(kubernetes.core), and that are not desired
        are removed. The reason of the change names the fields of others, which stay.
    type: bool
    default: false
  force_conflicts:
    description:
      - Take over fields of another field manager, and objects of another owner, instead of failing.
    type: bool
    default: false
  recreate:
    description:
      - Delete and recreate an object if the API server refuses a change that a new object could have, such as the template of a Job. A
        dry run tells. The pods and claims of a StatefulSet stay. Objects that hold data are never recreated.
    type: bool
    default: false
"""
