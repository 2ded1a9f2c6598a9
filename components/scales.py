"""Maps of one page on scales that they share: drawn again once it is known where those end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from components.filling import Place
from components.widgets.view_options import scale_group, shared_ends
from engine.registry import Explainer
from engine.result import Explanation

Ends = Mapping[str, float]
"""By what maps have in common, where their scale ends."""
Extent = Callable[[Explainer, Explanation], float]
"""The largest score of a map."""


def share_scales(places: Sequence[Place], extent: Extent, draw: Callable[[Explainer, Explanation, Ends], str]) -> None:
    """Draws the maps that are there again, on the scales that those of the same unit share."""
    made = [(place, place.made) for place in places if place.made is not None]
    ends = ends_of(((place.method, found) for place, found in made), extent)
    for place, found in made:
        place.slot.html(draw(place.method, found, ends))


def ends_of(shown: Iterable[tuple[Explainer, Explanation]], extent: Extent) -> dict[str, float]:
    """Where the scales end that at least two maps share."""
    return shared_ends((scale_group(method, made.provenance.params), extent(method, made)) for method, made in shown)
