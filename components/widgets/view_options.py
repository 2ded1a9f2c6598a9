"""Options of drawing maps, their fields in a link, and the maps that may share a scale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from components.links import read_choice
from engine.registry import Explainer

LEAST_GAMMA, MOST_GAMMA = 0.3, 2.0
SCALES = ("own", "shared")
STYLES = ("highlight", "underline")
LAYOUTS = ("flow", "aligned")
SWITCH = ("off", "on")
"""False and true in a link."""
FAMILIES_WITHOUT_UNIT = ("baseline", "ensemble")


@dataclass(frozen=True)
class ViewOptions:
    """`gamma`: the color is this power of the score's share of the scale. `values`: numbers under the units.

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


DEFAULT_VIEW = ViewOptions()


def read_view_options(last: Mapping[str, str], notes: list[str]) -> ViewOptions:
    """The options of a link; a sentence is added to `notes` for each value that is not known."""
    return ViewOptions(
        gamma=read_gamma(last.get("gamma"), notes),
        scale=read_choice("scale", last, SCALES, notes),
        style=read_choice("style", last, STYLES, notes),
        values=read_choice("values", last, SWITCH, notes) == "on",
        layout=read_choice("layout", last, LAYOUTS, notes),
    )


def write_view_options(options: ViewOptions) -> dict[str, list[str]]:
    """The fields of a link: only what differs from the default."""
    fields, defaults = _fields(options), _fields(DEFAULT_VIEW)
    return {name: [value] for name, value in fields.items() if value != defaults[name]}


def _fields(options: ViewOptions) -> dict[str, str]:
    return {
        "gamma": f"{options.gamma:g}", "scale": options.scale, "style": options.style, "values": SWITCH[options.values],
        "layout": options.layout,
    }  # fmt: skip


def read_gamma(text: str | None, notes: list[str]) -> float:
    """The gamma of a link, else 1."""
    if text is None:
        return DEFAULT_VIEW.gamma
    try:
        gamma = round(float(text), 2)
    except (ValueError, OverflowError):
        gamma = 0.0
    if LEAST_GAMMA <= gamma <= MOST_GAMMA:
        return gamma
    notes.append(f"gamma: must be a number from {LEAST_GAMMA} to {MOST_GAMMA}, got {text[:40]!r}. 1 is used.")
    return DEFAULT_VIEW.gamma


def scale_group(method: Explainer, params: Mapping[str, object]) -> str | None:
    """The group of maps that may share a scale with the method's, in words; None where scores have no unit.

    Logits, probabilities and attention are different units. A gradient is a change per unit of embedding, so it is
    not comparable with a method that splits the logit itself.
    """
    if method.family in FAMILIES_WITHOUT_UNIT:
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
    return {group: max(scores) for group, scores in sizes.items() if len(scores) > 1}
