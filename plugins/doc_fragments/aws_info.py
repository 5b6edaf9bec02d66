# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options that the modules share that only read AWS."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    support: full
    details:
      - Only reads.
  diff_mode:
    support: none
  idempotent:
    support: full
  action:
    support: none
  action_group:
    description: Use C(group/muster.ml.aws) in C(module_defaults) to set defaults for this module.
    support: full
    membership:
      - muster.ml.aws
notes:
  - Tested against a simulated account, see C(docs/platforms/eks.md). Not run against AWS itself.
"""
