"""The list of all methods in Chromium: opened, filtered, chosen by mouse and keyboard, wide and narrow."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from components.palette import PALETTES
from engine.registry import all_explainers, explainer
from tests.browser.maps import QUICK, address, expect_maps, rgb
from tests.browser.server import Server
from tests.browser.waiting import boxes_of, expect_fits, settled

Open = Callable[..., Page]
BUTTON = "All methods and parameters"


@pytest.fixture
def page(server: Server, model: str, open_page: Open) -> Page:
    return drawn(open_page(address(server, model, text="good food")))


def drawn(page: Page) -> Page:
    expect_maps(page)
    return settled(page)


def opened(page: Page) -> Locator:
    page.get_by_role("button", name="Options", exact=True).click()
    expect(page.get_by_role("button", name=BUTTON)).to_have_count(1)
    page.get_by_role("button", name=BUTTON).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("checkbox")).to_have_count(len(all_explainers()))
    settled(page)  # a list that opens while the page is drawn closes again
    return dialog


def choose(dialog: Locator, label: str, kind: str) -> None:
    dialog.get_by_role("combobox", name=label).click()
    dialog.page.get_by_role("option", name=kind, exact=True).click()


def tick(dialog: Locator, method: str) -> None:
    """Streamlit lays its own box over the one that the browser knows."""
    dialog.get_by_text(explainer(method).title, exact=True).click()
    expect(dialog.get_by_role("checkbox", name=explainer(method).title, exact=True)).to_be_checked()


def by_axis(axis: str, label: str) -> int:
    """How many methods have this on an axis."""
    return sum(getattr(one.axes, axis).capitalize().partition(",")[0] == label for one in all_explainers().values())


def test_methods_are_filtered_ticked_and_drawn_when_the_list_closes(page: Page) -> None:
    dialog = opened(page)
    expect(dialog.get_by_role("checkbox", name="Random", exact=True)).to_be_checked()
    choose(dialog, "Removed by", "Chosen operator")
    expect(dialog.get_by_role("checkbox")).to_have_count(by_axis("removal", "Chosen operator"))
    tick(dialog, "occlusion")
    dialog.get_by_text("Parameters").first.click()
    window = dialog.get_by_role("spinbutton", name="Window")
    window.fill("2")
    window.press("Enter")
    expect(dialog.get_by_text("Changed: window 2")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect_maps(page, (*QUICK, "occlusion"))
    expect(page).to_have_url(re.compile("method=occlusion&occlusion.window=2"))
    expect(page.get_by_text("Changed: Occlusion with window 2")).to_be_visible()


def test_a_closed_list_forgets_its_filters_and_keeps_its_parameters(page: Page) -> None:
    dialog = opened(page)
    choose(dialog, "Summarized as", "Removal effect")
    expect(dialog.get_by_role("checkbox")).to_have_count(by_axis("summary", "Removal effect"))
    tick(dialog, "occlusion")
    dialog.get_by_text("Parameters").first.click()
    dialog.get_by_role("spinbutton", name="Window").fill("3")
    dialog.get_by_role("button", name="Show the chosen methods").first.click()
    expect(page.get_by_text("Changed: Occlusion with window 3")).to_be_visible()
    settled(page)
    expect(opened(page).get_by_text("Changed: window 3")).to_be_visible()


def test_a_preset_is_chosen_by_the_keyboard_alone(page: Page) -> None:
    page.get_by_role("button", name="Options", exact=True).press("Enter")
    page.get_by_role("button", name=BUTTON).focus()
    page.keyboard.press("Enter")
    preset = page.get_by_role("dialog").get_by_role("button", name=re.compile(r"^Path methods \("))
    expect(preset).to_be_visible()
    for _ in range(4):
        page.keyboard.press("Tab")
    expect(preset).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("checkbox", name="Integrated gradients", exact=True)).to_be_checked()
    page.keyboard.press("Escape")
    expect(page).to_have_url(re.compile("method=integrated_gradients.*method=random"))
    expect(page.get_by_role("button", name=BUTTON)).to_have_count(0)


def test_a_narrow_row_stands_under_its_name_and_names_its_axes(server: Server, model: str, open_page: Open) -> None:
    dialog = opened(drawn(open_page(address(server, model, text="good food"), width=390)))
    label = dialog.locator("dt", has_text="Removed by").first
    expect(label).to_be_visible()
    box, name = boxes_of(label, dialog.get_by_text("Gradient", exact=True))
    assert box["width"] > 50
    assert box["y"] > name["y"]
    expect_fits(dialog.page)


GROUND = """cell => {
  const clear = 'rgba(0, 0, 0, 0)', color = node => getComputedStyle(node).backgroundColor
  let node = cell
  while (color(node) === clear) node = node.parentElement
  return [getComputedStyle(cell).color, color(node)]
}"""


def test_the_text_of_the_list_stands_out_from_its_ground(page: Page) -> None:
    dialog = opened(page)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        expect(page.get_by_test_id("stApp")).to_have_css("color", rgb(PALETTES[scheme].text))
        text, ground = map(brightness, dialog.locator("dd").first.evaluate(GROUND))
        assert abs(text - ground) > 150


def brightness(color: str) -> float:
    """Mean of red, green and blue, 0 to 255."""
    return sum(int(part) for part in re.findall(r"\d+", color)[:3]) / 3
