"""The drawings of one head within the board: they follow the pointer, and keep their place while Python answers."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import TIMEOUT_MS
from tests.browser.heads_seen import cell
from tests.browser.server import Server
from tests.head_readings import WORDS, picture_reading, text_reading

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def server(parts: Server) -> Server:
    return parts.page("attention")


def opened(server: Server, open_page: Open, query: str = "", apart: bool = False) -> Page:
    page = open_page(f"{server.url}?{query}", height=1400, apart=apart)
    expect(page.locator(".xg-one > .xg-said")).not_to_be_empty(timeout=TIMEOUT_MS)
    expect(page.get_by_text("after 1 runs")).to_be_visible(timeout=TIMEOUT_MS)
    return page


def test_the_matrix_follows_the_pointer_and_is_exact_for_the_locked_head_alone(server: Server, open_page: Open) -> None:
    page, made = opened(server, open_page, "head=3.7"), text_reading().attention
    matrix, said = page.get_by_role("application", name=re.compile("^Attention of head")), page.locator(".xg-said")
    expect(matrix).to_have_accessible_name(re.compile(r"^Attention of head 3\.7:"))
    matrix.focus()
    page.keyboard.press("ArrowDown")
    expect(said).to_contain_text(f"1 {WORDS[1]} → 0 {WORDS[0]}: {float(f'{made[3, 7, 1, 0]:.3g}'):g}")
    cell(page, "2.4").hover()
    expect(matrix).to_have_accessible_name(re.compile(r"^Attention of head 2\.4:"))
    expect(said).to_contain_text(f"1 {WORDS[1]} → 0 {WORDS[0]}: about ")
    expect(page.get_by_role("region", name="One head").locator(".xg-badge")).to_have_text("2.4")
    page.mouse.move(1, 1)
    expect(matrix).to_have_accessible_name(re.compile(r"^Attention of head 3\.7:"))


def test_lines_are_of_the_layer_or_of_the_one_head_that_is_alone(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "detail=lines&head=3.7")
    one = page.get_by_role("region", name="One head")
    expect(one.locator(".xg-heads .xg-badge")).to_have_text([f"3.{head}" for head in range(12)])
    expect(one.get_by_text("divided by 12, the number of heads shown")).to_be_visible()
    one.get_by_role("button", name="Alone").click()
    expect(one.get_by_text("Line opacity is the weight.")).to_be_visible()
    expect(one.locator(".xg-heads")).to_be_hidden()


def test_the_keyboard_stays_on_the_picture_while_python_answers(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "of=picture&detail=overlay")
    picture = page.get_by_role("application", name=re.compile("over the picture"))
    picture.focus()
    for key in ("ArrowDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    expect(page.get_by_text("Attention from the outlined patch, row 2, column 2.")).to_be_visible()
    expect(picture).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".xg-said")).to_contain_text("row 2, column 3")


def test_beside_matrices_the_picture_has_what_its_patches_receive(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "of=picture&detail=overlay&view=matrix&head=2.3")
    expect(page.get_by_text("Mean attention that each patch receives.")).to_be_visible()
    picture = page.get_by_role("application", name=re.compile("over the picture"))
    picture.focus()
    page.keyboard.press("Home")
    received = picture_reading().attention[2, 3, :, 1].astype(float).mean()
    expect(page.locator(".xg-said")).to_contain_text(f"{received:.3g} · rank ")


def test_while_the_attention_is_on_its_way_the_board_says_so_and_keeps_its_height(
    server: Server, open_page: Open
) -> None:
    page = opened(server, open_page, apart=True)
    page.add_init_script(
        "window.DecompressionStream = class extends TransformStream { constructor() { super(STUCK) } }"
    )
    page.add_init_script("window.STUCK = { transform: () => new Promise(() => {}) }")
    page.reload()
    expect(page.get_by_role("status").get_by_text("Loading the attention …")).to_be_visible(timeout=TIMEOUT_MS)
    one = page.get_by_role("region", name="One head")
    expect(one.get_by_text("Loading the attention …")).to_be_visible()
    for region in (one, page.get_by_role("region", name="All heads")):
        assert region.evaluate("region => region.clientHeight") > 350


@pytest.mark.parametrize("detail", ["matrix", "lines"])
def test_a_token_of_the_detail_becomes_the_one_whose_attention_all_heads_show(
    server: Server, open_page: Open, detail: str
) -> None:
    page = opened(server, open_page, f"view=query&detail={detail}")
    if detail == "matrix":
        page.get_by_role("application", name=re.compile("^Attention of head")).focus()
    else:
        page.get_by_role("listbox", name="Queries").get_by_role("option").first.focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect(page.get_by_text(f"Attention from “2 {WORDS[2]}”", exact=True)).to_be_visible()
    expect(page.get_by_text("query 2 after 2 runs")).to_be_visible()


def test_of_a_long_text_one_head_has_lines_until_all_are_asked_for(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "of=long&detail=lines&head=1.2")
    one = page.get_by_role("region", name="One head")
    expect(one.get_by_text("The text is long, so only the lines of one head are drawn.")).to_be_visible()
    expect(one.locator(".xg-heads .xg-badge")).to_have_text(["1.2"])
    one.get_by_role("button", name="All 4 heads").click()
    expect(one.locator(".xg-heads .xg-badge")).to_have_text([f"1.{head}" for head in range(4)])
    expect(one.get_by_text("The text is long")).to_be_hidden()
