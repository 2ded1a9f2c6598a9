"""The Text page in Chromium: a text becomes maps, hovering tells, links reopen, hard texts are drawn as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Locator, Page, expect

from components.frame import TEXT
from components.palette import PALETTES, STEPS, Theme, colour
from components.rationale import TITLE
from engine.registry import explainer
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.tiny import save_checkpoint

QUICK = ("gradient_x_input", "attention_mean", "random")
TEXT_HERE = "the acting is warm and funny"
FAMILY = "👨\u200d👩\u200d👧"
HARD = {
    "markup": "<script>alert(1)</script> <b>bold</b>",
    "entities": "&lt; &amp; \"quotes\" 'single'",
    "right to left": "הסרט הזה היה נפלא",
    "cjk": "这部电影非常好看",
    "emoji": f"loved it {FAMILY} 👍🏽 🇩🇪 e\u0301t\u00e9",
    "one token": "good",
    "repeated": "good good good",
}

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


def address(server: Server, model: str, methods: tuple[str, ...] = QUICK, **query: str) -> str:
    pairs = [("model", model), *(("method", method) for method in methods), *query.items()]
    return f"{server.url}/{TEXT.url_path}?{urlencode(pairs)}"


def row(page: Page, method: str) -> Locator:
    title = page.locator(".xg-title", has_text=re.compile(f"^{re.escape(explainer(method).title)}$"))
    return page.locator(".xg-row").filter(has=title)


def expect_maps(page: Page, methods: tuple[str, ...] = QUICK) -> None:
    for method in methods:
        expect(row(page, method).locator(".xg-map")).to_be_visible(timeout=TIMEOUT_MS)
    titles = page.locator(".xg-row .xg-title").filter(has_not_text=re.compile(f"^{TITLE}$"))
    expect(titles).to_have_text([explainer(method).title for method in methods])


def expect_settled(page: Page) -> None:
    """The script has ended: nothing moves under the pointer any more."""
    expect(page.get_by_test_id("stStatusWidget")).to_have_count(0, timeout=TIMEOUT_MS)
    expect(page.get_by_test_id("stProgress")).to_have_count(0, timeout=TIMEOUT_MS)


def rgb(colour: str) -> str:
    return "rgb({}, {}, {})".format(*(int(colour[at : at + 2], 16) for at in (1, 3, 5)))


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
    expect(row(again, "gradient_x_input")).to_contain_text("from the cache")


def test_hovering_a_token_shows_its_value_rank_and_index(server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, text=TEXT_HERE))
    expect_maps(page)
    expect_settled(page)
    token = row(page, "random").locator(".xg-t").nth(2)
    token.hover()
    said = token.evaluate("node => getComputedStyle(node, '::after').content")
    assert re.fullmatch(r'"\d+ · rank \d+ of \d+ · index 3"', said)
    other = row(page, "random").locator(".xg-t").nth(0)
    assert other.evaluate("node => getComputedStyle(node, '::after').content") == "none"


def test_hovering_a_token_lights_it_in_every_row(server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, text=f"{TEXT_HERE}, {TEXT_HERE} " * 5))
    expect_maps(page)
    expect_settled(page)
    row(page, "random").locator(".xg-t").nth(40).hover()
    for method in QUICK:
        tokens = row(page, method).locator(".xg-t")
        expect(tokens.nth(40)).to_have_css("outline-width", "2px")
        assert tokens.evaluate_all("all => all.map(t => getComputedStyle(t).outlineWidth)").count("2px") == 1


def test_the_view_changes_the_maps_and_a_link_reopens_it(
    scheme: Theme, server: Server, model: str, open_page: Open
) -> None:
    page = open_page(address(server, model, text=TEXT_HERE), scheme=scheme)
    expect_maps(page)
    page.get_by_role("button", name="View").click()
    page.get_by_text("Underline", exact=True).click()
    expect(page).to_have_url(re.compile("style=underline"), timeout=TIMEOUT_MS)
    expect_settled(page)
    page.get_by_text("Values under the tokens").click()
    expect(page).to_have_url(re.compile("style=underline&values=on"), timeout=TIMEOUT_MS)
    again = open_page(page.url, scheme=scheme)
    expect_maps(again)
    strongest = row(again, "random").locator(f".xg-amount-{STEPS}").first
    expect(strongest).to_have_css("background-color", rgb(colour(scheme, "amount", STEPS)))
    expect(strongest).to_have_css("background-image", re.compile(re.escape(rgb(PALETTES[scheme].ground))))
    said = strongest.evaluate("node => getComputedStyle(node, '::before').content")
    assert re.fullmatch(r'"\d+\.\d"', said)
    expect(row(again, "random").locator(".xg-text")).to_have_text(f"[CLS] {TEXT_HERE} [SEP]")


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


def test_both_themes_have_their_own_colours(scheme: Theme, server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, text=TEXT_HERE), scheme=scheme)
    expect_maps(page)
    strongest = row(page, "random").locator(f".xg-amount-{STEPS}").first
    expect(strongest).to_have_css("background-color", rgb(colour(scheme, "amount", STEPS)))
    expect(strongest).to_have_css("color", rgb(PALETTES[scheme].text))
    expect(row(page, "random").locator(".xg-special").first).to_have_css(
        "background-color", rgb(PALETTES[scheme].special)
    )


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_window(width: int, server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, text="good " * 30 + "x" * 300), width=width)
    expect_maps(page)
    row(page, "random").locator(".xg-t").last.hover()
    row(page, "random").get_by_text("Details").click()
    widths = page.get_by_test_id("stMain").evaluate("node => [node.scrollWidth, node.clientWidth]")
    assert widths[0] <= widths[1]


def test_tokens_stand_in_the_same_place_in_every_map(server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, text=TEXT_HERE + ", " + TEXT_HERE))
    expect_maps(page)
    places = [
        row(page, method)
        .locator(".xg-map")
        .evaluate(
            """map => [...map.querySelectorAll('.xg-t')].map(token => {
                const box = token.getBoundingClientRect(), frame = map.getBoundingClientRect();
                return [Math.round(box.left - frame.left), Math.round(box.top - frame.top)];
            })"""
        )
        for method in QUICK
    ]
    assert places[0] == places[1] == places[2]
    assert len(places[0]) > 6


@pytest.mark.parametrize("text", HARD.values(), ids=HARD)
def test_hard_texts_are_drawn_as_text(text: str, scheme: Theme, server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, text=text), scheme=scheme)
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    expect_maps(page)
    drawn = row(page, "random").locator(".xg-text")
    assert drawn.text_content() == f"[CLS] {text} [SEP]"
    assert drawn.locator("script, b").count() == 0
    assert not dialogs


def test_right_to_left_text_runs_right_to_left(server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, text="אבג דהו זחט"))
    expect_maps(page)
    drawn = row(page, "random").locator(".xg-text")
    expect(drawn).to_have_css("direction", "rtl")
    lefts = drawn.evaluate(
        "node => [...node.querySelectorAll('.xg-t')].map(token => token.getBoundingClientRect().left)"
    )
    assert lefts == sorted(lefts, reverse=True)


def test_a_right_to_left_phrase_keeps_its_order_inside_a_sentence(server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, ("random",), text="good אבג דהו food", unit="word"))
    expect_maps(page, ("random",))
    lefts = (
        row(page, "random")
        .locator(".xg-text")
        .evaluate("node => [...node.querySelectorAll('.xg-t')].map(word => word.getBoundingClientRect().left)")
    )
    first, second, third, last = lefts
    assert first < third < second < last, "the second Hebrew word stands left of the first"


def test_an_emoji_of_several_code_points_is_one_unit(server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, text=f"good {FAMILY} food"))
    expect_maps(page)
    expect(row(page, "random").locator(".xg-t", has_text=FAMILY)).to_have_count(1)


def test_a_pair_stands_in_two_paragraphs(server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, text="a premise is here", pair="a hypothesis follows"))
    expect_maps(page)
    expect(row(page, "random").locator(".xg-text")).to_have_text(
        ["[CLS] a premise is here [SEP]", "a hypothesis follows [SEP]"]
    )


def test_a_text_longer_than_the_model_reads_is_said_to_be_cut(server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, text="good food, " * 200))
    expect_maps(page)
    expect(page.get_by_text(re.compile("of its .* tokens were cut off"))).to_have_count(1)
    expect(row(page, "random")).to_contain_text("the rest was cut off")


def test_an_empty_text_says_what_to_do(server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, text=TEXT_HERE))
    expect_maps(page)
    box = page.get_by_role("textbox", name="Text", exact=True)
    box.fill("")
    box.press("Control+Enter")
    expect(page.get_by_text("Type a text above")).to_be_visible(timeout=TIMEOUT_MS)
    box.fill("good food")
    box.press("Control+Enter")
    expect_maps(page)


def test_another_page_and_back_keeps_the_text(server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, text=TEXT_HERE))
    expect_maps(page)
    navigation = page.get_by_test_id("stSidebarNav")
    navigation.get_by_role("link", name="Home").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Exegesis", timeout=TIMEOUT_MS)
    navigation.get_by_role("link", name="Text").click()
    expect_maps(page)
    expect(page.get_by_role("textbox", name="Text", exact=True)).to_have_value(TEXT_HERE)
    expect(page).to_have_url(re.compile(r"[?&]text="))


def test_a_typed_model_is_kept_over_reruns(server: Server, model: str, open_page: Open) -> None:
    page = open_page(address(server, model, text=TEXT_HERE))
    expect_maps(page)
    page.get_by_text("Words", exact=True).click()
    expect(page).to_have_url(re.compile(r"[?&]unit=word"), timeout=TIMEOUT_MS)
    expect_maps(page)
    expect(page.get_by_role("combobox", name=re.compile("Model"))).to_have_value(model)
