"""Two texts, such as an edit and its parent: both predictions, and for each method both maps column by column.

A column has the unit before the edit above the unit after it, so that both lines wrap together at any width:

    <span class="xg-col xg-changed"><b class=f12 data-tip="...">warm</b><b class=a3 data-tip="...">cold</b></span>
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape

import numpy as np
from jaxtyping import Float

from components.method_row import explained_name, quoted_html, token_map
from components.numbers import brief, count, percent, plain, plural, points, signed
from components.prediction import MOST_BARS, prediction_html
from components.widgets.token_map import TokenMap, class_of, direction, legend_html, modes, tip, tone
from components.widgets.view_options import DEFAULT_VIEW, SCALES, ViewOptions
from engine.comparison.texts import FEWEST_SHARED, paired_scores, shared_units
from engine.format import visible_token
from engine.metrics.ranking import is_constant, spearman
from engine.registry import Explainer
from engine.request import Example, Input, Prompt
from engine.result import Explanation, Prediction
from engine.word_units import UNITS, AlignedColumn, Unit, align, split_words

BEFORE_AFTER = ("before", "after")
"""Names of the two lines of an edit."""
NONE = "<i>–</i>"
LIKELIEST = {
    "class": "The predicted class",
    "token": "The most probable token",
    "contrast": "The more probable of the two tokens",
}
"""Names of the predicted answer, by what is explained (`explained_noun`)."""
CONTRAST_NOTE = "Only the two tokens are compared: their probabilities add up to 100%."
"""Note on the predictions for a prompt with a contrast."""


@dataclass(frozen=True)
class EditedMap:
    """A method's maps of both versions, on one scale. `same`: whether both texts are equal, so that all is unchanged.

    `names`: names of the two lines. `words`: the word that a unit before the edit is a piece of, by the unit's tokens.
    """

    title: str
    before: TokenMap
    after: TokenMap
    unit: str = UNITS[0]
    same: bool = False
    words: Mapping[tuple[int, ...], str] = field(default_factory=dict)
    names: tuple[str, str] = BEFORE_AFTER

    @cached_property
    def columns(self) -> tuple[AlignedColumn, ...]:
        return align(self.before.units, self.after.units)

    @cached_property
    def unchanged(self) -> tuple[tuple[Unit, Unit], ...]:
        """The units that both versions have, without special tokens."""
        return shared_units(self.before.units, self.after.units, self.columns)

    @cached_property
    def scores(self) -> Float[np.ndarray, "2 unchanged"]:
        """Scores of the unchanged units, before and after."""
        return paired_scores(self.unchanged)


def edited_map(
    method: Explainer, before: Explanation, after: Explanation, parent: Example, child: Example, unit: str,
    look: ViewOptions = DEFAULT_VIEW,
) -> EditedMap:  # fmt: skip
    """Return both maps, on a scale that ends at the larger of their largest scores."""
    old, new = token_map(method, before, parent, unit), token_map(method, after, child, unit)
    end, own = max(old.largest, new.largest), replace(look, scale=SCALES[0])
    pieces = [one.tokens for one in old.units if not one.special] if unit == UNITS[0] else ()
    words = dict(zip(pieces, split_words(before, parent) if pieces else (), strict=True))
    return EditedMap(
        method.title, replace(old, look=own, end=end), replace(new, look=own, end=end), unit, parent == child, words
    )


def edited_map_html(view: EditedMap) -> str:
    """HTML of the row: the effect of the edit on the map in words, then the two lines. External text is escaped."""
    paragraphs = "".join(_paragraph(view, text) for text in range(max(len(view.before.texts), len(view.after.texts))))
    larger = max(view.before, view.after, key=lambda one: one.largest)
    return (
        f'<div class="xg"><div class="xg-row"><div class="xg-side"><p class="xg-title">{escape(view.title)}</p>'
        f'<p class="xg-small">{order_words(view)}</p><p class="xg-small">{largest_html(view)}</p></div>'
        f'<div><div class="xg-pair{modes(view.before)}">{paragraphs}</div>'
        f'<div class="xg-small xg-foot">{legend_html(larger)}<span>one scale for both lines</span></div>'
        "</div></div></div>"
    )


def order_words(view: EditedMap) -> str:
    """Describe whether the unchanged units keep their order: Spearman's rho, or the reason why there is none."""
    units = count(len(view.unchanged), view.unit if view.same else f"unchanged {view.unit}")
    if len(view.unchanged) < FEWEST_SHARED:
        return f"{units}: too few to compare their order"
    if any(is_constant(scores) for scores in view.scores):
        return f"{units}: no order, because all scores are equal"
    return f"ρ = {signed(spearman(*view.scores) or 0.0)} over {units}"


def largest_html(view: EditedMap) -> str:
    """HTML of the unchanged unit whose score changed most, with the scores before and after."""
    if not view.unchanged:
        return ""
    changes = view.scores[1] - view.scores[0]
    place = int(np.abs(changes).argmax())
    if changes[place] == 0:
        return "no score changed" if view.same else f"no score of an unchanged {view.unit} changed"
    form = signed if view.before.signed else plain
    old, new = (escape(form(float(score))) for score in view.scores[:, place])
    unit, _ = view.unchanged[place]
    return f"largest change: {quoted_html(unit.text, view.words.get(unit.tokens, ''))} {old} → {new}"


def predictions_html(
    before: Prediction,
    after: Prediction,
    target: int,
    names: tuple[str, str] = ("before", "after the edit"),
    most: int = MOST_BARS,
    noun: str = "class",
) -> str:
    """HTML of both predictions side by side, `most` classes each, and the change of the explained class in words.

    Two prompts have different classes, both with the explained token. `noun`: noun for what is explained.
    """
    like = before if before.labels == after.labels else None
    sides = "".join(
        f'<div><p class="xg-small">{name}</p>{prediction_html(one, place_of(before, target, one), like, most)}</div>'
        for name, one in zip(names, (before, after), strict=True)
    )
    return (
        f'<div class="xg"><div class="xg-beside">{sides}</div><p>{change_html(before, after, target, noun)}</p></div>'
    )


def place_of(before: Prediction, target: int, prediction: Prediction) -> int:
    """Return the index of a class of `before` in a prediction, which may be of another prompt."""
    same = prediction.labels == before.labels
    return target if same else prediction.labels.index(before.labels[target])


def change_html(before: Prediction, after: Prediction, target: int, noun: str = "class") -> str:
    """HTML of the explained class before and after, and of whether the predicted class changed."""
    name = f"<bdi>{escape(visible_token(before.labels[target]))}</bdi>"
    old, new = before.probabilities[target], after.probabilities[place_of(before, target, after)]
    if before.regression:
        return f"The score {name} goes from {signed(old)} to {signed(new)}, by <b>{signed(new - old)}</b>."
    moved = f"{name}: {escape(percent(old))} → {escape(percent(new))}, <b>{points(new - old)} percentage points</b>."
    labels = [f"<bdi>{escape(visible_token(prediction.label))}</bdi>" for prediction in (before, after)]
    if before.index == after.index if before.labels == after.labels else before.label == after.label:
        return f"{moved} {LIKELIEST[noun]} stays {labels[0]}."
    return f"{moved} <b>{LIKELIEST[noun]} changes from {' to '.join(labels)}.</b>"


def explained_noun(example: Input) -> str:
    """Return the noun for what maps of the input explain."""
    if not isinstance(example, Prompt):
        return "class"
    return "token" if example.contrast is None else "contrast"


def same_html(explanation: Explanation, example: Input) -> str:
    """HTML of what both maps explain, in words."""
    label = f"<bdi>{escape(explained_name(explanation, example))}</bdi>"
    if explanation.prediction.regression:
        return f"the score {label}"
    noun = explained_noun(example)
    otherwise = {"class": ", even where another is predicted", "token": ", even where another is more probable"}
    return f"the same {noun}, {label}{otherwise.get(noun, '')}"


def how_to_read_html(explanation: Explanation, example: Input, unit: str) -> str:
    """HTML of the instructions for reading the rows below."""
    return (
        f'<div class="xg"><p class="xg-small">Each column has the {unit} before the edit above the {unit} after it; '
        f"frames mark what changed. Both maps explain {same_html(explanation, example)}, so they can be compared. "
        f"ρ is the rank correlation of the scores of unchanged {plural(unit)}: +1 is the same order, 0 no relation."
        "</p></div>"
    )


def _paragraph(view: EditedMap, text: int) -> str:
    columns = "".join(_columns(view, text))
    if not columns:
        return ""
    texts = [version.texts[text] for version in (view.before, view.after) if text < len(version.texts)]
    names = f'<span class="xg-col xg-versions">{"".join(f"<i>{escape(name)}</i>" for name in view.names)}</span>'
    return f'<p dir="{direction("".join(texts))}">{names}{columns}</p>'


def _columns(view: EditedMap, text: int) -> Iterator[str]:
    ends = [0, 0]
    for column in view.columns:
        if column.text != text:
            continue
        sides = ((view.before, column.parent), (view.after, column.child))
        units = [None if place is None else one.units[place] for one, place in sides]
        # A unit is set apart after white space, so that the pieces of a word stay together.
        apart = any(
            unit is not None and (unit.special or unit.start > end) for unit, end in zip(units, ends, strict=True)
        )
        # A unit that starts at this end belongs to the same word; none does after a special token.
        ends = [
            end if unit is None else -1 if unit.special else unit.end for end, unit in zip(ends, units, strict=True)
        ]
        chips = "".join(NONE if place is None else _chip(one, place) for one, place in sides)
        kind = "" if column.kind == "kept" else "xg-changed"
        yield f"<span{class_of('xg-col', 'xg-apart' if apart else '', kind)}>{chips}</span>"


def _chip(view: TokenMap, position: int) -> str:
    unit, hover = view.units[position], escape(tip(view, position))
    if unit.special:
        return f'<b class="xg-special" dir=ltr data-tip="{hover}">{escape(unit.text)}</b>'
    value = f" data-b={brief(unit.score, view.scale, view.signed)}" if view.look.values else ""
    return f'<b{class_of(tone(view, position))}{value} data-tip="{hover}">{escape(unit.text)}</b>'
