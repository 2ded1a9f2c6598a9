"""What the Attention page keeps as files: scores of all heads, one head's matrix, all attention, the commands."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from components.attention.look import Head
from components.attention.scores import HeadMap, query_of
from components.attention.shown_head import shown_head
from components.attention.state import AttentionState
from components.citing import run_arguments, target_arguments
from components.inputs.picture_choice import PictureFocus
from components.looked_at import command_line, picture_arguments, text_arguments
from components.prediction_area import PROBE
from engine.errors import ExegesisError
from engine.heads.matrices import MatrixSelection, select_positions
from engine.heads.readings import DEFAULT_SCORES, HeadReading, HeadTable, HeadTableQuery, head_table
from engine.heads.scores import AGREEMENT, OFF
from engine.registry import explainer
from engine.request import Example
from engine.result import Explanation
from engine.table_io import escape_cell

AXES = "layer head query key"
ABOUT = "Probabilities in half precision, layers and heads from 0; NaN where a query may not attend."


@dataclass(frozen=True, eq=False)
class KeptHeads:
    """What is kept: the page's state, its reading, the score shown (None where there is none)."""

    state: AttentionState
    reading: HeadReading
    scores: HeadMap | None

    @property
    def made(self) -> Explanation:
        """Tokens, prediction, provenance."""
        return self.reading.of

    @property
    def head(self) -> Head:
        """The head that is looked at closely."""
        return shown_head(self.state.look, self.scores, self.reading)

    @cached_property
    def part(self) -> MatrixSelection:
        """The positions that matrices show: all of them where those that were asked for are not there."""
        look = self.state.look
        try:
            return select_positions(self.reading, look.between, look.special)
        except ExegesisError:  # the page says so beside the board
            return select_positions(self.reading)

    @property
    def query(self) -> int | None:
        """Whose attention the maps show; None for the mean over all that may attend."""
        look = self.state.look
        return query_of(self.reading, look) if look.view == "query" else None

    @property
    def asked(self) -> HeadTableQuery:
        """The score shown, then those that the reading holds; what costs more is kept only where it is shown."""
        shown = () if self.scores is None else (self.scores.id,)
        names = tuple(dict.fromkeys((*shown, *(name for name in DEFAULT_SCORES if name != OFF))))
        compared = AGREEMENT in names
        return HeadTableQuery(names, self.state.look.against if compared else "", self.query if compared else None)

    @cached_property
    def table(self) -> HeadTable:
        """The scores of all heads."""
        return head_table(self.state.request(PROBE), self.asked, reading=self.reading)

    @property
    def matrix(self) -> np.ndarray:
        """What the shown head's matrix shows: `[row column]`, NaN where a query may not attend."""
        layer, head = self.head
        return self.reading.attention[layer, head][np.ix_(self.part.rows, self.part.columns)].astype(float)


def scores_csv(kept: KeptHeads) -> str:
    """A row a head, a column a score; `scale`: what its output was multiplied by. A score it does not have is empty."""
    table = kept.table
    scales = kept.state.switched.grid(*kept.reading.slope.shape)
    flips = [] if table.flipped is None else ["flipped"]
    return _sheet(["layer", "head", "scale", *map(escape_cell, table.columns), *flips], _score_rows(table, scales))


def matrix_csv(kept: KeptHeads) -> str:
    """The shown head's matrix: a row a query, a column a key, named as `3 good`. Empty: may not attend."""
    names = [escape_cell(position_name(kept.made, at)) for at in range(len(kept.made.tokens))]
    rows = ([names[at], *map(_cell, values)] for at, values in zip(kept.part.rows, kept.matrix.tolist(), strict=True))
    return _sheet(["query", *(names[at] for at in kept.part.columns)], rows)


def scores_json(kept: KeptHeads) -> str:
    """What `exegesis heads --json` prints."""
    from engine.cli.plain_heads import heads_as_plain

    return json.dumps(heads_as_plain(kept.table), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def attention_file(kept: KeptHeads) -> bytes:
    """The attention of all heads as safetensors, by layer, head, query and key; beside it what it is of."""
    from safetensors.numpy import save

    origin = kept.made.provenance
    told = {
        "about": ABOUT, "axes": AXES, "model": origin.model, "revision": origin.revision,
        "target": origin.target_label, "tokens": json.dumps([token.text for token in kept.made.tokens]),
        "grid": json.dumps(kept.made.grid), "heads": json.dumps([list(head) for head in origin.heads]),
    }  # fmt: skip
    return save({"attention": np.ascontiguousarray(kept.reading.attention, dtype="<f2")}, metadata=told)


def heads_command(kept: KeptHeads) -> str:
    """The command that makes the same scores."""
    asked, origin = kept.asked, kept.made.provenance
    query = [] if asked.query is None else ["--query", str(asked.query)]
    against = ["--against", asked.against, *query] if asked.against else []
    seed = kept.state.seed if asked.against else 0
    scores = ["--score", ",".join(asked.scores), *against]
    given = ["heads", "--model", origin.model, *looked_at(kept), *target_arguments(kept.made), *scores]
    return command_line([*given, *run_arguments(origin, seed), "--json"], kept.state.input)


def explain_command(kept: KeptHeads) -> str:
    """The command that makes the attribution under the switched heads."""
    origin, method = kept.made.provenance, kept.state.method
    given = ["explain", "--model", origin.model, "--method", method, *looked_at(kept), *target_arguments(kept.made)]
    return command_line([*given, *run_arguments(origin, kept.state.seed), "--json"], kept.state.input)


def looked_at(kept: KeptHeads) -> list[str]:
    """The text or the picture as the command's arguments."""
    focus, given = kept.state.focus, kept.state.input
    if isinstance(focus, PictureFocus):
        return picture_arguments(focus)
    return text_arguments(given) if isinstance(given, Example) else []


def position_name(made: Explanation, position: int) -> str:
    """A token with its position before it, as the page names it: `3 good`."""
    return f"{position} {made.tokens[position].text}"


def references(kept: KeptHeads) -> Iterator[str]:
    """The score shown and where it is from; the attribution that it compares with; the caution is said elsewhere."""
    if kept.scores is not None:
        yield f"{kept.scores.title}: {kept.scores.citation.rstrip('.')}."
    if kept.asked.against:
        method = explainer(kept.asked.against, kept.state.kind)
        yield f"{method.title} ({method.id}, version {method.version}): {method.citation.rstrip('.')}."


def _score_rows(table: HeadTable, scales: np.ndarray) -> Iterator[list[object]]:
    for head in table.heads:
        flips = [] if table.flipped is None else ["true" if table.flipped[head] else "false"]
        yield [*head, _cell(scales[head]), *(_cell(column[head]) for column in table.columns.values()), *flips]


def _sheet(header: list[str], rows: Iterable[Sequence[object]]) -> str:
    sheet = io.StringIO(newline="")
    writer = csv.writer(sheet, lineterminator="\r\n")
    writer.writerow(header)
    writer.writerows(rows)
    return sheet.getvalue()


def _cell(value: float) -> str:
    """A number in full; nothing for NaN."""
    return "" if np.isnan(value) else repr(float(value))
