"""Options of the attention board, and what they select of a reading: positions, maps and heads.

Plain values: a page binds them to its link, files and commands name them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float

from components.links import join_values, whole_number
from engine.errors import ExegesisError, not_allowed
from engine.heads.matrices import BETWEEN, SCALES, MatrixSelection, select_positions
from engine.heads.readings import HeadReading
from engine.heads.scores import AGREEMENT, SCORES
from engine.params import option

Head = tuple[int, int]
"""Layer and head, from 0."""
SCORE_NAMES = ("importance", *(name for name in SCORES if name != "importance"), AGREEMENT)
VIEWS = {"text": ("matrix", "received", "query"), "image": ("query", "received", "matrix")}
DETAILS = {"text": ("matrix", "lines"), "image": ("overlay", "matrix")}
ORDERS = ("place", "score")
AGAINST = ("integrated_gradients", "kernel_shap")
MAX_NUMBER = 9_999
"""No layer, head or position of a model here has a larger number."""
HEAD_PATTERN = re.compile(r"(\d{1,4})\.(\d{1,4})")
USUAL = "The default is used."


def head_name(head: Head) -> str:
    """3.7: layer 3, head 7."""
    return f"{head[0]}.{head[1]}"


def _read_head(given: Sequence[str], problems: list[str]) -> Head | None:
    if not given or not given[-1]:
        return None
    match = HEAD_PATTERN.fullmatch(given[-1])
    if match:
        return int(match[1]), int(match[2])
    allowed, next_step = "a layer and a head such as 3.7", "The strongest is shown."
    problems.append(str(not_allowed("head", allowed, given[-1][:40], next_step)))
    return None


def _read_numbers(name: str, given: Sequence[str], problems: list[str]) -> tuple[int, ...]:
    texts = given[-1].split(",") if given and given[-1] else []
    numbers = [whole_number(text, MAX_NUMBER) for text in texts]
    if None not in numbers and len(numbers) <= MAX_NUMBER:
        return tuple(sorted({number for number in numbers if number is not None}))
    problems.append(str(not_allowed(name, "numbers such as 0,3", given[-1][:40], "All are shown.")))
    return ()


@dataclass(frozen=True)
class BoardOptions:
    """Options of coloring, drawing and picking heads.

    `query`: a position, or None for the one that the model reads. `layers` and `heads`: those drawn; none: all.
    `head`: the locked one, None for the strongest by the score; `alone`: isolated. `special`: with special tokens in
    the matrices. `against`: the attribution that maps are compared with.
    """

    score: str = option(SCORE_NAMES[0], choices=SCORE_NAMES)
    view: str = option("matrix", by_kind=VIEWS.get)
    query: int | None = option(None, high=MAX_NUMBER, fallback=USUAL)
    order: str = option(ORDERS[0], choices=ORDERS)
    scale: str = option(SCALES[0], choices=SCALES)
    between: str = option(BETWEEN[0], choices=BETWEEN)
    special: bool = True
    detail: str = option("matrix", by_kind=DETAILS.get)
    layers: tuple[int, ...] = option((), read=partial(_read_numbers, "layers"), write=join_values)
    heads: tuple[int, ...] = option((), read=partial(_read_numbers, "heads"), write=join_values)
    head: Head | None = option(None, read=_read_head, write=head_name)
    alone: bool = False
    against: str = option(AGAINST[0], choices=AGAINST)


@dataclass(frozen=True, eq=False)
class HeadScoreMap:
    """A number for every head, by layer and head. `values`: NaN for a head without one. `words`: their meaning."""

    id: str
    title: str
    unit: str
    signed: bool
    values: Float[np.ndarray, "layer head"]
    words: str
    citation: str


def default_options(kind: str) -> BoardOptions:
    """The options that a text, or an image, starts with."""
    return BoardOptions(view=VIEWS[kind][0], detail=DETAILS[kind][0])


def select_matrix(reading: HeadReading, options: BoardOptions) -> tuple[MatrixSelection, ExegesisError | None]:
    """The positions that matrices show; where the chosen ones are not there all of them, and the error that says so."""
    try:
        return select_positions(reading, options.between, options.special), None
    except ExegesisError as error:
        return select_positions(reading), error


def query_position(reading: HeadReading, options: BoardOptions) -> int:
    """The position whose attention is drawn: the chosen one, else the one that the model reads most."""
    if options.query is not None and options.query < len(reading.reads):
        return options.query
    return int(reading.reads.argmax())


def feature_maps(reading: HeadReading, options: BoardOptions) -> Float[np.ndarray, "layer head feature"]:
    """Each head's map over the features: the attention of one position, else what they receive on average."""
    return reading.received(query_position(reading, options) if options.view == "query" else None)


def describe_view(reading: HeadReading, options: BoardOptions) -> str:
    """A noun phrase for the maps."""
    if options.view != "query":
        return "the mean attention received"
    return f"the attention from “{reading.explanation.tokens[query_position(reading, options)].text}”"


def locked_head(options: BoardOptions, reading: HeadReading) -> Head | None:
    """The locked head, if the model has it."""
    layers, heads = reading.slope.shape
    head = options.head
    return head if head is not None and head[0] < layers and head[1] < heads else None


def selected_head(options: BoardOptions, scores: HeadScoreMap | None, reading: HeadReading) -> Head:
    """The head that the detail, the files and the words beside the board are about: locked, else the strongest."""
    return locked_head(options, reading) or strongest_head(scores, options, *reading.slope.shape)


def strongest_head(scores: HeadScoreMap | None, options: BoardOptions, layers: int, heads: int) -> Head:
    """The visible head with the largest score, whatever its sign; the first visible one where none has a score."""
    rows, columns = visible_numbers(options.layers, layers), visible_numbers(options.heads, heads)
    if scores is None:
        return rows[0], columns[0]
    sizes = np.abs(scores.values[np.ix_(rows, columns)])
    row, column = np.unravel_index(np.where(np.isnan(sizes), -1.0, sizes).argmax(), sizes.shape)
    return rows[row], columns[column]


def visible_numbers(chosen: tuple[int, ...], count: int) -> list[int]:
    """The layers, or heads, that are drawn: the chosen ones that are there, else all."""
    return [number for number in range(count) if number in chosen] or list(range(count))
