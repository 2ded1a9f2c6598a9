"""Maps side by side as HTML: for texts a table or the text itself, for pictures one card per column.

In the table of a text, rows are parts and columns are maps. A cell shows its value as text as well as color; `data-v`
is the unrounded score and `data-r` its rank. A card shows its map over the picture as its model sees it. If models see
different parts of the picture or cut it into different patches, all cards show the common patches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

import numpy as np
import streamlit as st
from jaxtyping import UInt8

from components.compare.comparison import ColumnMap, Comparison, prediction_text
from components.method_row import check_html, cost_line, details_html, facts
from components.numbers import MINUS, count, decimals_of, fixed, hundredths, percent, plain, plural
from components.styles import asset_sheet
from components.widgets.patch_map import LAYERS, PatchMap, layers_html, picture_style, sentence, use_picture_styles
from components.widgets.token_map import TokenMap, class_of, direction, facts_of, token_map_html, tone
from engine.comparison.agreement import top_count
from engine.comparison.alignment import AlignedPart, PartScores, PictureBox, common_box, visible_box
from engine.request import Example, Picture
from engine.vision.picture import read_view
from engine.word_units import Unit

LABEL = "Maps side by side, a row for each part of the text"
UP, DOWN, SAME = "↑", "↓", "="
ABSENT = "–"
TINY = 0.005
"""Share of the largest score below which a part is almost white."""
LONGEST = 60
"""Maximum characters of a reason in a header; the rest is shown on click."""
LEAST_SCALE = 1e-3
"""End of a scale below which its numbers are written with a power of ten, next to the scale."""
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
ABOUT_TITLE = "Checks, costs and cautions"
Pixels = UInt8[np.ndarray, "height width 3"]


def use_compare_styles() -> None:
    """Add the style sheets to the page; they take no space."""
    use_picture_styles()
    st.html(compare_sheet())


def compare_sheet() -> str:
    return f"<style>{asset_sheet('compare')}</style>"


def text_maps_html(comparison: Comparison) -> str:
    """HTML of the texts, the table, or both, with a header for each column. All foreign text is escaped."""
    if comparison.view.layout == "text":
        texts = "".join(_text_cards(comparison))
        return f'<div class="xg"><div class="xg-texts">{texts}</div>{foot_html(comparison)}</div>'
    short = "".join(_short_text_cards(comparison)) if comparison.view.layout == "both" else ""
    texts = f'<div class="xg-texts xg-brief">{short}</div>' if short else ""
    heads = "".join(f"<th scope=col{class_of(_reference_class(comparison, c))}>{head_html(comparison, c)}</th>"
                    for c in comparison.columns)  # fmt: skip
    return (
        f'<div class="xg">{texts}<div class="xg-scroll xg-beside-box" tabindex="0" role="region" aria-label="{LABEL}">'
        f'<table class="xg-beside-maps"><thead><tr><th scope=col>{_corner(comparison)}</th>{heads}</tr></thead>'
        f"<tbody>{''.join(_table_rows(comparison))}</tbody></table></div>{foot_html(comparison)}</div>"
    )


def head_html(comparison: Comparison, column: ColumnMap) -> str:
    """HTML header of a map: its name and model, the prediction, its agreement with the reference, and its scale."""
    lines = [
        f'<p class="xg-title"><b class="xg-letter">{column.letter}</b> {escape(column.title)}</p>',
        small(column.model),
    ]
    if column.explanation is None:
        return "".join([*lines, _reason_html(column)])
    prediction = column.explanation.prediction
    lines.append(f'<p class="xg-small"><bdi class="xg-answer">{escape(prediction_text(prediction))}</bdi></p>')
    if not prediction.regression:
        lines.append(f'<p class="xg-small">explains <bdi>{escape(comparison.target(column))}</bdi></p>')
    return "".join(
        [
            *lines,
            *_reference_lines(comparison, column),
            legend_html(comparison, column),
            *_unread_lines(comparison, column),
        ]
    )


def legend_html(comparison: Comparison, column: ColumnMap) -> str:
    """HTML of the color scale with its numbers, or of a note that there is nothing to color."""
    token_map = token_map_of(comparison, column)
    if comparison.is_relative and comparison.reference is column:
        return ""
    if not np.isfinite(comparison.scores(column)).any():
        return small("no order to compare: all scores are equal")
    if token_map.largest == 0:
        return small("no part changed" if comparison.is_relative else "all scores are zero")
    kind = "signed" if token_map.signed else "amount"
    share = " of all" if comparison.view.scale == "common" and not comparison.is_relative else ""
    numbers = _number_format(comparison, column, token_map)
    high = numbers.end(token_map.scale)
    ends = f"{MINUS if token_map.signed else ''}{high if token_map.signed else '0'} to {high}{numbers.power}{share}"
    return f'<p class="xg-small"><i class="xg-scale xg-{kind}"></i><span>{ends}</span></p>'


def foot_html(comparison: Comparison) -> str:
    """HTML of the meaning of the colors, and of a warning about maps whose scores are mostly tiny."""
    lines = [] if comparison.maps is None else [_color_words(comparison), *_tiny_score_lines(comparison)]
    return f'<div class="xg-foot">{"".join(map(small, lines))}</div>' if lines else ""


def small(text: str) -> str:
    """HTML of a line in a header or footer."""
    return f'<p class="xg-small">{escape(text)}</p>'


def token_map_of(comparison: Comparison, column: ColumnMap) -> TokenMap:
    """Return the column's map of the parts that have a finite value."""
    example = comparison.state.input
    texts = example.texts if isinstance(example, Example) else ()
    scores = comparison.scores(column)
    units = tuple(
        Unit(part.text, part.start, part.end, part.segment, False, float(score), (place,), part.blank)
        for place, (part, score) in enumerate(zip(_parts(comparison), scores, strict=True))
        if np.isfinite(score)
    )
    cut = 0 if column.explanation is None else column.explanation.truncated
    sign = column.signed or comparison.is_relative
    return TokenMap(
        units, texts, sign, comparison.target(column), cut, look=comparison.map_view, end=comparison.scale_end
    )


def move_words(moved: int | float) -> str:
    """Format a rank change: ↑3 is three ranks higher than in the reference."""
    return SAME if moved == 0 else f"{UP if moved > 0 else DOWN}{abs(moved):.0f}"


def _parts(comparison: Comparison) -> tuple[AlignedPart, ...]:
    return () if comparison.maps is None else comparison.maps.parts


def _visible_count(comparison: Comparison) -> int:
    """Number of parts that are not white space."""
    return 0 if comparison.maps is None else len(comparison.maps.parts) - comparison.maps.blanks


def _corner(comparison: Comparison) -> str:
    parts = _visible_count(comparison)
    return f'<span class="xg-small">{count(parts, comparison.unit)}</span>' if parts else ""


def _reference_class(comparison: Comparison, column: ColumnMap) -> str:
    return "xg-reference" if comparison.reference is column else ""


def _reference_lines(comparison: Comparison, column: ColumnMap) -> Iterator[str]:
    """Yield lines on the agreement with the reference, by both measures, whichever the matrix shows."""
    reference = comparison.reference
    if reference is None:
        return
    if reference is column:
        yield '<p class="xg-small"><b>reference</b></p>'
        return
    rho, shared = (comparison.agreement_with_reference(column, measure) for measure in ("spearman", "top_k"))
    if rho is None or shared is None or comparison.maps is None:
        yield small(f"no order to compare with {reference.letter}")
        return
    rows = comparison.maps.scores[[row for row in (column.row, reference.row) if row is not None]]
    top = top_count(int(np.isfinite(rows).all(axis=0).sum()), comparison.agreement_options)
    yield small(
        f"with {reference.letter}: ρ {hundredths(rho, sign=True)}, {plain(round(shared * top, 1))} of the top {top}"
    )
    if (elsewhere := comparison.moved_share(column)) is not None:
        yield small(
            f"{percent(elsewhere)} of the total is on other {plural(comparison.unit)} than in {reference.letter}"
        )


def _unread_lines(comparison: Comparison, column: ColumnMap) -> Iterator[str]:
    parts = _visible_count(comparison)
    if comparison.maps is not None and column.row is not None and (unread := comparison.maps.unread(column.row)):
        yield small(f"{unread:,} of {count(parts, comparison.unit)} not read")


def _reason_html(column: ColumnMap) -> str:
    """HTML of the reason why there is no map: its first sentence, with the rest of a long one behind a click."""
    kind = " xg-error" if column.failed else ""
    first, _, rest = column.message.partition(". ")
    if len(first) > LONGEST:
        first, rest = f"{first[: LONGEST - 1]}…", column.message
    if not rest:
        return f'<p class="xg-small xg-why{kind}">{escape(column.message)}</p>'
    return f'<details class="xg-small xg-why{kind}"><summary>{escape(first)}</summary>{escape(rest)}</details>'


def _color_words(comparison: Comparison) -> str:
    if comparison.is_relative and comparison.reference is not None:
        there = comparison.reference.letter
        more, less = (
            ("ranks higher", "lower") if comparison.shows_moves else ("has a larger share of the map", "a smaller one")
        )
        return f"Blue: the {comparison.unit} {more} than in {there}; orange: {less}."
    signs = {column.signed for column in comparison.explained}
    words = {
        True: "Blue supports the explained class, orange opposes it.",
        False: "Teal is unsigned: it shows how much, not for or against.",
    }
    return " ".join(text for sign, text in words.items() if sign in signs)


def _tiny_score_lines(comparison: Comparison) -> Iterator[str]:
    """Yield a warning if most scores of a map are tiny, because ranks do not show how small a score is."""
    letters = [column.letter for column in comparison.explained if _mostly_tiny(comparison, column)]
    if letters:
        named, share = ", ".join(letters), f"{100 * TINY:g}%"
        yield f"{named}: most scores are under {share} of the map's largest. Their order still counts."


def _mostly_tiny(comparison: Comparison, column: ColumnMap) -> bool:
    if comparison.maps is None or column.row is None:
        return False
    sizes = np.abs(comparison.maps.scores[column.row])
    return int(((sizes > 0) & (sizes < TINY * np.nanmax(sizes, initial=0))).sum()) > len(sizes) / 2


def _number_format(comparison: Comparison, column: ColumnMap, token_map: TokenMap) -> NumberFormat:
    share = comparison.shows_differences or (comparison.view.scale == "common" and not comparison.shows_moves)
    return number_format(comparison.scores(column), token_map.scale, token_map.signed, share)


def _table_rows(comparison: Comparison) -> Iterator[str]:
    cells_by_letter = {column.letter: _ColumnCells(comparison, column) for column in comparison.explained}
    example = comparison.state.input
    pair = isinstance(example, Example) and len(example.texts) > 1
    before = None
    for place, part in enumerate(_parts(comparison)):
        if pair and part.segment != before:
            before = part.segment
            title = "Second text" if part.segment else "First text"
            yield f'<tr class="xg-part"><th scope=rowgroup>{title}</th><td colspan={len(comparison.columns)}></td></tr>'
        way = direction(part.text)
        cells = "".join(
            cells_by_letter[column.letter].cell(place) if column.letter in cells_by_letter else "<td></td>"
            for column in comparison.columns
        )
        yield f"<tr><th scope=row><bdi dir={way}>{escape(part.text)}</bdi></th>{cells}</tr>"


class _ColumnCells:
    """The cells of one column, by the index of their part."""

    def __init__(self, comparison: Comparison, column: ColumnMap) -> None:
        self._moving, self._relative = comparison.shows_moves, comparison.is_relative
        self._is_empty = comparison.is_relative and comparison.reference is column
        self._map = token_map_of(comparison, column)
        self._places = {unit.tokens[0]: position for position, unit in enumerate(self._map.units)}
        self._numbers = _number_format(comparison, column, self._map)

    def cell(self, place: int) -> str:
        """HTML of the value on its color; a dash if there is none."""
        if place not in self._places:
            return f"<td>{ABSENT}</td>"
        position = self._places[place]
        score = self._map.units[position].score
        if self._is_empty:
            return "<td></td>"
        facts = "" if self._relative else _score_facts(self._map, position)
        return f"<td{class_of(tone(self._map, position))}{facts}>{escape(self._value(score))}</td>"

    def _value(self, score: float) -> str:
        return move_words(score) if self._moving else self._numbers.cell(score)


def _score_facts(token_map: TokenMap, position: int) -> str:
    return facts_of(token_map, position).partition(" data-x")[0]


def _text_cards(comparison: Comparison) -> Iterator[str]:
    """Yield each map as the text itself, below its header."""
    for column in comparison.columns:
        html = "" if column.explanation is None else token_map_html(token_map_of(comparison, column))
        pinned = class_of("xg-text-card", _reference_class(comparison, column))
        yield f"<section{pinned}>{head_html(comparison, column)}{html}</section>"


def _short_text_cards(comparison: Comparison) -> Iterator[str]:
    """Yield each map as the text itself, below its name; the rest is in the headers of the table."""
    for column in comparison.explained:
        name = f'<b class="xg-letter">{column.letter}</b> {escape(column.name.removeprefix(column.letter).strip())}'
        html = token_map_html(token_map_of(comparison, column))
        yield f'<section class="xg-text-card"><p class="xg-title">{name}</p>{html}</section>'


@dataclass(frozen=True)
class NumberFormat:
    """Number format of one map: all values have the same decimals, so that a column can be read downward.

    `factor`: divides a value before it is written. `unit`: follows each value. `power`: follows the scale.
    """

    decimals: int
    sign: bool
    factor: float = 1.0
    unit: str = ""
    power: str = ""

    def cell(self, value: float) -> str:
        """Format a value of the map."""
        return f"{fixed(value / self.factor, self.decimals, self.sign)}{self.unit}"

    def end(self, value: float) -> str:
        """Format the end of the scale, which needs no sign."""
        return f"{fixed(value / self.factor, self.decimals, False)}{self.unit}"


def number_format(scores: PartScores, end: float, sign: bool, share: bool) -> NumberFormat:
    """Return the format of scores on a scale up to `end`. `share`: whether they are shares, written in percent."""
    if share:
        return NumberFormat(1, sign, 0.01, "%")
    if (scores[np.isfinite(scores)] % 1 == 0).all():
        return NumberFormat(0, sign)
    if 0 < end < LEAST_SCALE:
        exponent = math.floor(math.log10(end))
        return NumberFormat(2, sign, 10.0**exponent, "", f" × 10{str(exponent).translate(SUPERSCRIPTS)}")
    return NumberFormat(decimals_of(end), sign)


def picture_maps_html(comparison: Comparison) -> str:
    """HTML of the cards, with the picture embedded once for each model. All foreign text is escaped."""
    named = {
        column.explanation.provenance.model: column.model
        for column in comparison.columns
        if column.explanation is not None
    }
    models = list(named)
    pictures = list(_model_views(comparison, models))
    styles = "".join(picture_style(one, scope=f".xg-eyes{place}") for place, one in enumerate(pictures))
    cards = _picture(list(named.values()), pictures) + "".join(
        _picture_card(comparison, column, models) for column in comparison.columns
    )
    return (
        f'<div class="xg">{styles}<div class="xg-beside-cards" style="--xg-opacity:{comparison.view.opacity / 100:g}">'
        f"{cards}</div>{foot_html(comparison)}</div>"
    )


def patch_map_of(comparison: Comparison, column: ColumnMap) -> PatchMap:
    """Return the column's map of the common patches; values that do not exist are drawn as 0.

    Errors: a column without a map of patches.
    """
    if comparison.maps is None or comparison.maps.grid is None:
        raise ValueError(f"column {column.letter}: has no map of patches")
    scores = np.nan_to_num(comparison.scores(column)).reshape(comparison.maps.grid)
    return PatchMap(
        scores,
        column.signed or comparison.is_relative,
        comparison.target(column),
        comparison.map_view,
        comparison.scale_end,
    )


def _picture_card(comparison: Comparison, column: ColumnMap, models: list[str]) -> str:
    pinned = " xg-reference" if comparison.reference is column else ""
    if column.explanation is None:
        body = '<div class="xg-patches xg-empty"></div>'
    else:
        patch_map = patch_map_of(comparison, column)
        label = escape(f"{column.letter} {column.title}. {sentence(patch_map)}")
        view = models.index(column.explanation.provenance.model)
        body = f'<div class="xg-patches xg-eyes{view}" role="img" aria-label="{label}">{layers_html(patch_map)}</div>'
    return f'<section class="xg-beside-card{pinned}"><div>{head_html(comparison, column)}</div>{body}</section>'


def _picture(names: list[str], pictures: list[Pixels]) -> str:
    """HTML card of the picture without a map, as the model with the finest view sees it."""
    if not pictures:
        return ""
    best = max(range(len(pictures)), key=lambda place: pictures[place].size)
    viewer = f"as {names[best]} sees it" if names else "as it is"
    return (
        f'<section class="xg-beside-card"><div><p class="xg-title">The picture</p>{small(viewer)}</div>'
        f'<div class="xg-patches xg-alone xg-eyes{best}" role="img" aria-label="The picture without a map">'
        f"{LAYERS}</div></section>"
    )


def _model_views(comparison: Comparison, models: list[str]) -> Iterator[Pixels]:
    """Yield, for each model, the part of the picture that all models see, as that model sees it.

    Yields the whole picture before the first map exists.
    """
    picture = comparison.state.input
    if not isinstance(picture, Picture):
        return
    if not models:
        yield picture.pixels
        return
    height, width, _ = picture.pixels.shape
    views = [read_view(model) for model in models]
    boxes = [visible_box(view, height, width) for view in views]
    for view, own in zip(views, boxes, strict=True):
        yield _crop(view.transform(picture.pixels), own, common_box(boxes))


def _crop(pixels: Pixels, own: PictureBox, box: PictureBox) -> Pixels:
    rows, columns, _ = pixels.shape
    top, bottom = (round(rows * (side - own.top) / (own.bottom - own.top)) for side in (box.top, box.bottom))
    left, right = (round(columns * (side - own.left) / (own.right - own.left)) for side in (box.left, box.right))
    return np.ascontiguousarray(pixels[top : max(bottom, top + 1), left : max(right, left + 1)])


def about_html(comparison: Comparison) -> str:
    """HTML of the check, cost, cautions and provenance of each column with a map. All foreign text is escaped."""
    items = "".join(_about_item(column) for column in comparison.explained)
    return (
        f'<div class="xg"><details class="xg-details xg-small"><summary>{ABOUT_TITLE}</summary>'
        f'<div class="xg-list">{items}</div></details></div>'
    )


def _about_item(column: ColumnMap) -> str:
    explanation = column.explanation
    if explanation is None:
        return ""
    notes = "".join(f'<p class="xg-small xg-note">{escape(note)}</p>' for note in explanation.notes)
    return (
        f'<div class="xg-item"><p class="xg-title"><b class="xg-letter">{column.letter}</b> {escape(column.title)}</p>'
        f'{check_html(explanation.check)}<p class="xg-small">{escape(cost_line(explanation))}</p>{notes}'
        f'<p class="xg-small xg-caution">{escape(column.method.caution)}</p>'
        f"{details_html(facts(column.method, explanation))}</div>"
    )
