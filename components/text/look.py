"""How maps are drawn, and which maps may be read by one scale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.registry import Explainer

LEAST_GAMMA, MOST_GAMMA = 0.3, 2.0
SCALES = ("own", "shared")
STYLES = ("highlight", "underline")
LAYOUTS = ("flow", "aligned")
WITHOUT_UNIT = ("baseline", "ensemble")


@dataclass(frozen=True)
class Look:
    """`gamma`: the colour is this power of the score's share of the scale. `values`: numbers under the units.

    `layout`: "flow" draws each map as its text, "aligned" all maps as one table with a column for each unit.
    """

    gamma: float = 1.0
    scale: str = SCALES[0]
    style: str = STYLES[0]
    values: bool = False
    layout: str = LAYOUTS[0]

    @property
    def shared(self) -> bool:
        return self.scale == "shared"

    @property
    def aligned(self) -> bool:
        return self.layout == "aligned"


PLAIN = Look()


def scale_group(method: Explainer, params: Mapping[str, object]) -> str | None:
    """What maps at these parameters have in common that may share a scale, in words; None where scores have no unit.

    Logits, probabilities and attention are different units. A gradient is a change per unit of embedding, so it is
    not comparable with a method that splits the logit itself.
    """
    if method.family in WITHOUT_UNIT:
        return None
    axes, sign = method.axes_at(params), "signed" if method.is_signed(params) else "unsigned"
    kind = "sensitivities" if axes.removal.startswith("none:") else "maps"
    return f"{sign} {kind} of the {axes.behaviour.partition(',')[0]}"


def shared_ends(maps: Iterable[tuple[str | None, float]]) -> dict[str, float]:
    """The largest score of each group that has at least two maps."""
    sizes: dict[str, list[float]] = {}
    for group, largest in maps:
        if group is not None:
            sizes.setdefault(group, []).append(largest)
    return {group: max(found) for group, found in sizes.items() if len(found) > 1}
