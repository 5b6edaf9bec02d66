# SPDX-License-Identifier: GPL-3.0-or-later
"""Google Cloud on this machine: a project that is as strict as Google's, for its own clients. Loopback only."""
