"""Cells of a table that people may open in a spreadsheet."""

from __future__ import annotations

ACTS_IN_A_SHEET = ("=", "+", "-", "@", "\t", "\r", "\n")
"""A spreadsheet takes a cell that begins so for a formula."""


def defused(text: str) -> str:
    """The text as a cell: after an apostrophe where a spreadsheet would take it for a formula."""
    return f"'{text}" if text.startswith(ACTS_IN_A_SHEET) else text


def as_written(cell: str) -> str:
    """The text of a cell that `defused` made."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(ACTS_IN_A_SHEET) else cell
