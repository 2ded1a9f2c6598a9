"""The table of maps: a column a unit, a row a method, the same colors and facts as in running text."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from streamlit.delta_generator import DeltaGenerator

from components.method_row import (
    MethodRow,
    Placeholder,
    aligned_html,
    line_html,
    method_row,
    method_row_html,
    quiet_line_html,
    waiting_placeholder,
)
from components.text.results import AlignedLayout
from components.widgets.token_map import token_map_html
from components.widgets.view_options import ViewOptions
from engine.registry import explainer
from engine.request import Example
from engine.result import Check
from tests.unit.components.making import explanation

EXAMPLE = Example("the cat sat", "no cat")
METHODS = ("gradient_x_input", "attention_mean", "random")


class Cells(HTMLParser):
    """Rows of cells, each with its attributes and its text; the tags seen anywhere."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[dict[str, str]]] = []
        self.tags: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append({"tag": tag, "text": "", **{name: value or "" for name, value in attrs}})

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1]["text"] += data


def row(
    method: str = METHODS[0], example: Example = EXAMPLE, look: ViewOptions | None = None, **made: object
) -> MethodRow:
    found = explanation(example, method=method, **made)  # type: ignore[arg-type]
    return method_row(explainer(method), found, example, "token", look=look or ViewOptions())


def table(*rows: MethodRow) -> str:
    return aligned_html(rows[0].view, [line_html(one) for one in rows], rows)


def test_each_row_has_a_cell_for_each_unit_and_a_name() -> None:
    rows = [row(method) for method in METHODS]
    head, *lines = Cells(table(*rows).partition("</table>")[0]).rows
    assert [cell["text"] for cell in head] == ["Method", *(unit.text for unit in rows[0].view.units)]
    assert len(lines) == len(METHODS)
    for line, one in zip(lines, rows, strict=True):
        assert line[0]["tag"] == "th"
        assert line[0]["text"].startswith(one.title)
        assert [cell["class"].split()[-2:] for cell in line[1:]] == [["xi0", f"j{n}"] for n in range(len(head) - 1)]


@pytest.mark.parametrize("look", [ViewOptions(), ViewOptions(gamma=0.5, values=True)], ids=["plain", "values"])
def test_a_cell_says_what_its_unit_says_in_running_text(look: ViewOptions) -> None:
    one = row(look=look)
    facts = r"data-v=[^>]*"
    assert re.findall(facts, line_html(one)) == re.findall(facts, token_map_html(one.view))
    tones = r'class="?([fam]\d+) '
    assert re.findall(tones, line_html(one)) == re.findall(tones, token_map_html(one.view))


def test_the_name_has_check_scale_and_cost_in_short() -> None:
    good = row(scores=[0.5, -0.25, 0, 0, 0], check=Check("completeness gap", 0.0, 0.1), cached=True)
    assert '<p class="xg-small">✓ ±0.5 · cached</p>' in line_html(good)
    bad = row("attention_mean", scores=[0.5, 0.25, 0, 0, 0], check=Check("gap", 1.0, 0.1))
    assert '<p class="xg-small">✗ 0 to 0.5 · 250 ms</p>' in line_html(bad)
    half = row(scores=[0.5, -0.25, 0, 0, 0], check=Check("gap", 0.0, 0.1, Check("change", 1.0, 0.1)), cached=True)
    assert '<p class="xg-small">✗ ±0.5 · cached</p>' in line_html(half)


def test_the_list_says_all_that_the_rows_say() -> None:
    one = row(notes=("A note.",), check=Check("gap", 0.0, 0.1))
    below = table(one).partition("</table>")[2]
    for said in (one.caution, "A note.", "✓ gap: 0", "12 evaluations", "<dt>source</dt>", "against, "):
        assert said in below
        assert said in method_row_html(one)


def test_units_inside_a_word_have_no_line_before_them() -> None:
    example = Example("films are")
    head = Cells(table(row(example=example, pieces=r"film|s|are"))).rows[0]
    assert [cell["text"] for cell in head if "xg-inside" in cell.get("class", "")] == ["s"]
    assert [cell["text"] for cell in head if "xg-gray" in cell.get("class", "")] == ["[CLS]", "[SEP]"]


@pytest.mark.parametrize(("text", "way"), [("שלום עולם", "rtl"), ("a film", "ltr")])
def test_the_table_runs_as_its_first_text_does(text: str, way: str) -> None:
    assert f'<table class="xg-grid" dir="{way}">' in table(row(example=Example(text, "other")))


@pytest.mark.parametrize(
    ("example", "ways"),
    [
        (Example("שלום (", "ok ("), ["ltr", "", "", "ltr", "ltr", "ltr", "ltr"]),
        (Example("ok (", "שלום ("), ["", "", "", "", "rtl", "rtl", ""]),
    ],
    ids=["right to left", "left to right"],
)
def test_each_head_is_read_as_its_own_text(example: Example, ways: list[str]) -> None:
    head = Cells(table(row(example=example))).rows[0][1:]
    assert [cell["text"] for cell in head][:3] == ["[CLS]", *example.text.split()]
    assert [cell.get("dir", "") for cell in head] == ways


def test_nothing_foreign_becomes_markup() -> None:
    bad = "<img src=x>"
    one = replace(row(example=Example(bad), pieces=r"\S+"), title=bad, cost=bad)
    html = table(one) + quiet_line_html(Placeholder(bad, bad, failed=True), 3)
    assert "img" not in Cells(html).tags
    assert html.count("&lt;img") >= 6


def test_it_scrolls_in_a_box_that_the_keyboard_reaches() -> None:
    assert re.search(r'<div class="xg-map xg-scroll" tabindex="0" role="region" aria-label="[^"]+">', table(row()))


def test_ten_rows_of_512_tokens_are_spelled_shortly() -> None:
    example = Example(" ".join(f"word{n % 7}" for n in range(510)))
    one = row(example=example, scores=[(-1) ** n * 1.2345e-3 / (n + 1) for n in range(510)])
    assert len(table(*[one] * 10).encode()) < 400_000


class Recorder(DeltaGenerator):
    """Stands for an element of the page."""

    def __init__(self) -> None:
        self.drawn: list[str] = []

    def empty(self) -> Recorder:
        return self

    def html(self, body: str) -> None:  # type: ignore[override]
        self.drawn.append(body)


def test_the_table_is_drawn_whole_each_time_it_is_shown() -> None:
    page, (above, one, two) = Recorder(), (row(method) for method in METHODS)
    grid = AlignedLayout(page, [above], one.view)
    slots = [grid.slot(one.title), grid.slot(two.title)]
    slots[0].html(grid.draw(one))
    slots[1].html(grid.quiet(waiting_placeholder(two.title, now=True)))
    assert page.drawn == []
    grid.show()
    slots[1].html(grid.draw(two))
    grid.show()
    first, second = page.drawn
    assert "being computed …" in first
    assert "being computed …" not in second
    assert second == aligned_html(one.view, [line_html(each) for each in (above, one, two)], (above, one, two))
