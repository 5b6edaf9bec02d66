# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the generated parts of the documentation anew: docs/reference, the picture of the layers, the rights, variables, and awx."""

import sys

from support.docs import awx, landing, pages, picture, rights, settings
from support.docs.reference import reference
from support.places import ROOT

ARCHITECTURE = ROOT / "docs" / "architecture.md"


def main() -> int:
    for name, text in {**reference(), awx.FILE: awx.templates(), landing.README: landing.picture("elastic")}.items():
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_text(text, encoding="utf-8")
    parts = {ARCHITECTURE: (picture.NAME, picture.picture(picture.lines())), rights.PAGE: (rights.NAME, rights.table())}
    parts |= {page: (settings.NAME, table) for page, table in settings.readmes().items()}
    for page, (name, part) in parts.items():
        page.write_text(pages.replace_between(page.read_text(encoding="utf-8"), name, part), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
