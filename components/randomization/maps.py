"""One example's maps: a row a method, a column a stage, the model as it is first, each with its number below it.

The maps are the project's own, of tokens or of patches; only how they stand is of this page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING

from components.method_row import token_map
from components.numbers import hundredths, percent, plain, signed
from components.picture.patch_card import patch_map
from components.picture.patch_card_html import layers_html
from components.picture.patch_map import PatchMap, sentence
from components.randomization.look import SIGNS
from components.randomization.words import ORIGINAL
from components.text.token_map import TokenMap, token_map_html
from engine.registry import Explainer
from engine.request import Example, Picture
from engine.result import Explanation, Prediction

if TYPE_CHECKING:
    from engine.randomization.stage_maps import StageMaps
    from engine.randomization.stages import Stage

View = TokenMap | PatchMap
LABEL = "Maps by stage, a row for each method"
NO_MAP = "no map"


@dataclass(frozen=True)
class Likeness:
    """What stands below a map: a value, or why there is none."""

    value: float | None
    why: str = ""


@dataclass(frozen=True)
class Grid:
    """What is drawn. `shown`: the model as it is, then stages. `likeness`: by place in `shown` and method.

    `shared`: the maps of a method are on one scale, else each on its own.
    """

    shown: Sequence[StageMaps]
    methods: Sequence[Explainer]
    given: Example | Picture
    likeness: Mapping[tuple[int, str], Likeness]
    measure: str
    shared: bool


def grid_html(grid: Grid) -> str:
    """The table. Everything that is not ours is escaped."""
    heads = "".join(f'<th scope="col">{_head(grid, place)}</th>' for place in range(len(grid.shown)))
    rows = "".join(_row(grid, method) for method in grid.methods)
    kind = "xg-pictures" if isinstance(grid.given, Picture) else "xg-texts-of"
    few = " xg-few" if len(grid.shown) < 3 else ""
    return (
        f'<div class="xg"><div class="xg-stages-box" tabindex="0" role="region" aria-label="{LABEL}">'
        f'<table class="xg-stages {kind}{few}"><thead><tr><td></td>{heads}</tr></thead><tbody>{rows}</tbody>'
        f"</table></div></div>"
    )


def stage_title(stage: Stage | None) -> str:
    """A stage in words; None is the model as it is."""
    return ORIGINAL.capitalize() if stage is None else f"{stage.words[:1].upper()}{stage.words[1:]}"


def view_of(method: Explainer, made: Explanation, given: Example | Picture, end: float | None = None) -> View:
    """The map of an explanation. `end`: where its scale ends, None for its own."""
    view: View = patch_map(method, made) if isinstance(given, Picture) else token_map(method, made, given, "token")
    return view if end is None else replace(view, end=end)


def answer_words(prediction: Prediction, target: int) -> str:
    """What the model says, and how likely it then finds the explained class."""
    if prediction.regression:
        return f"score {signed(prediction.logits[0])}"
    said = prediction.labels[prediction.index]
    if prediction.index == target:
        return f"{said} {percent(prediction.probabilities[target])}"
    return f"{said}; {prediction.labels[target]} {percent(prediction.probabilities[target])}"


def _head(grid: Grid, place: int) -> str:
    one, first = grid.shown[place], grid.shown[0].prediction
    changed = not first.regression and one.prediction.index != first.index
    mark = ' <span class="xg-changed">another class</span>' if changed else ""
    said = escape(answer_words(one.prediction, first.index))
    return f'<p class="xg-title">{escape(stage_title(one.stage))}</p><p class="xg-small"><bdi>{said}</bdi>{mark}</p>'


def _row(grid: Grid, method: Explainer) -> str:
    views = list(_views(grid, method))
    cells = "".join(_cell(grid, method, place, view) for place, view in enumerate(views))
    return f'<tr><th scope="row">{escape(method.title)}</th>{cells}</tr>'


def _views(grid: Grid, method: Explainer) -> Iterator[View | None]:
    """Its map at each place; None where it has none."""
    made = [one.maps.get(method.id) for one in grid.shown]
    own = [None if one is None else view_of(method, one, grid.given) for one in made]
    end = max((view.largest for view in own if view is not None), default=0.0) if grid.shared else None
    yield from (None if view is None else view if end is None else replace(view, end=end) for view in own)


def _cell(grid: Grid, method: Explainer, place: int, view: View | None) -> str:
    if view is None:
        return f'<td><p class="xg-small">{NO_MAP}</p></td>'
    return f"<td>{_map(method, grid, place, view)}{_foot(grid, method, place, view)}</td>"


def _map(method: Explainer, grid: Grid, place: int, view: View) -> str:
    if isinstance(view, TokenMap):
        return token_map_html(view)
    told = escape(f"{method.title}, {stage_title(grid.shown[place].stage)}. {sentence(view)}")
    return f'<div class="xg-patches" role="img" aria-label="{told}">{layers_html(view)}</div>'


def _foot(grid: Grid, method: Explainer, place: int, view: View) -> str:
    size = f"to {'±' if view.signed else ''}{plain(view.scale)}" if view.largest else "all zero"
    if place == 0:
        return f'<p class="xg-small">{size}</p>'
    one = grid.likeness.get((place, method.id), Likeness(None, NO_MAP))
    if one.value is None:
        return f'<p class="xg-small" title="{escape(one.why)}"><b>no order</b> · {size}</p>'
    number = f"{SIGNS[grid.measure]} {hundredths(one.value, sign=grid.measure != 'top_k')}"
    return f'<p class="xg-small"><b>{number}</b> · {size}</p>'
