"""Tables that a page draws as HTML, as a person reads them."""

from __future__ import annotations

from html.parser import HTMLParser

from streamlit.testing.v1 import AppTest

Table = list[dict[str, str]]


class _Cells(HTMLParser):
    """The texts of the cells, row by row, of each table of numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.inside = "xg-numbers" in str(dict(attrs).get("class"))
            self.tables += [[]] if self.inside else []
        elif self.inside and tag == "tr":
            self.tables[-1].append([])
        elif self.inside and tag in ("th", "td"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "table"

    def handle_data(self, data: str) -> None:
        if self.inside and self.tables[-1] and self.tables[-1][-1]:
            self.tables[-1][-1][-1] += data


def tables_of(page: AppTest) -> list[Table]:
    """The rows of each table of numbers, values by the names of their columns."""
    cells = _Cells()
    for element in page.get("html"):
        cells.feed(element.proto.body)
    return [[dict(zip(head, row, strict=True)) for row in rows] for head, *rows in cells.tables]
