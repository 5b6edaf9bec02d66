# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation as a site: the pages of this repository, and those that antsibull-docs writes for each module, plugin and role.

Nothing of it is committed. Sphinx stops at a link that leads nowhere. ``python -m support.docs.site [--without-plugins]``.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from support.docs import landing, pages
from support.docs.pages import Page
from support.places import BIN, ROOT

SITE = ROOT / "build" / "site"
SOURCE, HTML = SITE / "source", SITE / "html"
FORGE = ".github/"
INDEX = "docs/README.md"
PLUGINS = "collections/index"
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:)([^)#\s]*)(#[^)\s]*)?\)")
PART = re.compile(r"^(?:\*\*(.+?)\*\*|\| ([^|]+?) \| +\|)", re.MULTILINE)
STYLE = """\
table.docutils { display: block; overflow-x: auto; }
code, .sig { overflow-wrap: anywhere; }
"""
SETTINGS = {
    "project": "Muster",
    "html_title": "Muster",
    "html_theme": "furo",
    "html_static_path": "_static",
    "html_css_files": "narrow.css",
    "html_copy_source": "0",
    "html_show_copyright": "0",
    "root_doc": "README",
    "extensions": "myst_parser,sphinx_antsibull_ext",
    "myst_heading_anchors": "4",
    # Pages of other collections, which their own sites have; a language of fences that has no lexer.
    "suppress_warnings": "ref.ref,misc.highlighting_failure",
}


def build(*, plugins: bool = True) -> Path:
    """Write the site; its folder."""
    shutil.rmtree(SITE, ignore_errors=True)
    (SOURCE / "_static").mkdir(parents=True)
    (SOURCE / "_static" / "narrow.css").write_text(STYLE, encoding="utf-8")
    if plugins:
        write_plugins()
    write_pages([page for page in pages.pages() if not page.name.startswith(FORGE)], [PLUGINS] if plugins else [])
    settings = [word for name, value in SETTINGS.items() for word in ("-D", f"{name}={value}")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT / "tests")]))}
    run: list[str | Path] = [sys.executable, "-m", "sphinx", "-q", "-C", "-W", "--keep-going", "-b", "html", *settings, SOURCE, HTML]
    subprocess.run(run, check=True, env=environment)
    # Where servers look first.
    shutil.copy2(HTML / "README.html", HTML / "index.html")
    return HTML


def write_plugins() -> None:
    """Pages of antsibull-docs for the collection that this clone is linked as."""
    target = SOURCE / "collections"
    target.mkdir()
    command: list[str | Path] = [
        BIN / "antsibull-docs",
        "collection",
        "--use-current",
        "--squash-hierarchy",
        "--fail-on-error",
        "--dest-dir",
        target,
        "muster.ml",
    ]
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build" / "collections"), "PATH": f"{BIN}:{os.environ['PATH']}"}
    subprocess.run(command, check=True, env=environment)


def write_pages(found: list[Page], besides: list[str]) -> None:
    """Copy pages and pictures to where they are in the repository, so that links between them hold, and add the contents."""
    here = {page.name for page in found}
    for page in found:
        text = LINK.sub(partial(rewritten, page=page, here=here), page.text)
        if page.name == "README.md":
            text += "".join(contents(found, besides))
        path = SOURCE / page.name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.parent.name == "systems" and path.stem in landing.SYSTEMS:
            title, about, rest = text.split("\n\n", 3)[1:]
            text = f"{title}\n\n{about}\n\n![What it creates in its namespace]({path.stem}.svg)\n\n{rest}"
            path.with_suffix(".svg").write_text(landing.picture(path.stem), encoding="utf-8")
        path.write_text(text, encoding="utf-8")
    for picture in ROOT.glob("docs/**/*.svg"):
        path = SOURCE / picture.relative_to(ROOT)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(picture, path)


def rewritten(link: re.Match[str], page: Page, here: set[str]) -> str:
    """A link as it is, or the path in the repository where that is no page of the site."""
    picture, text, target, _anchor = link.groups()
    if picture or not target:
        return link[0]
    name = os.path.relpath((ROOT / page.name).parent / target, ROOT)
    return link[0] if name in here else f"{text} (`{name}`)" if f"`{name}`" != text else text


def contents(found: list[Page], besides: list[str]) -> Iterator[str]:
    """Tables of contents, one for each part of docs/README.md; what is not there comes by its folder."""
    (index,) = (page for page in found if page.name == INDEX)
    listed: set[str] = {"README.md"}
    yield toctree("Start", ["docs/README", "docs/glossary"])
    listed |= {INDEX, "docs/glossary.md"}
    _before, *parts = PART.split(index.text)
    for bold, head, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        names = [os.path.normpath(f"docs/{link[3]}") for link in LINK.finditer(text)]
        entries = list(dict.fromkeys(name for name in names if name.endswith(".md") and name not in listed))
        listed |= {*entries}
        yield toctree(bold or head, [*[name.removesuffix(".md") for name in entries], *(besides if "reference" in (head or "") else [])])
    rest = sorted({page.name for page in found} - listed)
    roles = [name for name in rest if name.startswith("roles/")]
    yield toctree("roles", [name.removesuffix(".md") for name in roles])
    yield toctree("project", [name.removesuffix(".md") for name in rest if name not in roles])


def toctree(caption: str, names: list[str]) -> str:
    if not names:
        return ""
    entries = "\n".join(f"/{name}" for name in names)
    return f"\n```{{toctree}}\n:hidden:\n:maxdepth: 1\n:caption: {caption.capitalize()}\n\n{entries}\n```\n"


if __name__ == "__main__":
    sys.stdout.write(f"{build(plugins='--without-plugins' not in sys.argv[1:])}/README.html\n")
