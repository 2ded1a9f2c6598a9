"""A comparison as files to keep: a page that stands alone, tables, JSON, and how to cite and repeat it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from html import escape

from components.citing import cited_html, origin_of, references
from components.compare.about import about_html
from components.compare.board import board_html
from components.compare.cards import cards_html
from components.compare.compared import Column, Compared, verdict
from components.compare.matrix import MEASURE_TITLES, agreement_words, missing_words, parts_words
from components.compare.state import LETTERS
from components.compare.styles import compare_sheet
from components.export_page import command_html, standing_page
from components.inputs.picture_choice import PictureFocus
from components.looked_at import command_line, picture_arguments, text_arguments
from components.numbers import hundredths, percent
from components.widgets.patch_map.picture import picture_sheet
from engine.comparison.agreeing import ORDERS
from engine.metrics.agreement import MEASURES, TOP_PERCENT
from engine.request import Example
from engine.table_io import escape_cell


def html(compared: Compared) -> str:
    """The maps and the matrix as one file: style inside, no script, nothing fetched, light and dark."""
    drawn = cards_html(compared) if compared.state.kind == "image" else board_html(compared)
    told = filter(None, (verdict(compared.columns), parts_words(compared)))
    sections = [
        f"{''.join(f'<p>{escape(line)}</p>' for line in told)}{drawn}{about_html(compared)}",
        matrix_html(compared),
    ]
    sections.append(f"<h2>Cite this</h2>{cite_html(compared)}")
    if compared.state.input is not None:
        sections.append(command_html(compared.state.input, command(compared)))
    sheets = (sheet.removeprefix("<style>").removesuffix("</style>") for sheet in (picture_sheet(), compare_sheet()))
    return standing_page("Models and methods compared", sections, f"{''.join(sheets)}.xg-beside-box{{max-height:none}}")


def matrix_html(compared: Compared) -> str:
    """The matrix as a table, with what it measures."""
    found = compared.found
    if found is None or len(compared.there) < 2:
        return ""
    heads = "".join(f"<th scope=col>{column.letter}</th>" for column in compared.there)
    rows = "".join(
        f"<tr><th scope=row>{escape(column.name)}</th>{_cells(row, found.measure)}</tr>"
        for column, row in zip(compared.there, found.values.tolist(), strict=True)
    )
    words = " ".join(filter(None, (agreement_words(found, compared.look, compared.unit), missing_words(compared))))
    return (
        f'<h2>{MEASURE_TITLES[found.measure]}</h2><table class="xg-beside-maps"><thead><tr><th></th>{heads}</tr>'
        f'</thead><tbody>{rows}</tbody></table><p class="xg-small">{escape(words)}</p>'
    )


def scores_csv(compared: Compared) -> str:
    """A row a part, a column a map: scores in full, empty where a model does not read the part."""
    columns: list[object] = [
        "part",
        "start",
        "end",
        "segment",
        *(escape_cell(_code(compared, column)) for column in compared.there),
    ]
    rows: list[list[object]] = []
    if compared.sheet is not None:
        for part, scores in zip(compared.sheet.parts, compared.sheet.scores.T.tolist(), strict=True):
            place = [escape_cell(part.text), part.start, part.end, part.segment]
            rows.append([*place, *("" if score != score else repr(score) for score in scores)])
    return _sheet([columns, *rows])


def matrix_csv(compared: Compared) -> str:
    """A row for every two maps: both measures in full, empty where a map has no order."""
    rows: list[list[object]] = [["column", "other", "order", "top_percent", *MEASURES]]
    found = {measure: compared.by(measure) for measure in MEASURES}
    for i, one in enumerate(compared.there):
        for j, other in enumerate(compared.there[: i + 1]):
            values = [found[measure].values[i, j] for measure in MEASURES]
            named = [escape_cell(_code(compared, column)) for column in (other, one)]
            told = ("" if value != value else repr(float(value)) for value in values)
            rows.append([*named, compared.look.order, compared.look.percent, *told])
    return _sheet(rows)


def comparison_json(compared: Compared) -> str:
    """What `exegesis compare --json` prints."""
    from engine.comparison.plain import as_plain

    if compared.sheet is None:
        return "{}\n"
    failed = {_code(compared, column): column.said for column in compared.columns if column.made is None}
    made = [column.made for column in compared.there if column.made is not None]
    plain = as_plain([_code(compared, column) for column in compared.there], made, compared.sheet, compared.how, failed)
    return json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def command(compared: Compared) -> str:
    """The command that makes the same numbers, quoted for a POSIX shell."""
    example = compared.state.input
    return command_line(_arguments(compared), example if isinstance(example, Example) else None)


def cite_html(compared: Compared) -> str:
    """Product, version, models and revisions, and a reference for each method. Everything foreign is escaped."""
    shown = [(column, column.made) for column in compared.there if column.made is not None]
    origins = [f"{column.letter}: {origin_of(made)}" for column, made in shown]
    lines = (line for column, made in shown for line in references(((column.method, made),)))
    return cited_html(" ".join(origins[:1]), [*origins[1:], *dict.fromkeys(lines)])


def _arguments(compared: Compared) -> list[str]:
    state, look = compared.state, compared.look
    given = ["compare", *(part for pair in state.columns for part in ("--column", pair.code))]
    if isinstance(state.focus, PictureFocus):
        given += picture_arguments(state.focus)
    elif isinstance(state.input, Example):
        given += text_arguments(state.input)
    unusual = (
        ("--target", state.target, None), ("--unit", look.unit, "word"), ("--measure", look.measure, MEASURES[0]),
        ("--order", look.order, ORDERS[0]), ("--percent", look.percent, TOP_PERCENT), ("--seed", state.seed, 0),
    )  # fmt: skip
    return [
        *given,
        *(str(part) for name, value, usual in unusual if value != usual for part in (name, value)),
        "--json",
    ]


def _code(compared: Compared, column: Column) -> str:
    return compared.state.columns[LETTERS.index(column.letter)].code


def _cells(values: Sequence[float], measure: str) -> str:
    return "".join(f"<td>{_cell(value, measure)}</td>" for value in values)


def _cell(value: float, measure: str) -> str:
    if value != value:
        return "none"
    return hundredths(value, sign=True) if measure == "spearman" else percent(value)


def _sheet(rows: list[list[object]]) -> str:
    sheet = io.StringIO(newline="")
    csv.writer(sheet, lineterminator="\r\n").writerows(rows)
    return sheet.getvalue()
