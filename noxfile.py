# SPDX-License-Identifier: GPL-3.0-or-later
"""Sessions of nox that other collections have, too; antsibull-nox.toml says which. Everything else is make test."""

# /// script
# dependencies = ["nox>=2025.02.09", "antsibull-nox>=1.10"]
# ///

import antsibull_nox
import nox

antsibull_nox.load_antsibull_nox_toml()

if __name__ == "__main__":
    nox.main()
