"""Options for drawing maps, their fields in a link, and the maps that may share a scale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.params import option
from engine.registry import Explainer

LEAST_GAMMA, MOST_GAMMA = 0.3, 2.0
SCALES = ("own", "shared")
STYLES = ("highlight", "underline")
LAYOUTS = ("flow", "aligned")
FAMILIES_WITHOUT_UNIT = ("baseline", "ensemble", "learned")


def gamma() -> Any:
    """Option for gamma, the exponent of a score's share of the scale."""
    return option(1.0, low=LEAST_GAMMA, high=MOST_GAMMA, digits=2, write="{:g}".format, fallback="1 is used.")


@dataclass(frozen=True)
class ViewOptions:
    """Options for drawing maps.

    `gamma`: exponent of a score's share of the scale, for its color. `values`: whether scores are printed below the
    units. `layout`: "flow" draws each map as its text, "aligned" all maps as one table with a column for each unit.
    """

    gamma: float = gamma()
    scale: str = option(SCALES[0], choices=SCALES)
    style: str = option(STYLES[0], choices=STYLES)
    values: bool = False
    layout: str = option(LAYOUTS[0], choices=LAYOUTS)

    @property
    def shared(self) -> bool:
        return self.scale == "shared"

    @property
    def aligned(self) -> bool:
        return self.layout == "aligned"


DEFAULT_VIEW = ViewOptions()


def scale_group(method: Explainer, params: Mapping[str, object]) -> str | None:
    """Describe the group of maps that may share a scale with the method's; None if its scores have no unit.

    Logits, probabilities and attention are different units. A gradient is a change per unit of embedding, so it is not
    comparable with a method that splits the logit itself.
    """
    if method.family in FAMILIES_WITHOUT_UNIT:
        return None
    axes, sign = method.axes_at(params), "signed" if method.is_signed(params) else "unsigned"
    kind = "sensitivities" if axes.removal.startswith("none:") else "maps"
    return f"{sign} {kind} of the {axes.behaviour.partition(',')[0]}"


def shared_ends(maps: Iterable[tuple[str | None, float]]) -> dict[str, float]:
    """Return the largest score of each group that has at least two maps."""
    sizes: dict[str, list[float]] = {}
    for group, largest in maps:
        if group is not None:
            sizes.setdefault(group, []).append(largest)
    return {group: max(scores) for group, scores in sizes.items() if len(scores) > 1}
