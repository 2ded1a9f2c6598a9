"""What is seen of the board of heads in Chromium, and what it should be by the palette alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from playwright.sync_api import Locator, Page

from components.palette import STEPS, Side, Theme, color
from engine.heads.matrices import LEVELS
from tests.browser.waiting import pixels

SCORES, THUMBS = "Score of each head", "What each head attends to"


def grid(page: Page, name: str) -> Locator:
    return page.get_by_role("grid", name=name, exact=True)


def cell(page: Page, head: str, name: str = SCORES) -> Locator:
    """The cell of a head such as 3.7."""
    layer, place = head.split(".")
    return (
        grid(page, name)
        .get_by_role("gridcell", name=f"layer {layer}, head {place}")
        .and_(page.locator(f'[data-head="{head}"]'))
    )


def thumbnails(page: Page) -> Iterator[tuple[tuple[int, int], np.ndarray]]:
    """Each head and the pixels of its thumbnail; nothing is in hand, and what lies over them is taken away."""
    page.mouse.move(1, 1)
    page.add_style_tag(content=".xg-stage [role=gridcell] { box-shadow: none !important }")
    page.add_style_tag(content=".xg-stage [role=gridcell]::before { display: none }")
    seen = pixels(page)
    boxes = (
        grid(page, THUMBS)
        .locator("[data-head]")
        .evaluate_all(
            "cells => cells.map(cell => [cell.dataset.head, cell.getBoundingClientRect()])"
            ".map(([head, { x, y, width, height }]) => [head, x, y, width, height])"
        )
    )
    for head, *box in boxes:
        x, y, width, height = map(round, box)
        layer, place = map(int, head.split("."))
        yield (layer, place), seen[y : y + height, x : x + width]


def ramp(theme: Theme, shares: np.ndarray, side: Side = "amount") -> np.ndarray:
    """The colors of shares from 0 to 1, between two of the palette's steps where they lie there."""
    steps = np.array([rgb(color(theme, side, step)) for step in range(STEPS + 1)])
    channels = [np.interp(shares * STEPS, np.arange(STEPS + 1), steps[:, channel]) for channel in range(3)]
    return np.rint(np.stack(channels, axis=-1)).astype(int)


def rgb(given: str) -> np.ndarray:
    return np.array([int(given[at : at + 2], 16) for at in (1, 3, 5)])


def levels(values: np.ndarray, end: float) -> np.ndarray:
    """Shares of a scale that ends there, in the steps of a byte."""
    return np.rint(values.astype(float) / end * LEVELS) / LEVELS


def enlarged(values: np.ndarray, height: int, width: int) -> np.ndarray:
    """For each pixel, the largest of the values that it shows."""
    rows = [spans(values.shape[0], height), spans(values.shape[1], width)]
    across = np.stack([values[:, low:high].max(1) for low, high in rows[1]], axis=1)
    return np.stack([across[low:high].max(0) for low, high in rows[0]])


def spans(cells: int, pixels: int) -> list[tuple[int, int]]:
    """By pixel: its first cell and the one after its last."""
    starts = [at * cells // pixels for at in range(pixels + 1)]
    return [(low, max(high, low + 1)) for low, high in pairwise(starts)]
