"""The look of maps in a link: only what differs from the usual is written."""

from __future__ import annotations

from collections.abc import Mapping

from components.link_choice import choice
from components.text.look import LAYOUTS, LEAST_GAMMA, MOST_GAMMA, PLAIN, SCALES, STYLES, Look

SWITCH = ("off", "on")


def write_look(look: Look) -> dict[str, list[str]]:
    """What a link says of the look."""
    said, usual = _plain(look), _plain(PLAIN)
    return {name: [value] for name, value in said.items() if value != usual[name]}


def read_look(last: Mapping[str, str], said: list[str]) -> Look:
    """The look that a link asks for; a sentence is added to `said` for each value that is not known."""
    return Look(
        gamma=read_gamma(last.get("gamma"), said),
        scale=choice("scale", last, SCALES, said),
        style=choice("style", last, STYLES, said),
        values=choice("values", last, SWITCH, said) == "on",
        layout=choice("layout", last, LAYOUTS, said),
    )


def _plain(look: Look) -> dict[str, str]:
    return {
        "gamma": f"{look.gamma:g}", "scale": look.scale, "style": look.style, "values": SWITCH[look.values],
        "layout": look.layout,
    }  # fmt: skip


def read_gamma(given: str | None, said: list[str]) -> float:
    """The gamma that a link asks for, else 1."""
    if given is None:
        return PLAIN.gamma
    try:
        value = round(float(given), 2)
    except (ValueError, OverflowError):
        value = 0.0
    if LEAST_GAMMA <= value <= MOST_GAMMA:
        return value
    said.append(f"gamma: must be a number from {LEAST_GAMMA} to {MOST_GAMMA}, got {given[:40]!r}. 1 is used.")
    return PLAIN.gamma
