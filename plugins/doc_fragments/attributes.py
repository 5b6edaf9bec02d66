# SPDX-License-Identifier: GPL-3.0-or-later
"""The support of each module for check mode, diff and platforms."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying target.
  diff_mode:
    description: Will return details on what has changed (or possibly needs changing in C(check_mode)), when in diff mode.
  idempotent:
    description: When run twice in a row outside check mode, with the same arguments, the second invocation indicates no change.
  action:
    description: Has a plugin of the same name that runs on the controller where the task's connection is C(local).
"""

    KUBE = r"""
options: {}
attributes:
  check_mode:
    support: full
    details:
      - The API server itself says what a change would do (server-side dry run). An object whose namespace or kind does not exist yet is
        reported as one that would be created.
  diff_mode:
    support: full
    details:
      - Shows the fields that would change. Values of Secrets appear only as keyed fingerprints, which differ from run to run.
  idempotent:
    support: full
    details:
      - A second run sends no write request.
  action_group:
    description: Use C(group/muster.ml.all) in C(module_defaults) to set defaults for this module.
    support: full
    membership:
      - muster.ml.all
  action:
    support: full
"""

    KUBE_INFO = r"""
options: {}
attributes:
  check_mode:
    support: full
    details:
      - This module only reads.
  diff_mode:
    support: N/A
    details:
      - This module only reads.
  idempotent:
    support: full
    details:
      - This module only reads.
  action_group:
    description: Use C(group/muster.ml.all) in C(module_defaults) to set defaults for this module.
    support: full
    membership:
      - muster.ml.all
  action:
    support: full
"""

    # Before SUPPORT of aws or gcp, some of whose attributes it replaces.
    INFO = r"""
options: {}
attributes:
  check_mode:
    details:
      - This module only reads.
  diff_mode:
    support: N/A
    details:
      - This module only reads.
"""

    # Modules that work on a host and need no cluster.
    HOST = r"""
options: {}
attributes:
  check_mode:
    support: full
    description: Can run in C(check_mode) and return changed status prediction without modifying target.
    details:
      - Only reads, and reports what would change.
  diff_mode:
    support: full
    description: Will return details on what has changed (or possibly needs changing in C(check_mode)), when in diff mode.
    details:
      - Names each thing that changes.
  idempotent:
    support: full
    description: When run twice in a row outside check mode, with the same arguments, the second invocation indicates no change.
    details:
      - A second run changes nothing.
  action:
    description: Has a plugin of the same name that runs on the controller where the task's connection is C(local).
    support: full
"""
