"""A comparison as files: a standalone page, tables and JSON, with the citation and the command."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from functools import partial
from html import escape
from typing import Any

import streamlit as st

from components.compare.comparison import ColumnMap, Comparison, OtherMap, class_verdict
from components.compare.maps_html import about_html, compare_sheet, picture_maps_html, text_maps_html
from components.compare.results import MEASURE_TITLES, agreement_words, missing_words, parts_words
from components.compare.state import LETTERS, key
from components.compare.texts import texts_html
from components.export import (
    FileOf,
    citation,
    citation_box,
    citation_html,
    command_html,
    command_line,
    file_button,
    how_to_repeat,
    input_arguments,
    input_button,
    reads_file,
    references,
    standalone_page,
)
from components.numbers import hundredths, percent
from components.styles import asset_sheet
from components.widgets.patch_map import picture_sheet
from engine.comparison.agreement import ORDERS
from engine.comparison.experiment import comparison_to_json
from engine.comparison.texts import two_text_maps, two_texts_to_json
from engine.metrics.agreement import MEASURES, TOP_PERCENT
from engine.request import Example
from engine.table_io import escape_cell


def comparison_html(comparison: Comparison) -> str:
    """Return the maps and the matrix as one HTML file without scripts or external resources, light and dark."""
    maps = picture_maps_html(comparison) if comparison.state.kind == "image" else text_maps_html(comparison)
    lines = filter(None, (class_verdict(comparison.columns), parts_words(comparison)))
    sections = [
        f"{''.join(f'<p>{escape(line)}</p>' for line in lines)}{maps}{about_html(comparison)}",
        matrix_html(comparison),
    ]
    sections.append(texts_html(comparison))
    sections.append(f"<h2>Cite this</h2>{cite_html(comparison)}")
    if comparison.state.input is not None:
        sections.append(command_html(comparison.state.input, command(comparison)))
    sheets = (sheet.removeprefix("<style>").removesuffix("</style>") for sheet in (picture_sheet(), compare_sheet()))
    css = f"{''.join(sheets)}{asset_sheet('questions') if comparison.others else ''}.xg-beside-box{{max-height:none}}"
    return standalone_page("Models and methods compared", filter(None, sections), css)


def matrix_html(comparison: Comparison) -> str:
    """Return the matrix as an HTML table, with a description of the measure."""
    agreement = comparison.agreement
    if agreement is None or len(comparison.explained) < 2:
        return ""
    heads = "".join(f"<th scope=col>{column.letter}</th>" for column in comparison.explained)
    rows = "".join(
        f"<tr><th scope=row>{escape(column.name)}</th>{_cells(row, agreement.measure)}</tr>"
        for column, row in zip(comparison.explained, agreement.values.tolist(), strict=True)
    )
    words = " ".join(
        filter(None, (agreement_words(agreement, comparison.view, comparison.unit), missing_words(comparison)))
    )
    return (
        f'<h2>{MEASURE_TITLES[agreement.measure]}</h2><table class="xg-beside-maps"><thead><tr><th></th>{heads}</tr>'
        f'</thead><tbody>{rows}</tbody></table><p class="xg-small">{escape(words)}</p>'
    )


def scores_csv(comparison: Comparison) -> str:
    """Return the scores as CSV: one row per part, one column per map.

    Scores are unrounded, and empty if a model does not read the part.
    """
    codes = (escape_cell(_pair_code(comparison, column)) for column in comparison.explained)
    rows: list[list[object]] = [["part", "start", "end", "segment", *codes]]
    if comparison.maps is not None:
        for part, scores in zip(comparison.maps.parts, comparison.maps.scores.T.tolist(), strict=True):
            place = [escape_cell(part.text), part.start, part.end, part.segment]
            rows.append([*place, *("" if score != score else repr(score) for score in scores)])
    return _csv(rows)


def matrix_csv(comparison: Comparison) -> str:
    """Return the agreement as CSV, one row per pair of maps with both measures.

    Values are unrounded, and empty if a map has no order.
    """
    rows: list[list[object]] = [["column", "other", "order", "top_percent", *MEASURES]]
    agreements = [comparison.agreement_of(measure) for measure in MEASURES]
    for i, one in enumerate(comparison.explained):
        for j, other in enumerate(comparison.explained[: i + 1]):
            values = [agreement.values[i, j] for agreement in agreements]
            codes = [escape_cell(_pair_code(comparison, column)) for column in (other, one)]
            cells = ("" if value != value else repr(float(value)) for value in values)
            rows.append([*codes, comparison.view.order, comparison.view.percent, *cells])
    return _csv(rows)


def comparison_json(comparison: Comparison) -> str:
    """Return the output of `exegesis compare --json`."""
    if comparison.maps is None:
        return "{}\n"
    codes = [_pair_code(comparison, column) for column in comparison.explained]
    failed = {_pair_code(comparison, one): one.message for one in comparison.columns if one.explanation is None}
    plain = comparison_to_json(
        codes, comparison.explanations, comparison.maps, comparison.agreement_options, failed
    )  # fmt: skip
    if comparison.others:
        plain["other"] = [_other_to_json(comparison, one) for one in comparison.others]
    return json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _other_to_json(comparison: Comparison, one: OtherMap) -> dict[str, Any]:
    state = comparison.state
    first, example, other = one.column.explanation, state.input, state.other_input
    assert first is not None
    assert isinstance(example, Example)
    assert other is not None
    maps = two_text_maps(first, one.explanation, (example, other), state.view.unit)
    return two_texts_to_json(_pair_code(comparison, one.column), one.explanation, maps)


def command(comparison: Comparison) -> str:
    """Return the command that computes the same values, quoted for a POSIX shell."""
    example = comparison.state.input
    return command_line(_arguments(comparison), example if isinstance(example, Example) else None)


def cite_html(comparison: Comparison) -> str:
    """Return the citation as HTML: product, version, models, revisions, and the methods' references.

    All foreign text is escaped.
    """
    explained = list(zip(comparison.explained, comparison.explanations, strict=True))
    origins = [f"{column.letter}: {citation(explanation, comparison.state.input)}" for column, explanation in explained]
    lines = (line for column, explanation in explained for line in references(((column.method, explanation),)))
    return citation_html(" ".join(origins[:1]), [*origins[1:], *dict.fromkeys(lines)])


def _arguments(comparison: Comparison) -> list[str]:
    state, view = comparison.state, comparison.view
    columns = (part for pair in state.columns for part in ("--column", pair.code))
    options = (
        ("--target", state.target, None), ("--other", state.other, None), ("--unit", view.unit, "word"),
        ("--measure", view.measure, MEASURES[0]),
        ("--order", view.order, ORDERS[0]), ("--percent", view.percent, TOP_PERCENT), ("--seed", state.seed, 0),
    )  # fmt: skip
    return [
        "compare",
        *columns,
        *input_arguments(state.focus),
        *(str(part) for name, value, default in options if value != default for part in (name, value)),
        "--json",
    ]


def _pair_code(comparison: Comparison, column: ColumnMap) -> str:
    return comparison.state.columns[LETTERS.index(column.letter)].code


def _cells(values: Sequence[float], measure: str) -> str:
    return "".join(f"<td>{_cell(value, measure)}</td>" for value in values)


def _cell(value: float, measure: str) -> str:
    if value != value:
        return "none"
    return hundredths(value, sign=True) if measure == "spearman" else percent(value)


def _csv(rows: list[list[object]]) -> str:
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\r\n").writerows(rows)
    return file.getvalue()


def export_panel(comparison: Comparison) -> None:
    """Draw the download buttons and the citation. A file is built only when its button is pressed."""
    if not comparison.explained:
        return
    state = comparison.state
    st.subheader("Export", anchor=False)
    with st.container(horizontal=True, gap="small", key=key(state.kind, "keep")):
        for label, name, kind, build, help in FILES:
            file_button(label, name, kind, partial(build, comparison), help, key(state.kind, f"keep_{label}"))
        if reads_file(state.focus):
            input_button(state.focus, key(state.kind, "keep_input"))
    if len(comparison.columns) > 1 or comparison.others:
        repeat = (how_to_repeat(state.focus), command(comparison))
        citation_box(cite_html(comparison), [repeat], f"compare_{state.kind}_cite")


FILES: Sequence[FileOf[Comparison]] = (
    (
        "HTML", "exegesis-compare.html", "text/html", comparison_html,
        "Maps and matrix as one self-contained page.",
    ),
    ("CSV", "exegesis-compare.csv", "text/csv", scores_csv, "One row per part, one column per map."),
    ("Matrix", "exegesis-agreement.csv", "text/csv", matrix_csv, "One row per pair of maps, with both measures."),
    ("JSON", "exegesis-compare.json", "application/json", comparison_json, "The output of the command below."),
)  # fmt: skip
