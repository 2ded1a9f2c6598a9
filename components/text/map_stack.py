"""The two ways in which the Text page shows its maps as they come: one below the other, or as one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from streamlit.delta_generator import DeltaGenerator

from components.filling import Slot
from components.method_row import MethodRow, Quiet, method_row_html, quiet_html
from components.text.aligned_map import aligned_html, line_html, quiet_line_html
from components.widgets.token_map import TokenMap


@runtime_checkable
class Stack(Protocol):
    """Takes methods in the order in which they stand, then what is drawn of each."""

    def slot(self, title: str) -> Slot:
        """The next method's place."""

    def draw(self, row: MethodRow) -> str:
        """What stands in a method's place."""

    def quiet(self, row: Quiet) -> str:
        """What stands there while there is no map."""

    def show(self) -> None:
        """Brings everything drawn so far into sight."""


class Flow:
    """A row for each method, in sight as soon as it is drawn."""

    def __init__(self, place: DeltaGenerator, above: Sequence[MethodRow]) -> None:
        self._place = place
        for row in above:
            place.html(method_row_html(row))

    def slot(self, title: str) -> Slot:
        place: Slot = self._place.empty()
        return place

    def draw(self, row: MethodRow) -> str:
        return method_row_html(row)

    def quiet(self, row: Quiet) -> str:
        return quiet_html(row)

    def show(self) -> None:
        pass


class Table:
    """One table, drawn whole: its columns are as wide as their widest cell."""

    def __init__(self, place: DeltaGenerator, above: Sequence[MethodRow], head: TokenMap) -> None:
        self._place, self._head = place.empty(), head
        self._rows: dict[str, MethodRow] = {}
        self.lines: list[str] = []
        self._titles = [row.title for row in above]
        for row in above:
            self.lines.append(self.draw(row))

    def slot(self, title: str) -> Slot:
        self.lines.append("")
        self._titles.append(title)
        return _Line(self, len(self.lines) - 1)

    def draw(self, row: MethodRow) -> str:
        self._rows[row.title] = row
        return line_html(row)

    def quiet(self, row: Quiet) -> str:
        self._rows.pop(row.title, None)
        return quiet_line_html(row, len(self._head.units))

    def show(self) -> None:
        told = [self._rows[title] for title in self._titles if title in self._rows]
        self._place.html(aligned_html(self._head, self.lines, told))


@dataclass(frozen=True)
class _Line:
    table: Table
    number: int

    def html(self, body: str) -> None:
        self.table.lines[self.number] = body
