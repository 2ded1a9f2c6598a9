"""How maps of patches are drawn: over how much of the picture, on which scale, with or without the known truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from components.link_choice import choice, whole
from components.widgets.patch_map.picker import MOST_OPACITY, OPACITY
from components.widgets.view_options import DEFAULT_VIEW, SCALES, SWITCH, ViewOptions, read_gamma


@dataclass(frozen=True)
class PictureLook:
    """`opacity`: how much of the picture a map hides where its score is largest, in percent.

    `outline`: whether the known truth is drawn. `gamma` and `scale` as in `Look`.
    """

    opacity: int = OPACITY
    outline: bool = True
    gamma: float = DEFAULT_VIEW.gamma
    scale: str = SCALES[0]

    @property
    def maps(self) -> ViewOptions:
        """What the maps themselves need to know of it."""
        return ViewOptions(gamma=self.gamma, scale=self.scale)


PLAIN_PICTURE = PictureLook()


def write_picture_look(look: PictureLook) -> dict[str, list[str]]:
    """What a link says of the look: only what differs from the usual."""
    said, usual = _plain(look), _plain(PLAIN_PICTURE)
    return {name: [value] for name, value in said.items() if value != usual[name]}


def read_picture_look(last: Mapping[str, str], said: list[str]) -> PictureLook:
    """The look that a link asks for; a sentence is added to `said` for each value that is not known."""
    return PictureLook(
        opacity=_opacity(last.get("opacity", str(OPACITY)), said),
        outline=choice("outline", last, SWITCH[::-1], said) == "on",
        gamma=read_gamma(last.get("gamma"), said),
        scale=choice("scale", last, SCALES, said),
    )


def _plain(look: PictureLook) -> dict[str, str]:
    return {
        "opacity": str(look.opacity), "outline": SWITCH[look.outline], "gamma": f"{look.gamma:g}", "scale": look.scale,
    }  # fmt: skip


def _opacity(given: str, said: list[str]) -> int:
    opacity = whole(given, MOST_OPACITY)
    if opacity is not None:
        return opacity
    usual = PLAIN_PICTURE.opacity
    said.append(f"opacity: must be a whole number from 0 to {MOST_OPACITY}, got {given[:40]!r}. {usual} is used.")
    return usual
