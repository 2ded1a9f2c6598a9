"""How maps stand side by side and how they are compared: plain values, read from a link and written to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from components.inputs.link import Query
from components.link_choice import choice, whole
from components.question_words import MEASURES
from components.request_link import write_unusual
from components.widgets.patch_map.picker import MOST_OPACITY, OPACITY
from components.widgets.view_options import read_gamma
from engine.comparison.agreeing import ORDERS, How
from engine.metrics.agreement import TOP_PERCENT

UNITS = ("word", "token")
SHOWN = ("scores", "difference", "moves")
"""What the maps show: scores; each part's share of the map against its share in the reference; or how far it has moved
in rank from where the reference has it.
"""
SCALES = ("own", "common")
PERCENTS = (5, 10, TOP_PERCENT, 25, 50)
EXAMPLES = (10, 25, 50, 100, 250, 500)
USUAL_EXAMPLES = 50
LAYOUTS = ("table", "text")


@dataclass(frozen=True)
class CompareLook:
    """`percent`: of the parts that count as the top. `examples`: how many are searched for disagreement.

    `scale`: "common" divides the scores of each map by the sum of their sizes, so that one scale fits all.
    """

    unit: str = UNITS[0]
    layout: str = LAYOUTS[0]
    shown: str = SHOWN[0]
    scale: str = SCALES[0]
    gamma: float = 1.0
    measure: str = MEASURES[0]
    order: str = ORDERS[0]
    percent: int = TOP_PERCENT
    opacity: int = OPACITY
    examples: int = USUAL_EXAMPLES

    @property
    def how(self) -> How:
        """How maps are compared."""
        return How(self.measure, self.order, self.percent)


PLAIN_COMPARE = CompareLook()


def read_compare_look(last: Mapping[str, str], said: list[str]) -> CompareLook:
    """What a link asks for; a sentence is added to `said` for each value that is not known."""
    return CompareLook(
        unit=choice("unit", last, UNITS, said),
        layout=choice("layout", last, LAYOUTS, said),
        shown=choice("shown", last, SHOWN, said),
        scale=choice("scale", last, SCALES, said),
        gamma=read_gamma(last.get("gamma"), said),
        measure=choice("measure", last, MEASURES, said),
        order=choice("order", last, ORDERS, said),
        percent=_one_of("percent", last, PERCENTS, TOP_PERCENT, said),
        opacity=_opacity(last, said),
        examples=_one_of("examples", last, EXAMPLES, USUAL_EXAMPLES, said),
    )


def write_compare_look(look: CompareLook) -> Query:
    """Those values in a link: only what differs from the usual is written."""
    names = ((name, getattr(look, name), usual) for name, usual in vars(PLAIN_COMPARE).items())
    return write_unusual((name, f"{one:g}" if name == "gamma" else one, usual) for name, one, usual in names
                         if one != usual)  # fmt: skip


def _one_of(name: str, last: Mapping[str, str], known: tuple[int, ...], usual: int, said: list[str]) -> int:
    given = last.get(name, str(usual))
    if given in map(str, known):
        return int(given)
    said.append(f"{name}: must be one of {', '.join(map(str, known))}, got {given[:40]!r}. {usual} is used.")
    return usual


def _opacity(last: Mapping[str, str], said: list[str]) -> int:
    given = last.get("opacity", str(OPACITY))
    opacity = whole(given, MOST_OPACITY)
    if opacity is None:
        said.append(f"opacity: must be a whole number from 0 to {MOST_OPACITY}, got {given[:40]!r}. {OPACITY} is used.")
    return OPACITY if opacity is None else opacity
