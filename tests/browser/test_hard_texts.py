"""Texts that are hard to draw, in Chromium, in both themes and both layouts: text stays text and stands where it is."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from components.palette import PALETTES
from components.styles import DIGITS
from engine.models.catalog import embedded_models
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.maps import address, expect_maps, expect_table, hover_text, rgb, row
from tests.browser.server import Server
from tests.browser.waiting import expect_fits, settled

FAMILY = "👨\u200d👩\u200d👧"
HARD = {
    "markup": "<script>alert(1)</script> <u>lined</u> &lt; &amp; \"quotes\" 'single'",
    "right to left": "הסרט הזה היה נפלא كان الفيلم رائعا",
    "no spaces": f"这部电影非常好看 loved it {FAMILY} 👍🏽 🇩🇪 e\u0301t\u00e9",
    "one token": "good",
}
RIGHT_TO_LEFT = "אבג דהו זחט"

Open = Callable[..., Page]


def lefts(units: Locator) -> list[float]:
    found: list[float] = units.evaluate_all("all => all.map(unit => unit.getBoundingClientRect().left)")
    return found


def expect_legible(page: Page, words: Locator) -> None:
    """They have the color of text in either theme."""
    for scheme, palette in PALETTES.items():
        page.emulate_media(color_scheme=scheme)
        expect(words).to_have_css("color", rgb(palette.text))


@pytest.mark.parametrize("text", HARD.values(), ids=HARD)
def test_a_text_is_drawn_as_text_in_both_themes(text: str, server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, text=text), apart=True)
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    expect_maps(page)
    drawn = row(page, "random").locator(".xg-text")
    assert drawn.text_content() == f"[CLS] {text} [SEP]"
    units = drawn.locator("b").all_text_contents()
    expect_legible(page, drawn)

    page.goto(address(server, model, text=text, layout="aligned"))
    expect_table(page)
    heads = page.locator(".xg-grid thead th")
    assert heads.all_text_contents() == ["Method", "[CLS]", *units, "[SEP]"]
    expect_legible(page, heads.nth(2))
    assert page.locator(".xg-map").locator("script, u").count() == 0
    assert not dialogs
    expect_fits(page)


def test_right_to_left_text_runs_right_to_left(server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, text=RIGHT_TO_LEFT))
    expect_maps(page)
    drawn = row(page, "random").locator(".xg-text")
    expect(drawn).to_have_css("direction", "rtl")
    found = lefts(drawn.locator("b"))
    assert found == sorted(found, reverse=True)

    page.goto(address(server, model, text=RIGHT_TO_LEFT, layout="aligned"))
    expect_table(page)
    found = lefts(page.locator(".xg-grid thead th"))
    assert found == sorted(found, reverse=True), "the names stand at the right, the first token beside them"
    expect_fits(page)


@pytest.mark.parametrize("layout", ["flow", "aligned"])
def test_right_to_left_text_keeps_its_order_under_values(
    layout: str, server: Server, model: str, open_page: Open
) -> None:
    page = open_page(address(server, model, text=RIGHT_TO_LEFT, values="on", layout=layout))
    (expect_maps if layout == "flow" else expect_table)(page)
    place = row(page, "random") if layout == "flow" else row(page, "random", ".xg-grid tr")
    units = place.locator("[data-b]")
    found = lefts(units)
    assert len(found) >= 3
    assert found == sorted(found, reverse=True)
    value = units.first.evaluate(
        """unit => {
            const drawn = getComputedStyle(unit, "::before");
            return [drawn.content, drawn.direction, drawn.unicodeBidi];
        }"""
    )
    assert value == [f'"{units.first.get_attribute("data-b")}"', "ltr", "isolate"], "a minus stands left of its number"


def test_a_right_to_left_phrase_keeps_its_order_inside_a_sentence(server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, ("random",), text="good אבג דהו food", unit="word"))
    expect_maps(page, ("random",))
    first, second, third, last = lefts(row(page, "random").locator(".xg-text b"))
    assert first < third < second < last, "the second Hebrew word stands left of the first"


def test_a_pair_stands_in_two_paragraphs_or_in_one_line(server: Server, model: str, open_page: Open) -> None:
    pair = {"text": "good food", "pair": "<i>bad</i> food"}
    page = open_page(address(server, model, unit="word", **pair))
    expect_maps(page)
    expect(row(page, "random").locator(".xg-text")).to_have_text(["[CLS] good food [SEP]", "<i>bad</i> food [SEP]"])

    page.goto(address(server, model, unit="word", layout="aligned", **pair))
    expect_table(page)
    heads = page.locator(".xg-grid thead th")
    expect(heads).to_have_text(["Method", "[CLS]", "good", "food", "[SEP]", "<i>bad</i>", "food", "[SEP]"])
    assert len(set(heads.evaluate_all("all => all.map(head => head.getBoundingClientRect().top)"))) == 1


@pytest.mark.parametrize("width", [1280, 390])
def test_a_text_of_512_tokens_fits_in_both_layouts(width: int, server: Server, open_page: Open) -> None:
    """Repeated words of an embedded model, which reads 512 tokens; each unit is lit by its place, not by its word."""
    text, methods, last = "good film " * 255, ("attention_mean", "random"), 509
    page = open_page(address(server, embedded_models()[0], methods, text=text), width=width)
    expect_maps(page, methods)
    settled(page)
    units = row(page, "random").locator(".xg-map b")
    expect(units).to_have_count(last + 1)
    expect_fits(page)
    hover(units.nth(last))
    assert re.fullmatch(r"\w+: \d+ · rank \d+ of 510 · index 510", hover_text(page))
    assert lit(page, ".xg-map b") == [divmod(last + 1, DIGITS)] * len(methods)

    page.goto(address(server, embedded_models()[0], methods, text=text, layout="aligned"))
    expect_table(page, methods)
    expect_fits(page)
    box = page.get_by_role("region", name="Maps")
    box.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("box => box.scrollLeft > 0", arg=box.element_handle(), timeout=TIMEOUT_MS)
    cell = row(page, "random", ".xg-grid tr").locator("td").nth(last + 1)
    hover(cell)
    assert re.fullmatch(r"\w+: \d+ · rank \d+ of 510 · index 510", hover_text(page))
    assert lit(page, ".xg-grid td") == [divmod(last + 1, DIGITS)] * len(methods)
    name = row(page, "random", ".xg-grid tr").locator("th")
    assert abs(lefts(name)[0] - lefts(box)[0]) < 2, "the names stay while the table is scrolled"


def hover(unit: Locator) -> None:
    unit.scroll_into_view_if_needed()
    unit.hover()


def lit(page: Page, units: str) -> list[tuple[int, int]]:
    """The two digits of each unit that is outlined."""
    found = page.locator(units).evaluate_all(
        """all => all.filter(unit => getComputedStyle(unit).outlineWidth == "2px").map(unit => {
            const high = unit.closest("[class*=xi]").className.match(/xi(\\d+)/)[1];
            return [Number(high), Number.parseInt(unit.className.match(/\\bj(\\w)$/)[1], 32)];
        })"""
    )
    return [(high, low) for high, low in found]
