"""The controls behind "View" or "Options" in Chromium: they hold what the link says and report no more.

The browser draws them when the popover opens, which is later than the run that gave them their values.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from components.navigation import ATTENTION, COMPARE, HOME, IMAGES, TEXT
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import go_to, settled

Open = Callable[..., Page]
BUTTON = re.compile("^(View|Options)$")
NUMBERS = {"seed": "Seed", "index": "Example"}
"""The labels of number inputs by their names in a link."""
Values = dict[str, str]
READ = """body => Object.fromEntries([
  ...[...body.querySelectorAll('[role=radiogroup]')].map(one =>
    [one.ariaLabel, one.querySelector('[aria-checked=true]')?.textContent ?? 'nothing']),
  ...[...body.querySelectorAll('[role=switch]')].map(one => [one.ariaLabel, one.checked ? 'on' : 'off']),
  ...[...body.querySelectorAll('input[type=range]')].map(one => ['Gamma', one.value]),
  ...[...body.querySelectorAll('[data-testid=stMultiSelect]')].map(one =>
    [one.querySelector('input').ariaLabel, [...one.querySelectorAll('[data-tag]')].map(tag => tag.textContent).join()]),
  ...[...body.querySelectorAll('[data-testid=stSelectbox] input[role=combobox]')].map(one =>
    [one.ariaLabel, one.value]),
])"""


@dataclass(frozen=True)
class Choice:
    """What is pressed, or a number that is typed, and what the link then says."""

    pressed: str
    name: str
    said: str


@dataclass(frozen=True)
class Case:
    """A page with a link. `held`: by its label, what each control behind "View" or "Options" then shows.

    `touched`: choices outside the popover; `changed`: one within it.
    """

    path: str
    link: dict[str, str]
    held: Values
    touched: tuple[Choice, Choice]
    changed: Choice


TEXT_LINK = {"data": "reviews", "index": "0", "method": "random"}
TEXT_TOUCHED = (Choice("3", "index", "3"), Choice("4", "index", "4"))
TEXT_SWITCHES = {
    "Explained class": "As predicted",
    "Second text, for models that read pairs": "off",
    "Unit": "Tokens",
}
PICTURE_LINK = {"data": "scenes:count=3", "index": "0", "method": "random"}
PICTURE_TOUCHED = (Choice("1", "index", "1"), Choice("2", "index", "2"))
HEADS_LINK = {"input": "text", "data": "nli", "index": "0"}
COMPARE_LINK = {"input": "text", "data": "reviews", "index": "0", "column": "none"}
CASES = {
    "text": Case(
        f"/{TEXT.url_path}",
        TEXT_LINK,
        TEXT_SWITCHES
        | {"Layout": "Flow", "Gamma": "1", "Scale": "Own", "Style": "Highlight", "Values under the tokens": "off"},
        TEXT_TOUCHED,
        Choice("Underline", "style", "underline"),
    ),
    "text, unusual": Case(
        f"/{TEXT.url_path}",
        TEXT_LINK | {"layout": "aligned", "gamma": "0.5", "scale": "shared", "style": "underline", "values": "on"},
        TEXT_SWITCHES
        | {
            "Layout": "Aligned", "Gamma": "0.5", "Scale": "Shared", "Style": "Underline",
            "Values under the tokens": "on",
        },
        TEXT_TOUCHED,
        Choice("Flow", "layout", ""),
    ),
    "images": Case(
        f"/{IMAGES.url_path}",
        PICTURE_LINK | {"gamma": "0.5", "scale": "shared", "outline": "off"},
        {
            "Explained class": "As predicted", "Split": "validation", "Scale": "Shared",
            "Gamma": "0.5", "Outline of the labeled object": "off",
        },
        PICTURE_TOUCHED,
        Choice("Own", "scale", ""),
    ),
    "attention": Case(
        f"/{ATTENTION.url_path}",
        HEADS_LINK
        | {"scale": "shared", "order": "score", "between": "a_to_b", "special": "off", "layers": "1", "heads": "0,1"},
        {
            "Explained class": "As predicted", "Second text, for models that read pairs": "on",
            "Map of each head": "Matrix", "Detail": "Matrix",
            "Scale": "Shared", "Order": "By score", "Attention between": "First to second text",
            "Special tokens in matrices": "off", "Layers": "1", "Heads": "0,1",
        },
        TEXT_TOUCHED,
        Choice("By layer", "order", ""),
    ),
    "compare": Case(
        f"/{COMPARE.url_path}",
        COMPARE_LINK | {"layout": "text", "scale": "common", "gamma": "0.5", "order": "size", "percent": "25"},
        {
            "Explained class": "Each model's prediction", "Second text, for models that read pairs": "off",
            "Show": "Scores", "Unit": "Words", "Layout": "Text",
            "Scale": "Common", "Gamma": "0.5", "Ranking": "Absolute value", "Top": "25%",
        },
        TEXT_TOUCHED,
        Choice("Table", "layout", "table"),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def models(model: str, vit: str) -> dict[str, str]:
    """By page: a tiny random model."""
    of_texts = {f"/{entry.url_path}": model for entry in (TEXT, ATTENTION, COMPARE)}
    return of_texts | {f"/{IMAGES.url_path}": vit}


@pytest.mark.parametrize("name", CASES)
def test_view_opened_late_holds_what_the_link_says_and_changes_nothing_else(
    name: str, server: Server, models: dict[str, str], open_page: Open
) -> None:
    case = CASES[name]
    link = {"model": models[case.path]} | case.link
    page = opened(open_page(f"{server.url}{case.path}?{urlencode(link)}"))
    first, second = case.touched
    choose(page.get_by_test_id("stMain"), first)
    assert asked(page) == with_choices(link, first)
    assert values(view(page), case) == case.held
    page.keyboard.press("Escape")
    choose(page.get_by_test_id("stMain"), second)
    assert asked(page) == with_choices(link, first, second)
    body = view(page)
    choose(body, case.changed)
    assert asked(page) == with_choices(link, first, second, case.changed)
    shown = values(body, case)
    assert [label for label in shown if shown[label] != case.held[label]] == [label_of(body, case.changed)]
    assert values(view(opened(open_page(page.url))), case) == shown


def opened(page: Page) -> Page:
    expect(page.get_by_role("button", name=BUTTON)).to_be_visible(timeout=TIMEOUT_MS)
    settled(page)
    return page


def view(page: Page) -> Locator:
    """The controls behind "View" or "Options", opened."""
    page.get_by_role("button", name=BUTTON).click()
    return page.get_by_test_id("stPopoverBody")


def values(body: Locator, case: Case) -> Values:
    """What each control shows."""
    for label in case.held:
        expect(body.get_by_label(label, exact=True).first).to_be_attached()
    read: Values = body.evaluate(READ)
    return read


def choose(within: Locator, choice: Choice) -> None:
    """Chooses it, and waits until the link says so and the page has followed."""
    if choice.name in NUMBERS:
        number = within.get_by_role("spinbutton", name=NUMBERS[choice.name])
        number.fill(choice.pressed)
        number.press("Enter")
    else:
        within.get_by_role("radio", name=choice.pressed, exact=True).click()
    said = re.compile(f"[?&]{choice.name}={choice.said}(&|$)")
    usual = re.compile(rf"^((?![?&]{choice.name}=).)*$")
    expect(within.page).to_have_url(said if choice.said else usual, timeout=TIMEOUT_MS)
    settled(within.page)


def label_of(body: Locator, choice: Choice) -> str | None:
    """The label of the control that holds the choice."""
    held = body.get_by_role("radiogroup").filter(has=body.page.get_by_role("radio", name=choice.pressed, exact=True))
    return held.get_attribute("aria-label")


def asked(page: Page) -> dict[str, str]:
    """What the address says."""
    return {name: values[-1] for name, values in parse_qs(urlsplit(page.url).query).items()}


def with_choices(link: dict[str, str], *choices: Choice) -> dict[str, str]:
    """The link after these choices: what is as usual is left out."""
    said = link | {choice.name: choice.said for choice in choices}
    return {name: value for name, value in said.items() if value}


def test_what_was_chosen_in_options_does_not_come_back_after_another_link(
    server: Server, model: str, open_page: Open
) -> None:
    link = {"model": model} | TEXT_LINK
    page = opened(open_page(f"{server.url}/{TEXT.url_path}?{urlencode(link)}"))
    choose(view(page), Choice("Words", "unit", "word"))
    page.keyboard.press("Escape")
    go_to(page, HOME)
    page.locator(".st-key-gallery").get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(TEXT.heading, timeout=TIMEOUT_MS)
    settled(page)
    assert "unit" not in asked(page)
    choose(page.get_by_test_id("stMain"), Choice("3", "index", "3"))
    assert "unit" not in asked(page)
