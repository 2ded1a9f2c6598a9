"""The board of the study in Chromium: an order by mouse, by touch and by key, and what Python is told of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import CDPSession, Locator, Page, WebSocket, expect

from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import box_of, boxes_of, expect_fits

Open = Callable[..., Page]
MIDDLE, START, END = 0.5, 0.1, 0.9
ANIMATED = """grip => {
  grip.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowUp", bubbles: true }));
  return grip.closest(".xg-ranked").getAnimations().length;
}"""

NOTE_THE_END_OF_A_SCROLL = """() => {
  window.scrolled = false;
  document.addEventListener("scrollend", () => { window.scrolled = true; }, { capture: true, once: true });
}"""
"""What a finger scrolled rolls on after it was lifted: a place that is read before its end is one that moves."""


@pytest.fixture(scope="module")
def server(parts: Server) -> Server:
    """A page of the board alone."""
    return parts.page("rank")


@pytest.fixture
def page(server: Server, open_page: Open) -> Page:
    return opened(server, open_page)


def opened(server: Server, open_page: Open, query: str = "", **more: object) -> Page:
    return shown(open_page(f"{server.url}?{query}", **more))


def shown(page: Page) -> Page:
    expect(confirm(page)).to_be_visible(timeout=TIMEOUT_MS)
    expect_held(page, "nothing")
    return page


@pytest.fixture
def phone(server: Server, open_page: Open) -> Page:
    """A small screen that is touched, with six long texts."""
    return opened(server, open_page, "n=6&long=1", width=390, height=844, touch=True)


def grip(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=f"Explanation {name},")


def card(page: Page, name: str) -> Locator:
    return page.get_by_role("group", name=f"Explanation {name}", exact=True)


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def confirm(page: Page) -> Locator:
    return page.get_by_role("button", name=re.compile("^Confirm"))


def steps(page: Page) -> Locator:
    return page.get_by_role("list", name="Your order, best first").get_by_role("listitem")


def expect_order(page: Page, *names: str) -> None:
    """The steps by what a screen reader says of them: '1st of 3: B'."""
    expect(steps(page)).to_have_count(len(names))
    for at, name in enumerate(names):
        expect(steps(page).nth(at)).to_have_accessible_name(name)


def expect_said(page: Page, said: str) -> None:
    expect(page.get_by_role("status").get_by_text(said, exact=True)).to_have_count(1, timeout=TIMEOUT_MS)


def expect_held(page: Page, ranks: str) -> None:
    expect(page.get_by_text(f"Python holds {ranks}, turn")).to_be_visible(timeout=TIMEOUT_MS)


def within(place: Locator, right: float, down: float) -> tuple[float, float]:
    box = box_of(place)
    return box["x"] + right * box["width"], box["y"] + down * box["height"]


def still(page: Page) -> None:
    """Nothing glides: where a card is asked for, it is."""
    page.emulate_media(reduced_motion="reduce")


def drag(page: Page, name: str, to: tuple[float, float], drop: bool = True) -> None:
    page.mouse.move(*within(grip(page, name), MIDDLE, MIDDLE))
    page.mouse.down()
    page.mouse.move(*to, steps=4)
    if drop:
        page.mouse.up()


def test_nothing_can_be_confirmed_before_the_order_was_touched(page: Page) -> None:
    expect_order(page, "1st of 3: A", "2nd of 3: B", "3rd of 3: C")
    expect(confirm(page)).to_be_disabled()
    expect(button(page, "Undo")).to_be_disabled()
    confirm(page).click(force=True)
    grip(page, "B").click()
    expect_said(page, "B stays 2nd of 3.")
    expect(confirm(page)).to_be_enabled()
    button(page, "Undo").click()
    expect(confirm(page)).to_be_disabled()
    expect_held(page, "nothing")
    expect(page.get_by_text("Run 1", exact=True)).to_be_visible()


def test_by_mouse_cards_are_put_before_and_into_others(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "n=4")
    still(page)
    drag(page, "C", within(steps(page).nth(0), MIDDLE, START))
    expect_order(page, "1st of 4: C", "2nd of 4: A", "3rd of 4: B", "4th of 4: D")
    drag(page, "D", within(steps(page).nth(1), MIDDLE, MIDDLE), drop=False)
    expect(steps(page).nth(1)).to_have_attribute("data-drop", "into")
    page.mouse.up()
    expect_order(page, "1st of 4: C", "2nd of 4: A and D, tied", "4th of 4: B")
    expect_said(page, "D is now 2nd of 4, tied with A.")
    drag(page, "A", within(steps(page).nth(2), MIDDLE, END))
    expect_order(page, "1st of 4: C", "2nd of 4: D", "3rd of 4: B", "4th of 4: A")
    button(page, "Undo").click()
    confirm(page).click()
    expect_held(page, "2,4,1,2")
    expect_said(page, "Your order: C, then A and D (tied), then B. Confirmed.")
    expect(confirm(page)).to_be_disabled()
    expect(button(page, "Undo")).to_be_disabled()


def test_escape_takes_a_dragged_card_back(page: Page) -> None:
    still(page)
    drag(page, "C", within(steps(page).nth(0), MIDDLE, START), drop=False)
    expect(steps(page).nth(0)).to_have_attribute("data-drop", "before")
    page.keyboard.press("Escape")
    page.mouse.up()
    expect_order(page, "1st of 3: A", "2nd of 3: B", "3rd of 3: C")
    expect(page.locator("[data-drop]")).to_have_count(0)
    expect(confirm(page)).to_be_disabled()


def test_by_keyboard_alone_an_order_with_a_tie_is_made_and_confirmed(page: Page) -> None:
    button(page, "Forget").focus()
    for name in "AB":
        page.keyboard.press("Tab")
        expect(grip(page, name)).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect_order(page, "1st of 3: B", "2nd of 3: A", "3rd of 3: C")
    expect_said(page, "B is now 1st of 3.")
    expect(grip(page, "B")).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect_said(page, "B stays 1st of 3: nothing is above it.")
    page.keyboard.press("t")
    expect_said(page, "B stays 1st of 3: nothing is above it to tie with.")
    page.keyboard.press("End")
    page.keyboard.press("t")
    expect_order(page, "1st of 3: A", "2nd of 3: B and C, tied")
    expect_said(page, "B is now 2nd of 3, tied with C.")
    page.keyboard.press("T")
    expect_order(page, "1st of 3: A", "2nd of 3: C", "3rd of 3: B")
    page.keyboard.press("t")
    for name in ("Cannot tell", "Undo", "Confirm"):
        while not button(page, name).evaluate("button => button === document.activeElement"):
            page.keyboard.press("Tab")
        assert button(page, name).evaluate("button => parseFloat(getComputedStyle(button).outlineWidth)") >= 2
    page.keyboard.press("Enter")
    expect_held(page, "1,2,2")
    expect(confirm(page)).to_be_focused()


def test_buttons_of_a_card_do_what_the_keys_do(page: Page) -> None:
    button(page, "Move C up").click()
    expect_order(page, "1st of 3: A", "2nd of 3: C", "3rd of 3: B")
    button(page, "Tie B with the one above").click()
    expect_order(page, "1st of 3: A", "2nd of 3: B and C, tied")
    button(page, "Split B from the tie").click()
    button(page, "Move A down").click()
    expect_order(page, "1st of 3: C", "2nd of 3: A", "3rd of 3: B")


def finger(session: CDPSession, kind: str, *at: float) -> None:
    points = [{"x": at[0], "y": at[1]}] if at else []
    session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


def swipe(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    session = page.context.new_cdp_session(page)
    finger(session, "touchStart", *start)
    for part in range(1, 9):
        finger(session, "touchMove", *(a + (b - a) * part / 8 for a, b in zip(start, end, strict=True)))
    finger(session, "touchEnd")


def test_a_finger_on_a_letter_drags_and_elsewhere_it_scrolls(phone: Page) -> None:
    still(phone)
    x, y = within(card(phone, "A"), MIDDLE, 0)
    before = box_of(card(phone, "A"))["y"]
    phone.evaluate(NOTE_THE_END_OF_A_SCROLL)
    swipe(phone, (x, y + 250), (x, y + 20))
    phone.wait_for_function("scrolled")
    assert box_of(card(phone, "A"))["y"] < before - 100
    expect(button(phone, "Undo")).to_be_disabled()
    # In the middle: at the edge of the window the page's header may lie over it.
    grip(phone, "B").evaluate("grip => grip.scrollIntoView({ block: 'center' })")
    start = within(grip(phone, "B"), MIDDLE, MIDDLE)
    swipe(phone, start, (start[0], start[1] - 40))
    expect(phone.get_by_role("status")).to_contain_text("B ")
    expect(button(phone, "Undo")).to_be_enabled()
    expect_fits(phone)


def test_a_drag_to_the_end_of_the_screen_scrolls_on_through_a_long_list(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "n=4&long=1", width=390, height=844)
    still(page)
    drag(page, "A", (100, 830), drop=False)
    end = "() => document.querySelector('.xg-steps > :last-child').getBoundingClientRect().bottom < 830"
    page.wait_for_function(end, timeout=TIMEOUT_MS)
    page.mouse.up()
    expect(steps(page).nth(3)).to_have_accessible_name("4th of 4: A")
    expect_fits(page)


def test_cannot_tell_is_an_answer_and_a_move_takes_it_back(page: Page) -> None:
    button(page, "Cannot tell").click()
    expect(page.get_by_role("button", name="Cannot tell", pressed=True)).to_be_visible()
    confirm(page).click()
    expect_held(page, "cannot tell")
    expect_said(page, "You cannot tell. Confirmed.")
    button(page, "Move B up").click()
    expect(page.get_by_role("button", name="Cannot tell", pressed=False)).to_be_visible()
    confirm(page).click()
    expect_held(page, "2,1,3")
    expect(page.get_by_text("turn 2, tokens 2")).to_be_visible()


def test_an_order_stays_when_the_script_runs_again_and_a_confirmed_one_is_told(page: Page) -> None:
    button(page, "Move C up").click()
    button(page, "Run again").click()
    expect(page.get_by_text("Run 2", exact=True)).to_be_visible(timeout=TIMEOUT_MS)
    expect_order(page, "1st of 3: A", "2nd of 3: C", "3rd of 3: B")
    expect(page.get_by_text("Not confirmed yet.")).to_be_visible()
    confirm(page).click()
    expect_held(page, "1,3,2")
    button(page, "Run again").click()
    expect(page.get_by_text("Run 4", exact=True)).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.locator(".xg-said")).to_have_text("Your order: A, then C, then B. Confirmed.")


def test_what_could_not_be_saved_is_not_confirmed(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "fail=1")
    button(page, "Move C up").click()
    confirm(page).click()
    expect(page.get_by_text("study: it is <b>closed</b>. Your answer was not saved.")).to_be_visible(timeout=TIMEOUT_MS)
    expect_held(page, "nothing")
    expect(page.locator(".xg-said")).to_have_text("Your order: A, then C, then B. Not confirmed yet.")
    confirm(page).click()
    expect_held(page, "1,3,2")
    expect(page.get_by_text("Your answer was not saved.")).to_have_count(0)


def test_while_it_is_saved_nothing_moves_and_sent_twice_it_counts_once(
    server: Server, open_page: Open, tmp_path: Path
) -> None:
    file = tmp_path / "saves"
    page = opened(server, open_page, f"until={file}", hasty=True)
    button(page, "Move C up").click()
    confirm(page).click()
    expect(page.locator(".xg-said")).to_contain_text("Saving …")
    expect(button(page, "Cannot tell")).to_be_disabled()
    grip(page, "A").press("ArrowDown")
    expect_order(page, "1st of 3: A", "2nd of 3: C", "3rd of 3: B")
    button(page, "Confirm again").click(timeout=TIMEOUT_MS)
    file.touch()
    expect_held(page, "1,3,2")
    expect(page.get_by_text("turn 1, tokens 1")).to_be_visible()
    expect(page.locator(".xg-said")).to_contain_text("Confirmed.", timeout=TIMEOUT_MS)


def test_the_browser_sends_places_and_nothing_else(server: Server, open_page: Open) -> None:
    page = open_page("about:blank", apart=True)
    frames: list[bytes] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framesent", lambda frame: frames.append(frame if isinstance(frame, bytes) else frame.encode()))

    page.on("websocket", listen)
    page.add_init_script("delete Crypto.prototype.randomUUID")  # as on a page without https
    page.goto(server.url)
    button(shown(page), "Move B up").click()
    confirm(page).click()
    expect_held(page, "2,1,3")
    [sent] = [found for frame in frames for found in re.findall(rb'\{"ballot".*?\}', frame.replace(b"\\", b""))]
    assert json.loads(sent).keys() == {"ballot", "ranks", "turn", "token"}


def test_cards_glide_unless_motion_is_not_wanted(page: Page) -> None:
    assert grip(page, "C").evaluate(ANIMATED) == 1
    still(page)
    page.wait_for_function("() => !document.querySelector('.xg-steps').getAnimations({ subtree: true }).length")
    assert grip(page, "C").evaluate(ANIMATED) == 0


def test_pictures_stand_side_by_side_and_best_is_left(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "pictures=1")
    still(page)
    boxes = boxes_of(*(steps(page).nth(at) for at in range(3)))
    assert boxes[0]["x"] < boxes[1]["x"] < boxes[2]["x"]
    assert len({box["y"] for box in boxes}) == 1
    drag(page, "A", within(steps(page).nth(2), END, MIDDLE))
    expect_order(page, "1st of 3: B", "2nd of 3: C", "3rd of 3: A")
    grip(page, "B").press("ArrowRight")
    expect_order(page, "1st of 3: C", "2nd of 3: B", "3rd of 3: A")
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function("() => getComputedStyle(document.querySelector('.xg-steps')).gridAutoFlow !== 'column'")
    ups = [box["y"] for box in boxes_of(*(steps(page).nth(at) for at in range(3)))]
    assert ups == sorted(set(ups))
    expect_fits(page)
