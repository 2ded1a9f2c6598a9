"""Files of the Attention page: scores of all heads, one head's matrix, all attention; and the commands for them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from components.attention.state import AttentionState
from components.export import command_line, picture_arguments, run_arguments, target_arguments, text_arguments
from components.inputs.picture_choice import PictureFocus
from components.prediction import PROBE
from components.widgets.attention_board.options import (
    Head,
    HeadScoreMap,
    query_position,
    select_matrix,
    selected_head,
)
from engine.heads.matrices import MatrixSelection
from engine.heads.readings import HeadReading
from engine.heads.scores import AGREEMENT, OFF
from engine.heads.table import DEFAULT_SCORES, HeadTable, HeadTableQuery, head_table, head_table_to_json
from engine.registry import explainer
from engine.request import Example
from engine.result import Explanation
from engine.table_io import escape_cell

AXES = "layer head query key"
ABOUT = "Probabilities in half precision, layers and heads from 0; NaN where a query may not attend."


@dataclass(frozen=True, eq=False)
class HeadsExport:
    """Everything that is exported: the page's state, its reading, the score shown (None where there is none)."""

    state: AttentionState
    reading: HeadReading
    scores: HeadScoreMap | None

    @property
    def explanation(self) -> Explanation:
        """Tokens, prediction, provenance."""
        return self.reading.explanation

    @property
    def head(self) -> Head:
        """The selected head."""
        return selected_head(self.state.board, self.scores, self.reading)

    @cached_property
    def selection(self) -> MatrixSelection:
        """The positions that matrices show; the page reports beside the board where they are others than chosen."""
        return select_matrix(self.reading, self.state.board)[0]

    @property
    def query(self) -> HeadTableQuery:
        """The score shown, then those that the reading holds; a costlier one only where it is shown."""
        options, first = self.state.board, () if self.scores is None else (self.scores.id,)
        names = tuple(dict.fromkeys((*first, *(name for name in DEFAULT_SCORES if name != OFF))))
        if AGREEMENT not in names:
            return HeadTableQuery(names)
        position = query_position(self.reading, options) if options.view == "query" else None
        return HeadTableQuery(names, options.against, position)

    @cached_property
    def table(self) -> HeadTable:
        """The scores of all heads."""
        return head_table(self.state.request(PROBE), self.query, reading=self.reading)

    @property
    def matrix(self) -> np.ndarray:
        """The selected head's visible matrix: `[row column]`, NaN where a query may not attend."""
        layer, head = self.head
        return self.reading.attention[layer, head][np.ix_(self.selection.rows, self.selection.columns)].astype(float)


def scores_csv(export: HeadsExport) -> str:
    """A row a head, a column a score; `scale`: the factor of its output. A score that a head does not have is empty."""
    table = export.table
    scales = export.state.switched.grid(*export.reading.slope.shape)
    flips = [] if table.flipped is None else ["flipped"]
    return _write_csv(["layer", "head", "scale", *map(escape_cell, table.columns), *flips], _score_rows(table, scales))


def matrix_csv(export: HeadsExport) -> str:
    """The selected head's matrix: a row a query, a column a key, named as `3 good`. Empty: may not attend."""
    selection = export.selection
    names = [escape_cell(position_name(export.explanation, at)) for at in range(len(export.explanation.tokens))]
    rows = ([names[at], *map(_cell, row)] for at, row in zip(selection.rows, export.matrix.tolist(), strict=True))
    return _write_csv(["query", *(names[at] for at in selection.columns)], rows)


def scores_json(export: HeadsExport) -> str:
    """The output of `exegesis heads --json`."""
    return json.dumps(head_table_to_json(export.table), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def attention_file(export: HeadsExport) -> bytes:
    """The attention of all heads as safetensors, by layer, head, query and key, with its provenance."""
    from safetensors.numpy import save

    explanation, origin = export.explanation, export.explanation.provenance
    metadata = {
        "about": ABOUT, "axes": AXES, "model": origin.model, "revision": origin.revision,
        "target": origin.target_label, "tokens": json.dumps([token.text for token in explanation.tokens]),
        "grid": json.dumps(explanation.grid), "heads": json.dumps([list(head) for head in origin.heads]),
    }  # fmt: skip
    return save({"attention": np.ascontiguousarray(export.reading.attention, dtype="<f2")}, metadata=metadata)


def heads_command(export: HeadsExport) -> str:
    """The command that makes the same scores."""
    query = export.query
    against = ["--against", query.against] if query.against else []
    against += [] if query.query is None else ["--query", str(query.query)]
    seed = export.state.seed if query.against else 0
    return _command(export, ["heads"], ["--score", ",".join(query.scores), *against], seed)


def explain_command(export: HeadsExport) -> str:
    """The command that makes the attribution under the switched heads."""
    return _command(export, ["explain", "--method", export.state.method], [], export.state.seed)


def _command(export: HeadsExport, name: list[str], options: list[str], seed: int) -> str:
    explanation, focus, example = export.explanation, export.state.focus, export.state.input
    source: list[str] = []
    if isinstance(focus, PictureFocus):
        source = picture_arguments(focus)
    elif isinstance(example, Example):
        source = text_arguments(example)
    command, *method = name
    arguments = [command, "--model", explanation.provenance.model, *method, *source, *target_arguments(explanation)]
    return command_line([*arguments, *options, *run_arguments(explanation.provenance, seed), "--json"], example)


def position_name(explanation: Explanation, position: int) -> str:
    """A token with its position before it, as the page names it: `3 good`."""
    return f"{position} {explanation.tokens[position].text}"


def references(export: HeadsExport) -> Iterator[str]:
    """The score shown with its source, and the attribution that it compares with. The caution stands elsewhere."""
    if export.scores is not None:
        yield f"{export.scores.title}: {export.scores.citation.rstrip('.')}."
    if export.query.against:
        method = explainer(export.query.against, export.state.kind)
        yield f"{method.title} ({method.id}, version {method.version}): {method.citation.rstrip('.')}."


def _score_rows(table: HeadTable, scales: np.ndarray) -> Iterator[list[object]]:
    for head in table.heads:
        flips = [] if table.flipped is None else ["true" if table.flipped[head] else "false"]
        yield [*head, _cell(scales[head]), *(_cell(column[head]) for column in table.columns.values()), *flips]


def _write_csv(header: list[str], rows: Iterable[Sequence[object]]) -> str:
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(header)
    writer.writerows(rows)
    return file.getvalue()


def _cell(value: float) -> str:
    """A number in full; nothing for NaN."""
    return "" if np.isnan(value) else repr(float(value))
