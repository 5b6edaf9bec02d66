# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of all trainings; the same as a part of LIFE in module_utils/_edge/trainings.py."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  preflight:
    description:
      - Fail before anything is created if not all pods fit on the cluster at once, with the numbers and the nearest size that fits, as
        M(muster.ml.gang_preflight) judges it.
      - What may not be read or is not judged is no error, nor is what an autoscaler, the removal of pods or preemption could make fit.
      - A training that is there is judged only if it is started again, without its own pods, or if it gets more pods, for those.
        Without any of that nothing is asked.
      - In check mode and with O(wait=none) it is a warning. V(false) lets pods wait for room.
    type: bool
    default: true
  delete_data:
    description: Delete the claim of O(storage), too, with O(state=absent), if this module created it.
    type: bool
    default: false
  planned:
    description:
      - Result of the same task in check mode, such as in a preflight of the same run of C(ansible-playbook).
      - If it has RV(plan), the options are the same, and no workload was deleted since then, it is returned again, without looking at the
        training once more. Otherwise it is ignored.
    type: dict
"""
