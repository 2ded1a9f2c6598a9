"""The Text page in Chromium: a text becomes maps, hovering tells, links reopen."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from components.navigation import HOME, TEXT
from components.palette import PALETTES, STEPS, Theme, color
from tests.browser.conftest import RUNNING, TIMEOUT_MS
from tests.browser.maps import QUICK, address, expect_maps, expect_table, hover_text, hover_tip, rgb, row
from tests.browser.server import Server
from tests.browser.waiting import FITS, UNTIL_IT_RUNS, box_of, boxes_of, go_to, settled

TEXT_HERE = "the acting is warm and funny"
HEADER = 80
"""Pixels that the navigation covers at the top of the window, and some more."""
PLACES = """map => [...map.querySelectorAll('b')].map(token => {
    const box = token.getBoundingClientRect(), frame = map.getBoundingClientRect();
    return [Math.round(box.left - frame.left), Math.round(box.top - frame.top)];
})"""

Open = Callable[..., Page]


def test_typing_a_text_gives_its_maps_and_a_link_that_reopens_them(server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model))
    expect_maps(page)
    box = page.get_by_role("textbox", name="Text", exact=True)
    box.fill(TEXT_HERE)
    box.press("Control+Enter")
    expect(row(page, "random").locator(".xg-text")).to_have_text(f"[CLS] {TEXT_HERE} [SEP]", timeout=TIMEOUT_MS)
    expect(page).to_have_url(re.compile(r"[?&]text=the[+%20]+acting"))
    expect_maps(page)
    shown = row(page, "gradient_x_input").locator(".xg-map").inner_html()
    again = open_page(page.url)
    expect_maps(again)
    assert row(again, "gradient_x_input").locator(".xg-map").inner_html() == shown
    expect(row(again, "gradient_x_input")).to_contain_text("cached")


def test_a_hovered_token_tells_itself_and_is_lit_in_every_row_at_the_same_place(
    server: Server, model: str, open_page: Open
) -> None:
    page = open_page(address(server, model, text=f"{TEXT_HERE}, {TEXT_HERE} " * 5))
    expect_maps(page)
    settled(page)
    places = [row(page, method).locator(".xg-map").evaluate(PLACES) for method in QUICK]
    assert places[0] == places[1] == places[2]
    tokens = row(page, "random").locator(".xg-map b")
    tokens.nth(40).hover()
    assert re.fullmatch(r"\w+: \d+ · rank \d+ of \d+ · index 41", hover_text(page))
    assert tokens.nth(0).evaluate("node => getComputedStyle(node, '::after').content") == "none"
    for method in QUICK:
        tokens = row(page, method).locator(".xg-map b")
        expect(tokens.nth(40)).to_have_css("outline-width", "2px")
        assert tokens.evaluate_all("all => all.map(t => getComputedStyle(t).outlineWidth)").count("2px") == 1


@pytest.mark.parametrize("width", [1280, 390])
def test_what_a_hovered_token_says_is_above_or_below_its_line_and_within_the_window(
    width: int, server: Server, model: str, open_page: Open
) -> None:
    page = settled(open_page(address(server, model, text=f"{TEXT_HERE}, {TEXT_HERE} " * 5), width=width))
    expect_maps(page)
    tokens = row(page, "gradient_x_input").locator(".xg-map b")
    boxes = boxes_of(*tokens.all())
    middle, right = len(boxes) // 2, max(range(len(boxes)), key=lambda at: boxes[at]["x"] + boxes[at]["width"])
    for at in (0, middle, right, len(boxes) - 1):
        for line in ("end", "start"):
            tokens.nth(at).evaluate(f"token => token.scrollIntoView({{ block: '{line}' }})")
            if line == "start":  # at once, as a wheel would not
                page.get_by_test_id("stMain").evaluate(f"main => main.scrollBy(0, -{HEADER})")
            tokens.nth(at).hover()
            said, tip = hover_tip(page)
            token = box_of(tokens.nth(at))
            assert said.startswith(f"{tokens.nth(at).inner_text()}: ")
            assert tip["y"] + tip["height"] <= token["y"] or tip["y"] >= token["y"] + token["height"]
            assert tip["x"] >= 0
            assert tip["x"] + tip["width"] <= width


def test_the_view_changes_the_maps_and_a_link_reopens_it(server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, text=TEXT_HERE), scheme="dark")
    expect_maps(page)
    page.get_by_test_id("stPopoverButton").filter(has_text="Options").click()
    page.get_by_text("Underline", exact=True).click()
    expect(page).to_have_url(re.compile("style=underline"), timeout=TIMEOUT_MS)
    settled(page)
    page.get_by_text("Values under the tokens").click()
    expect(page).to_have_url(re.compile("style=underline&values=on"), timeout=TIMEOUT_MS)
    again = open_page(page.url, scheme="dark")
    expect_maps(again)
    strongest = row(again, "random").locator(f".m{STEPS}").first
    expect(strongest).to_have_css("background-color", rgb(color("dark", "amount", STEPS)))
    expect(strongest).to_have_css("background-image", re.compile(re.escape(rgb(PALETTES["dark"].ground))))
    said = strongest.evaluate("node => getComputedStyle(node, '::before').content")
    assert re.fullmatch(r'"\d+\.\d"', said)
    expect(row(again, "random").locator(".xg-text")).to_have_text(f"[CLS] {TEXT_HERE} [SEP]")
    page.get_by_text("Aligned", exact=True).click()
    expect(page).to_have_url(re.compile("layout=aligned"), timeout=TIMEOUT_MS)
    expect_table(page)


def test_details_open_on_a_click_and_hold_the_provenance(server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, text=TEXT_HERE))
    expect_maps(page)
    facts = row(page, "attention_mean").locator(".xg-facts")
    expect(facts).to_be_hidden()
    row(page, "attention_mean").get_by_text("Details").click()
    expect(facts).to_be_visible()
    expect(facts).to_contain_text(f"{model}, revision ")
    expect(facts).to_contain_text("attention_mean, version 1")
    expect(facts).to_contain_text("seed 0")


def test_both_themes_have_their_own_colors(scheme: Theme, server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, text=TEXT_HERE), scheme=scheme)
    expect_maps(page)
    strongest = row(page, "random").locator(f".m{STEPS}").first
    expect(strongest).to_have_css("background-color", rgb(color(scheme, "amount", STEPS)))
    expect(strongest).to_have_css("color", rgb(PALETTES[scheme].text))
    expect(row(page, "random").locator(".xg-special").first).to_have_css(
        "background-color", rgb(PALETTES[scheme].special)
    )


def test_nothing_is_wider_than_the_window(server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, text="good " * 30 + "x" * 300), width=390)
    expect_maps(page)
    row(page, "random").get_by_text("Details").click()
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        row(page, "random").locator(".xg-map b").last.hover()
        page.wait_for_function(FITS)


AT_ONCE = f"""async ([first, second, pause, running]) => {{
    const before = location.href;
    const answered = new Promise((done) => {{
        const look = () => location.href === before ? requestAnimationFrame(look) : done();
        look();
    }});
    first.click();
    if (pause !== null) {{
        await Promise.race([({UNTIL_IT_RUNS})(running, true), answered]);
        await new Promise((done) => setTimeout(done, pause));
    }}
    second.click();
}}"""
"""Two choices: the second at once, or so many milliseconds after the server has begun to answer the first. On a busy
machine the browser may see its run only when it is over; then the address has changed."""


@pytest.mark.parametrize("pause", [None, 0, 10, 50, 280])
def test_of_two_choices_at_once_both_count(pause: int | None, server: Server, model: str, open_page: Open) -> None:
    page = settled(open_page(address(server, model, ("random",), data="reviews", index="0", open="browse")))
    text = page.get_by_role("textbox", name="Text", exact=True)
    before = text.input_value()
    questions = page.get_by_role("switch", name=re.compile("^Removal curves"))
    both = page.get_by_role("button", name="Next", exact=True), questions
    page.evaluate(AT_ONCE, [*(one.element_handle() for one in both), pause, RUNNING])
    expect(page).to_have_url(re.compile(r"[?&]index=1&.*open=browse%2Cquestions(&|$)"), timeout=TIMEOUT_MS)
    settled(page)
    expect(text).not_to_have_value(before)
    expect(page.get_by_role("spinbutton", name="Example")).to_have_value("1")
    expect(both[1]).to_be_checked()


def test_another_page_and_back_keeps_the_text(server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, text=TEXT_HERE))
    expect_maps(page)
    go_to(page, HOME)
    go_to(page, TEXT)
    expect_maps(page)
    expect(page.get_by_role("textbox", name="Text", exact=True)).to_have_value(TEXT_HERE)
    expect(page).to_have_url(re.compile(r"[?&]text="))
