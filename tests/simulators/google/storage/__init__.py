# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cloud Storage: buckets, objects, HMAC keys."""

from . import buckets, hmac, objects, policy, uploads
from .buckets import others

__all__ = ["buckets", "hmac", "objects", "others", "policy", "uploads"]
