"""The card of an explanation of a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from components.method_row import cost_line, facts
from components.picture.patch_card_html import PatchCard
from components.picture.patch_map import PatchMap
from components.text.look import PLAIN, SCALES, Look, scale_group
from engine.registry import Explainer
from engine.result import Explanation


def patch_card(
    method: Explainer,
    made: Explanation,
    said: Iterable[str] = (),
    look: Look = PLAIN,
    ends: Mapping[str, float] | None = None,
    truth: tuple[str, ...] = (),
) -> PatchCard:
    """What is said elsewhere on the page is left out of the notes; `ends` and `truth` as in `PatchCard`.

    `ends`: where the scales end that maps share (`look.shared_ends`); None as long as that is not known.
    """
    view = replace(patch_map(method, made), look=replace(look, scale=SCALES[0]) if ends is None else look)
    group = scale_group(method, made.provenance.params)
    if ends and group is not None and group in ends:
        view = replace(view, end=ends[group], sharing=group)
    notes = tuple(note for note in made.remarks if note not in set(said))
    return PatchCard(method.title, view, made.check, cost_line(made), notes, method.caution, facts(method, made), truth)


def patch_map(method: Explainer, made: Explanation) -> PatchMap:
    """The map of an explanation, on its own scale."""
    origin = made.provenance
    return PatchMap(made.on_grid, method.is_signed(origin.params), origin.target_label)


def extent(method: Explainer, made: Explanation) -> float:
    """The map's largest score."""
    return patch_map(method, made).largest
