"""What a page says in its own HTML: all of it, or what stands instead of Streamlit's boxes, whose text is Markdown."""

from __future__ import annotations

import re
from html import unescape

from streamlit.testing.v1 import AppTest

SAID = re.compile(r'role="(alert|status)"><p class="xg-\w+">(.*)</p>', re.DOTALL)


def html_of(page: AppTest) -> str:
    """All HTML of the page."""
    return "\n".join(element.proto.body for element in page.get("html"))


def readable_html(page: AppTest) -> str:
    """All HTML of the page, its texts as a person reads them."""
    return unescape(html_of(page))


def errors(page: AppTest) -> list[str]:
    """The troubles, as a person reads them."""
    return _said(page, "alert")


def notes(page: AppTest) -> list[str]:
    """The remarks, as a person reads them."""
    return _said(page, "status")


def _said(page: AppTest, role: str) -> list[str]:
    found = (SAID.search(element.proto.body) for element in page.get("html"))
    return [unescape(match[2]) for match in found if match and match[1] == role]
