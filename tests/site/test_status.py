# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of status.yml in a headless browser: as narrow as a phone, light and dark, and what another one wrote is only text."""

from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, ConsoleMessage

from ansible_collections.muster.ml.tests.unit import test_status

COLOURS = "() => [document.body, document.querySelector('path:not(.fault)')].map(e => getComputedStyle(e)).map(s => [s.color, s.stroke])"
SIZES = "() => [...document.querySelectorAll('svg path:not(.fault)')].map(e => e.getBoundingClientRect().width / innerWidth)"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_as_it_should_be(browser: Browser, tmp_path: Path, scheme: Literal["light", "dark"]) -> None:
    place = tmp_path / "status.html"
    place.write_text(test_status.page())
    said: list[str] = []

    def note(message: ConsoleMessage) -> None:
        said.append(message.text)

    page = browser.new_page(viewport={"width": 360, "height": 740}, color_scheme=scheme)
    page.on("console", note)
    page.on("request", lambda request: said.append(request.url))
    page.goto(place.as_uri())
    page.screenshot(path=tmp_path / "status.png", full_page=True)
    assert said == [place.as_uri()]
    assert (page.title(), page.inner_text("h1")) == ("Trainings of namespace ml", "Trainings of namespace ml")
    assert page.evaluate("() => document.documentElement.scrollWidth > innerWidth") is False
    assert page.evaluate("() => document.querySelectorAll('script').length") == 0
    widths = page.evaluate(SIZES)
    assert (len(widths), min(widths) > 0.5, max(widths) < 1) == (4, True, True)
    text, line = page.evaluate(COLOURS)
    assert (text[0], line[1]) == {
        "light": ("rgb(0, 0, 0)", "rgb(11, 98, 196)"),
        "dark": ("rgb(255, 255, 255)", "rgb(109, 179, 255)"),
    }[scheme]
    page.close()
