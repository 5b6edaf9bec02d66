# SPDX-License-Identifier: GPL-3.0-or-later
"""What the documentation is generated from and checked against: the pages, programs and scripts that show and judge it."""
