"""What stands beside a scale of any kind of map: how its colours bend, and which maps share it."""

from __future__ import annotations

from html import escape
from typing import Protocol, runtime_checkable

from components.numbers import plain
from components.widgets.view_options import ViewOptions


@runtime_checkable
class Scaled(Protocol):
    """A map with a scale that ends at `scale`; `sharing` names the maps that share it."""

    @property
    def scale(self) -> float:
        """The end of the scale."""

    @property
    def look(self) -> ViewOptions:
        """How the map is drawn."""

    @property
    def sharing(self) -> str:
        """The maps that share the scale, in words; empty for the map's own."""


def bent(view: Scaled) -> str:
    """Where half the colour is reached, if that is not at half the scale."""
    if view.look.gamma == 1:
        return ""
    half = view.scale * 0.5 ** (1 / view.look.gamma)
    return f" · gamma {plain(view.look.gamma)}: half the colour at {plain(half)}"


def shared(view: Scaled) -> str:
    """Which maps have this scale, if maps are to share theirs; escaped."""
    if not view.look.shared:
        return ""
    return (
        f" · scale shared by the {escape(view.sharing)}" if view.sharing else " · own scale: no other map has its unit"
    )
