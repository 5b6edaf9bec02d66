# SPDX-License-Identifier: GPL-3.0-or-later
"""The site of make docs in a headless browser: each page on a narrow screen, the links, the search."""

import functools
import http.server
import threading
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page
from support.docs.landing import SYSTEMS
from support.docs.site import HTML

NARROW = {"width": 360, "height": 740}
FILES = sorted(path for path in HTML.rglob("*.html") if "_static" not in path.parts)
assert FILES, "make docs builds the site first"
TOO_WIDE = """() => [...document.querySelectorAll('body *')]
    .filter(e => e.getBoundingClientRect().right > innerWidth + 1 && getComputedStyle(e).position !== 'fixed')
    .slice(0, 3).map(e => e.outerHTML.slice(0, 120))"""
LINKS = "() => [...document.querySelectorAll('a[href]')].map(a => a.href)"
IDS = "() => [...document.querySelectorAll('[id]')].map(e => e.id)"


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        """Answer also for the icon, which browsers ask for and the site does not have."""
        if self.path == "/favicon.ico":
            self.send_response(204)
            self.end_headers()
        else:
            super().do_GET()

    def log_message(self, *_words: object) -> None:
        """Print nothing for a request."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The site on a port of this machine; a search reads its index by requests."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(HTML)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def seen(browser: Browser, address: str) -> dict[str, dict[str, list[str]]]:
    """What the browser tells of each page, by its path."""
    page = browser.new_page(viewport=NARROW)
    found = {str(path.relative_to(HTML)): _look(page, f"{address}/{path.relative_to(HTML)}") for path in FILES}
    page.close()
    return found


def _look(page: Page, url: str) -> dict[str, list[str]]:
    errors: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error":
            errors.append(message.text)

    page.on("console", note)
    page.goto(url)
    wide = page.evaluate("() => document.documentElement.scrollWidth > innerWidth")
    found = {"links": page.evaluate(LINKS), "ids": page.evaluate(IDS), "wide": page.evaluate(TOO_WIDE) if wide else [], "errors": errors}
    page.remove_listener("console", note)
    return found


def test_there_are_pages(seen: dict[str, dict[str, list[str]]]) -> None:
    assert {"index.html", "search.html", "docs/glossary.html"} <= seen.keys()
    assert {"collections/apply_module.html", "collections/elastic_role.html"} <= seen.keys()
    assert len(seen) > 100


def test_no_page_is_wider_than_a_phone(seen: dict[str, dict[str, list[str]]]) -> None:
    assert {name: page["wide"] for name, page in seen.items() if page["wide"]} == {}


def test_no_page_has_an_error(seen: dict[str, dict[str, list[str]]]) -> None:
    assert {name: page["errors"] for name, page in seen.items() if page["errors"]} == {}


def test_every_link_within_the_site_leads_somewhere(seen: dict[str, dict[str, list[str]]], address: str) -> None:
    dead = []
    for name, page in seen.items():
        for link in page["links"]:
            url = urlsplit(link)
            target = unquote(url.path).lstrip("/") or "index.html"
            if not link.startswith(address) or not target.endswith(".html"):
                continue
            if target not in seen or (url.fragment and unquote(url.fragment) not in seen[target]["ids"]):
                dead.append(f"{name}: {target}#{url.fragment}")
    assert dead == []


@pytest.mark.parametrize(
    ("words", "page"),
    [("rendezvous", "docs/glossary.html"), ("PodDisruptionBudget", ""), ("externally-managed", "docs/operating/installing.html")],
)
def test_a_search_finds_the_page(browser: Browser, address: str, words: str, page: str) -> None:
    view = browser.new_page()
    view.goto(f"{address}/search.html?q={words}")
    view.wait_for_selector("ul.search li a")
    found = [str(link).partition("?")[0] for link in view.eval_on_selector_all("ul.search li a", "links => links.map(a => a.href)")]
    assert any(link.startswith(f"{address}/{page}") for link in found)


@pytest.mark.parametrize("name", ["index.html", *(f"docs/systems/{system}.html" for system in SYSTEMS)])
def test_a_picture_is_shown(browser: Browser, address: str, name: str) -> None:
    view = browser.new_page()
    view.goto(f"{address}/{name}")
    assert view.evaluate("() => [...document.images].every(i => i.complete && i.naturalWidth > 0) && document.images.length > 0")
