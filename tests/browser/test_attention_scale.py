"""Where the colors of the board's thumbnails end, and what is said of it, in Chromium."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import expect

from engine.heads.matrices import select_positions
from tests.browser.attention_page import READINGS
from tests.browser.heads_seen import THUMBS, enlarged, grid, levels, ramp, thumbnails
from tests.browser.server import Server
from tests.browser.test_attention_board import EXACT, Open, opened, server
from tests.browser.waiting import boxes_of
from tests.head_readings import causal_reading, text_reading

__all__ = ["server"]


def test_a_part_of_a_matrix_has_the_colors_of_the_whole_head(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "of=pair&between=a_to_b&special=off")
    made = READINGS["pair"]()
    assert made is not None
    part = select_positions(made, "a_to_b", special=False)
    fainter = 0
    for head, seen in thumbnails(page):
        whole = made.attention[head]
        shown = whole[np.ix_(part.rows, part.columns)]
        shares = levels(shown, shown.max()) * (float(shown.max()) / float(whole.max()))
        assert np.abs(seen - ramp("light", enlarged(shares, *seen.shape[:2]))).max() <= EXACT, head
        fainter += shares.max() < 0.9
    assert fainter, "else the test would see no difference"
    expect(page.get_by_text("The colors of each head are scaled to its largest value")).to_be_visible()


@pytest.mark.parametrize("layers", [(1,), (0, 5)])
def test_a_shared_scale_is_that_of_the_heads_shown(server: Server, open_page: Open, layers: tuple[int, ...]) -> None:
    page = opened(server, open_page, f"scale=shared&layers={','.join(map(str, layers))}")
    attention = text_reading().attention
    end = attention[list(layers)].max()
    for head, seen in thumbnails(page):
        matrix = attention[head]
        shares = levels(matrix, matrix.max()) * (float(matrix.max()) / float(end))
        assert np.abs(seen - ramp("light", enlarged(shares, *seen.shape[:2]))).max() <= EXACT, head
    expect(page.get_by_text("the largest of the heads shown")).to_be_visible()


def test_bars_are_strengthened_too_where_that_is_asked(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "view=received")
    page.get_by_role("region", name="All heads").get_by_label("Strengthen faint values").check()
    expect(page.get_by_text("gamma 0.5: half the height at a quarter of it")).to_be_visible()
    maps, full = text_reading().received(), ramp("light", np.array(1.0))
    for head, seen in thumbnails(page):
        height, width = seen.shape[:2]
        filled = (np.abs(seen - full).max(-1) <= EXACT).sum(0)
        middles = ((np.arange(10) + 0.4) * width / 10).astype(int)
        wanted = (maps[head] / maps[head].max()) ** 0.5 * height
        assert np.abs(filled[middles] - wanted).max() <= 1, head


def test_a_map_below_even_attention_is_never_of_full_height(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "of=resting&view=query")
    for _, seen in thumbnails(page):
        filled = np.abs(seen - ramp("light", np.array(1.0))).max(-1) <= EXACT
        assert filled.any(0).mean() > 0.5
        assert filled.sum(0).max() <= seen.shape[0] / 2, "it rests on a special token"
    expect(page.get_by_text("at least 0.0833 (uniform attention)")).to_be_visible()


def test_the_hatch_is_explained_only_where_it_is_drawn(server: Server, open_page: Open) -> None:
    hatch = "masked, because the model reads from left to right"
    assert np.isnan(causal_reading().attention).any()
    expect(opened(server, open_page, "of=causal").get_by_text(hatch)).to_be_visible()
    expect(opened(server, open_page, "of=causal&view=received").get_by_text(hatch)).to_be_hidden()


def test_few_heads_fill_the_column_and_axes_have_names(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, "of=long")
    column, drawn = boxes_of(
        page.get_by_role("region", name="All heads"), grid(page, THUMBS).get_by_role("gridcell").last
    )
    assert drawn["x"] + drawn["width"] > column["x"] + 0.9 * column["width"]
    expect(grid(page, THUMBS).get_by_role("columnheader", name="layer")).to_be_visible()
    expect(grid(page, THUMBS).get_by_text("head", exact=True)).to_be_visible()
    page = opened(server, open_page, "of=long&order=score")
    expect(grid(page, THUMBS).get_by_role("columnheader", name="rank")).to_be_visible()
