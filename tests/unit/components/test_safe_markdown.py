"""Organizers' Markdown: what it may say, and all that it may not do."""

from __future__ import annotations

import time
from html.parser import HTMLParser

import pytest

from components.safe_markdown import markdown_html

EVIL = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "a <b onclick=alert(1)>b</b>",
    "<!-- --><iframe src=https://evil.example></iframe>",
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt:alert(1))",
    "[a](java&#115;cript:alert(1))",
    "[a](data:text/html;base64,PHNjcmlwdD4=)",
    "[a](vbscript:x)",
    "[a](//evil.example)",
    "[a](/study?study=1)",
    "[a]: javascript:alert(1)\n\n[a]",
    '[a](https://a.example "x" onmouseover="alert(1))',
    "![a](https://evil.example/x.png)",
    "![a](data:image/png;base64,AAAA)",
    "![<img src=x>](https://evil.example/x.png)",
    "<https://a.example/\"onmouseover='alert(1)'>",
    "`<script>`\n\n```html onload=x\n<script>alert(1)</script>\n```",
]
TAGS = {"div", "p", "a", "bdi", "code", "pre", "em", "strong", "ul", "ol", "li", "blockquote", "hr", "br"}
TAGS |= {f"h{level}" for level in range(2, 7)}


class Elements(HTMLParser):
    """Every element with its attributes, and the text, as a browser reads them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("text", EVIL)
def test_nothing_becomes_an_element_an_attribute_or_an_address_of_the_authors(text: str) -> None:
    for tag, attributes in Elements(markdown_html(text)).found:
        assert tag in TAGS
        assert attributes.keys() <= {"class", "href", "target", "rel"}
        assert (attributes.get("href") or "https://").startswith("https://")


def test_html_stands_there_letter_by_letter() -> None:
    assert EVIL[1] in Elements(markdown_html(EVIL[1])).text


def test_of_a_picture_its_words_are_left() -> None:
    assert Elements(markdown_html("See ![a *fine* cat](https://evil.example/x.png).")).text.strip() == "See a fine cat."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[our bank](https://evil.example/login)", "our bank (https://evil.example/login)"),
        ("[https://bank.example](https://evil.example)", "https://bank.example (https://evil.example)"),
        ("<https://a.example>", "https://a.example"),
        ("<me@a.example>", "me@a.example"),
        ("[write](mailto:me@a.example)", "write (me@a.example)"),
        ("[**a** b](https://a.example)", "a b (https://a.example)"),
        ("[аррӏе](https://аррӏе.example)", "аррӏе (https://xn--80ak6aa92e.example)"),
    ],
)
def test_a_link_says_where_it_leads_and_opens_elsewhere(text: str, shown: str) -> None:
    page = Elements(markdown_html(text))
    assert page.text.strip() == shown
    [link] = [attributes for tag, attributes in page.found if tag == "a"]
    assert link["target"] == "_blank"
    assert "noopener" in (link["rel"] or "")


def test_common_mark_is_read_and_nothing_more() -> None:
    html = markdown_html("# One\n\n- *a*\n- **b**\n\n`:red[c]` :red[d] $x$ :material/add: ~~e~~")
    for part in ("<h2>One</h2>", "<li><em>a</em></li>", "<strong>b</strong>", ":red[d] $x$ :material/add: ~~e~~"):
        assert part in html


@pytest.mark.parametrize("part", ["[", "*a_", "![](", "> ", "<a", "`", "- ", "[a](", "&#", "\n# "])
def test_no_text_of_the_longest_kind_takes_long(part: str) -> None:
    started = time.process_time()
    markdown_html((part * 20_000)[:20_000])
    assert time.process_time() - started < 2
