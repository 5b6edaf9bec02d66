# SPDX-License-Identifier: GPL-3.0-or-later
"""Values that go into headers, and what is read from those of an answer. Nothing that a server says may end in a traceback."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._kube import headers

NOW = dt.datetime(2026, 1, 1, 12, 0, 0, tzinfo=dt.UTC)


@pytest.mark.parametrize("value", ["", "Bearer abc", "a\tb", "Jürgen", "a" * 9000])
def test_what_may_be_sent(value: str) -> None:
    assert headers.sendable(value, "it") == value


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("s3cr3t\n", "a line break at its end"),
        ("s3cr3t\r\n", "a line break at its end"),
        ("s3c\nr3t", "the control character 0x0a"),
        ("s3c\nr3t\n", "the control character 0x0a"),
        ("s3c\0r3t", "the control character 0x00"),
        ("s3c\x7fr3t", "the control character 0x7f"),
        ("s3c\udcffr3t", "characters that are not text"),
    ],
)
def test_what_may_not_be_sent_is_told_but_not_shown(value: str, told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        headers.sendable(value, "The token")
    assert str(caught.value) == f"The token has {told}, which no HTTP header may have. Its value is not shown here."
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("9", 9),
        (" 0 ", 0),
        ("-1", None),
        ("²", None),
        ("1.5", None),
        ("soon", None),
        ("Thu, 01 Jan 2026 12:00:30 GMT", 30),
        ("Thu, 01 Jan 2026 12:00:30 -0000", 30),
        ("Thu, 01 Jan 2026 13:00:00 +0100", 0),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0),
        ("Thu, 99 Jan 2026 11:00:00 GMT", None),
    ],
)
def test_how_long_to_wait(header: str | None, seconds: float | None) -> None:
    assert headers.retry_after(header, NOW) == seconds


@given(st.text())
def test_no_header_of_a_server_ends_in_a_traceback(text: str) -> None:
    headers.retry_after(text, NOW)
    headers.warnings([text, f'299 - "{text}"'])


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ('299 - "is deprecated"', ["is deprecated"]),
        ('299 - "say \\"please\\", or \\\\"', ['say "please", or \\']),
        ('299 - "a", 299 kube "b" "Thu, 01 Jan 2026 11:00:00 GMT"', ["a", "b"]),
        ('110 - "Response is stale"', []),
        ('299 - "a\x1b[2Jb"', ["a [2Jb"]),
        ('299 - "Gr\u00c3\u00b6\u00c3\u009fe"', ["Größe"]),
        ('299 - ""', []),
        ('299 - "', []),
        ('299 "', []),
        ('"""', []),
    ],
)
def test_warnings_are_those_that_kubectl_shows(value: str, told: list[str]) -> None:
    assert headers.warnings([value]) == told
