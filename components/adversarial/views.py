"""What is drawn of an attack: maps of tokens or of patches, before and after, on one scale."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float, UInt8

from components.numbers import plain
from components.widgets.patch_map import PatchMap
from components.widgets.token_map import TokenMap
from engine.attacks.result import Attacked
from engine.registry import Explainer
from engine.request import Example, Input
from engine.word_units import units

View = TokenMap | PatchMap
SHARING = "before and after"
PALE = 0.25
"""A map that ends below this share of its scale is hard to see."""
Scores = Float[np.ndarray, "seq"]


def map_of(found: Attacked, scores: Scores, given: Input, signed: bool) -> View:
    """Scores of all positions as a map on its own scale. `signed`: they speak for or against the attacked class."""
    target = found.provenance.target_label
    if isinstance(given, Example):
        texts = (given.text,) if given.text_pair is None else (given.text, given.text_pair)
        return TokenMap(units(found.tokens, scores, given), texts, signed, target)
    assert found.grid is not None
    return PatchMap(scores[found.features].reshape(found.grid), signed, target)


def on_one_scale(views: list[View]) -> list[View]:
    """The same maps, their colours ending at the largest score of all."""
    end = max((view.largest for view in views), default=0.0)
    return [replace(view, end=end, sharing=SHARING) for view in views]


def maps_of(founds: list[Attacked], method: Explainer, given: Input, shared: bool = True) -> list[View]:
    """The map before, then that after each attack. `shared`: on one scale, else each on its own."""
    signed = method.is_signed(founds[0].provenance.params)
    scores = [founds[0].before, *(found.after for found in founds)]
    views = [map_of(founds[0], own, given, signed) for own in scores]
    return on_one_scale(views) if shared else views


def pale_words(views: list[View]) -> str:
    """That the map before is hard to see on a scale that it shares; empty where it is not."""
    first, end = views[0].largest, views[0].scale
    if not 0 < first < PALE * end:
        return ""
    return (
        f"On one scale the map before is pale: its own would end at {plain(first)}, this one at {plain(end)}. "
        "To see its order, choose Each its own."
    )


def sizes_of(founds: list[Attacked], given: Input) -> list[View]:
    """How far each attack moved each token or patch: Euclidean lengths, on one scale."""
    views = [map_of(found, found.length.astype(np.float64), given, False) for found in founds]
    end = max(view.largest for view in views)
    return [replace(view, end=end, sharing="both attacks" if len(views) > 1 else "") for view in views]


def magnified(difference: Float[np.ndarray, "height width 3"], factor: int) -> UInt8[np.ndarray, "height width 3"]:
    """What was added to each colour, `factor` times as large, around grey."""
    return np.clip(np.rint(127.5 + 255 * factor * difference), 0, 255).astype(np.uint8)


def factor_of(difference: Float[np.ndarray, "height width 3"]) -> int:
    """By which whole number the largest change just fills the colours, at least 1."""
    largest = float(np.abs(difference).max())
    return max(1, int(0.5 / largest + 1e-6)) if largest > 0 else 1
