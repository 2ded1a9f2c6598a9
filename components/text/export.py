"""The export of the Text page: maps and scores as files, with the citation and the command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from components.export import (
    ExplainedMethods,
    FileOf,
    cite,
    cite_html,
    command_html,
    command_line,
    explain_arguments,
    explanations_json,
    export_area,
    png_button,
    references,
    standalone_page,
    text_arguments,
)
from components.map_rows import token_rows
from components.method_row import MethodRow, aligned_html, line_html, method_row, method_row_html, token_map
from components.prediction import prediction_html
from components.progress import shared_scale_ends
from components.styles import STACK, unit_selector
from components.text.state import TextState
from components.widgets.token_map import to_units
from components.widgets.token_map.svg import maps_svg
from components.widgets.view_options import DEFAULT_VIEW, ViewOptions
from engine.registry import Explainer
from engine.request import Example
from engine.result import Explanation, Token
from engine.table_io import to_csv


@dataclass(frozen=True)
class TextExport:
    """The content of the files: the example, its unit, the methods with their explanations, and rows above them.

    `pins`: positions of tokens whose units are outlined.
    """

    example: Example
    unit: str
    methods: ExplainedMethods
    above: tuple[MethodRow, ...] = ()
    view: ViewOptions = DEFAULT_VIEW
    pins: tuple[int, ...] = ()

    @cached_property
    def rows(self) -> tuple[MethodRow, ...]:
        """The rows above, then one row per method."""
        ends = shared_scale_ends(self.methods, self._extent) if self.view.shared else {}
        return self.above + tuple(
            method_row(method, explanation, self.example, self.unit, look=self.view, ends=ends)
            for method, explanation in self.methods
        )

    @property
    def pinned(self) -> frozenset[int]:
        """The positions of the units that are outlined."""
        return frozenset(to_units(self.rows[-1].view.units, self.pins))

    def _extent(self, method: Explainer, explanation: Explanation) -> float:
        return token_map(method, explanation, self.example, self.unit).largest

    @property
    def first(self) -> Explanation:
        return self.methods[0][1]

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The model's tokens, which are the same for every method."""
        return self.first.tokens


def export_html(export: TextExport) -> str:
    """Return the prediction and the maps as one HTML file without scripts or external resources, light and dark."""
    origin, maps = export.first.provenance, "".join(map(method_row_html, export.rows))
    if export.view.aligned:  # as on the page
        maps = aligned_html(export.rows[0].view, [line_html(row) for row in export.rows], export.rows)
    sections = (
        prediction_html(export.first.prediction, origin.target),
        f'<div class="{STACK.removeprefix(".")}">{maps}</div>',
        f"<h2>Cite this</h2>{cite_html(export.methods, export.example)}{command_html(export.example, command(export))}",
    )
    units = ",".join(f"{STACK} {unit_selector(position)}" for position in sorted(export.pinned))
    rings = f"{units}{{outline:2px solid var(--xg-text)}}" if units else ""
    return standalone_page(f"Explanations of one prediction of {origin.model}", sections, rings)


def export_svg(export: TextExport, dark: bool = True) -> str:
    """Return an SVG of all maps, with scales and references.

    The theme is light, and dark for readers who prefer that if `dark` is set.
    """
    rows = [(row.title, row.view) for row in export.rows]
    return maps_svg(rows, [cite(export.methods, export.example), *references(export.methods)], dark, export.pinned)


def csv_table(export: TextExport) -> str:
    """Return the scores as CSV: one row per token, one column per method.

    Columns for the rows above the maps, such as a rationale, come first. Scores are unrounded; text that a spreadsheet
    would execute is escaped.
    """
    above = {
        row.title.lower(): {position: unit.score for unit in row.view.units for position in unit.tokens}
        for row in export.above
    }
    return to_csv(token_rows([explanation for _, explanation in export.methods], above), "\r\n")


def json_list(export: TextExport) -> str:
    """Return the output of `exegesis explain --json`: a list with one object per method."""
    return explanations_json(export.methods)


def command(export: TextExport) -> str:
    """Return the command that computes the same values, quoted for a POSIX shell."""
    return command_line(command_arguments(export), export.example)


def command_arguments(export: TextExport) -> list[str]:
    """The command's arguments."""
    return explain_arguments(export.methods, text_arguments(export.example), export.example)


FILES: Sequence[FileOf[TextExport]] = (
    ("HTML", "exegesis-maps.html", "text/html", export_html,
     "All maps as one HTML page that works offline and without scripts."),
    ("SVG", "exegesis-maps.svg", "image/svg+xml", export_svg, "The maps as a picture for papers and slides."),
    ("CSV", "exegesis-scores.csv", "text/csv", csv_table, "One row per token, one column per method."),
    ("JSON", "exegesis-scores.json", "application/json", json_list, "The output of the command below."),
)  # fmt: skip
PNG_FILE = "exegesis-maps.png"
PNG_HELP = "The SVG as a PNG image, in the light theme."


def draw_export(
    state: TextState,
    methods: Mapping[str, Explainer],
    explanations: Mapping[str, Explanation],
    above: Sequence[MethodRow] = (),
) -> None:
    """Draw the download buttons and the citation. A file is built only when its button is pressed."""
    if not explanations:
        return
    explained = tuple((methods[id], explanation) for id, explanation in explanations.items())
    export = TextExport(state.example, state.unit, explained, tuple(above), state.view, state.pins)
    light = partial(export_svg, export, dark=False)
    png = partial(png_button, "PNG", PNG_FILE, light, PNG_HELP, key="text_keep_PNG")
    export_area("text", FILES, export, state.focus, command(export), cite_html(explained, state.example), png)
