# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the generated parts of the documentation again: docs/reference, the picture of the layers, and the job templates for AWX."""

from __future__ import annotations

import sys

from support.docs import awx, pages, picture
from support.docs.reference import reference
from support.places import ROOT

ARCHITECTURE = ROOT / "docs" / "architecture.md"


def main() -> int:
    for name, text in {**reference(), awx.FILE: awx.templates()}.items():
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_text(text, encoding="utf-8")
    text = ARCHITECTURE.read_text(encoding="utf-8")
    ARCHITECTURE.write_text(pages.replace_between(text, picture.NAME, picture.picture(picture.lines())), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
