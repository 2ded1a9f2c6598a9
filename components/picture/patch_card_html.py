"""The cards of a picture: each map over the picture, with its scale, its check and its cost.

A map is two small PNG files of a pixel for each patch, one for each theme, drawn without smoothing; a veil of the
ground between picture and map (assets/picture_cards.css) makes the map opaque as its opacity comes to 1.

`data-v` has the scores row by row as they are printed, `data-r` their ranks in base 36, all of one length.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np
from PIL import Image

from components.method_row import Facts, Quiet, check_html, details_html
from components.numbers import plain, small
from components.palette import THEMES, Theme
from components.picture.patch_map import PatchMap, colour_places, colour_table, ends, more_lines, sentence, sides
from components.picture.variables import png_url
from engine.result import Check

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
LAYERS = '<i class="xg-seen"></i><i class="xg-truth"></i>'


@dataclass(frozen=True, eq=False)
class PatchCard:
    """What a card shows, in plain values. `truth`: what the known truth says of the map, a line each."""

    title: str
    view: PatchMap
    check: Check | None
    cost: str
    notes: tuple[str, ...] = ()
    caution: str = ""
    facts: Facts = ()
    truth: tuple[str, ...] = ()


def patch_card_html(card: PatchCard) -> str:
    """The card. Everything that is not ours is escaped."""
    notes = "".join(f'<p class="xg-note">{escape(note)}</p>' for note in card.notes)
    truth = "".join(f'<p class="xg-fact">{escape(line)}</p>' for line in card.truth)
    caution = f'<p class="xg-caution">{escape(card.caution)}</p>' if card.caution else ""
    return (
        f'<div class="xg xg-card"><p class="xg-title">{escape(card.title)}</p>'
        f'<div><p class="xg-small">{_unbroken(card.cost)}</p>{check_mark(card.check)}</div>'
        f"{patches_html(card.title, card.view)}"
        f'<div class="xg-small">{legend_html(card.view)}{truth}{notes}{caution}'
        f"{details_html(check_facts(card.check) + card.facts)}</div></div>"
    )


def picture_card_html(title: str, lines: tuple[str, ...] = ()) -> str:
    """The picture alone, as the model sees it, with what is to be said of it."""
    said = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return (
        f'<div class="xg xg-card"><p class="xg-title">{escape(title)}</p><div></div>'
        f'<div class="xg-patches xg-alone" role="img" aria-label="{escape(title)}">{LAYERS}</div>'
        f'<div class="xg-small">{said}</div></div>'
    )


def quiet_card_html(card: Quiet) -> str:
    """The card of a method without a map: its numbers are still to come, or an error stands in their place."""
    title, said, kind = escape(card.title), escape(card.sentence), " xg-error" if card.failed else ""
    return (
        f'<div class="xg xg-card xg-quiet"><p class="xg-title">{title}</p><div></div>'
        f'<div class="xg-patches xg-empty"></div><p class="xg-small xg-sentence{kind}">{said}</p></div>'
    )


def check_mark(check: Check | None) -> str:
    """The method's own check in one line; what it measured stands in the details, and here if it is not good."""
    if check is None or not check.ok:
        return check_html(check)
    measured = escape(", ".join(f"{part.name}: {small(part.value)}" for part in check.parts))
    return f'<p class="xg-small" title="{measured}">✓ checked</p>'


def check_facts(check: Check | None) -> Facts:
    """The method's own check as details, one for each number."""
    return () if check is None else tuple(("check", _judged(part)) for part in check.parts)


def _judged(part: Check) -> str:
    verdict = "good: at most" if part.ok else "not good: above"
    return f"{part.name}: {small(part.value)}, {verdict} {plain(part.limit)}"


def patches_html(title: str, view: PatchMap) -> str:
    """The picture with the map over it; the browser reads its scores from it (assets/patch_pick.js)."""
    rows, columns = view.grid
    return (
        f'<div class="xg-patches" tabindex="0" role="application" aria-roledescription="map of patches"'
        f' aria-label="{escape(title)}" aria-description="{escape(sentence(view))}"'
        f' data-g={rows}x{columns}{" data-s" * view.signed} data-r={_ranks(view)} data-v="{_scores(view)}">'
        f'{layers_html(view)}<i class="xg-lit"></i></div>'
    )


def layers_html(view: PatchMap) -> str:
    """The picture with the map of each theme over it, in colours alone."""
    light, dark = (data_url_of_overlay(view, theme) for theme in THEMES)
    return f'{LAYERS}<i class="xg-over" style="--l:url({light});--d:url({dark})"></i>'


def legend_html(view: PatchMap) -> str:
    """The scale in colours and words, or that there is nothing to colour."""
    if view.largest == 0:
        return "<p>All scores are zero: nothing to colour.</p>"
    low, high = sides(view)
    words = f'<span>{low}</span><span title="{escape(high)}">{escape(high)}</span>'
    scale = f'<i class="xg-scale xg-{"signed" if view.signed else "amount"}"></i>'
    more = "".join(f"<p>{line}</p>" for line in more_lines(view))
    return f'<p class="xg-ends">{scale}{"".join(f"<b>{end}</b>" for end in ends(view))}{words}</p>{more}'


def data_url_of_overlay(view: PatchMap, theme: Theme) -> str:
    """The overlay as a PNG of a pixel for each patch, with a palette of the colours that it has."""
    used, places = np.unique(colour_places(view), return_inverse=True)
    table = colour_table(theme)[used]
    image = Image.fromarray(places.reshape(view.grid).astype(np.uint8))
    image.putpalette(table[:, :3].tobytes())
    return png_url(image, transparency=table[:, 3].tobytes())


def _unbroken(said: str) -> str:
    """Escaped, and no line begins with a point between two parts."""
    return escape(said).replace(" · ", "\u00a0· ")


def _ranks(view: PatchMap) -> str:
    length = len(_base36(view.scores.size))
    return "".join(_base36(rank).rjust(length, "0") for rank in view.ranks)


def _base36(number: int) -> str:
    high, low = divmod(number, len(DIGITS))
    return (_base36(high) if high else "") + DIGITS[low]


def _scores(view: PatchMap) -> str:
    """Three digits each, without the 0 before the point, the plus and the fine minus, which the browser puts back."""
    return " ".join(
        f"{value:.3g}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.3g}" for value in view.scores.flat
    )
