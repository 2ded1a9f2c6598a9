"""Before and after as files that stand alone: a page, a picture of the maps; and the command for one example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING

from components.adversarial.board import board_html, lead_html, pictures_html, sides_of, sizes_html
from components.adversarial.cited import cite, references
from components.adversarial.many_keep import command
from components.adversarial.state import PATH, AdversarialState
from components.adversarial.styles import adversarial_sheet
from components.adversarial.told import title_of, titled_lead_of
from components.adversarial.views import View, sizes_of
from components.adversarial.words import CAUTION
from components.citing import cited_html
from components.export_page import standing_page
from components.inputs.picture_choice import PictureFocus
from components.widgets.patch_map import PatchMap
from components.widgets.patch_map.card import PatchCard
from components.widgets.patch_map.picture import picture_sheet
from components.widgets.token_map import TokenMap
from components.widgets.token_map.svg import maps_svg
from engine.attacks.result import Attacked
from engine.registry import Explainer

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, eq=False)
class Kept:
    """The attacks as the page shows them. `maps`: before, then after each; `seen`: the picture, None of a text."""

    state: AdversarialState
    founds: Sequence[Attacked]
    maps: Sequence[View]
    seen: np.ndarray | None
    methods: Mapping[str, Explainer]

    @property
    def title(self) -> str:
        origin = self.founds[0].provenance
        return f"Attack on {self.methods[origin.method].title} of {origin.model}"

    @property
    def cited(self) -> list[str]:
        """What made this, and references."""
        return [cite(self.founds[0]), *references(self.founds[0], self.methods)]

    @property
    def titled(self) -> Iterator[tuple[str, View]]:
        """The maps with what they are called."""
        return zip(("Before", *map(title_of, self.founds)), self.maps, strict=True)


def html(kept: Kept) -> str:
    """What the page shows, as one file: style inside, no script, nothing fetched, light and dark."""
    founds, given = list(kept.founds), kept.state.input
    assert given is not None
    pictures = pictures_html(founds) if any(found.picture is not None for found in founds) else ""
    again = command_of_one(kept.state)
    sections = (
        lead_html(founds) + board_html(sides_of(founds, kept.maps, kept.seen)) + f"<p>{escape(CAUTION)}</p>",
        f"<h2>What was moved</h2>{pictures}{sizes_html(founds, sizes_of(founds, given), kept.seen)}",
        f"<h2>Cite this</h2>{cited_html(kept.cited[0], kept.cited[1:])}"
        + (f"<pre>{escape(again)}</pre>" * bool(again)),
    )
    sheets = (
        sheet.removeprefix("<style>").removesuffix("</style>") for sheet in (picture_sheet(), adversarial_sheet())
    )
    return standing_page(kept.title, sections, "".join(sheets))


def svg(kept: Kept) -> str:
    """The maps of a text, light."""
    rows = [(title, view) for title, view in kept.titled if isinstance(view, TokenMap)]
    return maps_svg([(f"{kept.title}. {rows[0][0]}", rows[0][1]), *rows[1:]], [*_leads(kept), *kept.cited], dark=False)


def png(kept: Kept) -> bytes:
    """The picture and its maps before and after side by side, light."""
    # Here and not above: Pillow's fonts are only for who keeps a picture.
    from components.widgets.patch_map.png import Sheet, sheet_png

    assert kept.seen is not None
    cards = tuple(PatchCard(title, view, None, "") for title, view in kept.titled if isinstance(view, PatchMap))
    return sheet_png(Sheet(kept.seen, cards, (kept.title, *_leads(kept)), tuple(kept.cited)), "light")


def command_of_one(state: AdversarialState) -> str:
    """The command that makes the same attack; empty of a text or picture of one's own, which is in no data set."""
    focus = state.focus
    index = None if isinstance(focus, PictureFocus) and focus.own else focus.index
    if index is None:
        return ""
    params = {PATH: state.path} if state.method == PATH and state.path else {}
    others = tuple(id for id in state.others if id != state.method) if "others" in state.opened else ()
    return command(
        replace(state.plan(), models=(focus.model,), methods=(state.method,), params=params, transfer=others), index
    )


def _leads(kept: Kept) -> list[str]:
    return [f"{name}: {said}." for name, said in map(titled_lead_of, kept.founds)]
