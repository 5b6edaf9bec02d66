# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of everything that applies objects; twin of STATE and APPLY in module_utils/_edge/options.py."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  state:
    description:
      - V(present) creates and updates, V(absent) deletes.
    type: str
    choices: [present, absent]
    default: present
  adopt:
    description:
      - Make objects Muster's that exist already and that somebody else made.
      - Without it, an object that exists and says all that is wanted is used as it is and stays somebody else's. One that differs is
        refused before anything is changed.
      - Fields that C(kubectl apply) set on an adopted object and that are not wanted are removed.
    type: bool
    default: false
  force_conflicts:
    description:
      - Take over fields that another field manager has set, and objects that belong to another owner, instead of failing.
    type: bool
    default: false
  recreate:
    description:
      - Delete and create again an object whose change the API server refuses because the field is immutable, such as the template of
        a Job. The pods and claims of a StatefulSet stay. Objects that hold data are never recreated.
    type: bool
    default: false
"""
