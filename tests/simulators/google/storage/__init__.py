# SPDX-License-Identifier: GPL-3.0-or-later
"""Cloud Storage: buckets, objects, HMAC keys."""

from . import buckets, hmac, objects, policy, uploads
from .buckets import others

__all__ = ["buckets", "hmac", "objects", "others", "policy", "uploads"]
