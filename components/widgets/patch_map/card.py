"""The cards of a picture: each map over the picture, with its scale, its check and its cost.

`data-v` has the scores row by row as they are printed, `data-r` their ranks in base 36, all of one length.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from html import escape

from components.method_row import Facts, Placeholder, check_html, cost_line, details_html, facts
from components.numbers import plain, small
from components.widgets.patch_map.html import LAYERS, PatchMap, layers_html, legend_html, sentence
from components.widgets.view_options import DEFAULT_VIEW, SCALES, ViewOptions, scale_group
from engine.registry import Explainer
from engine.result import Check, Explanation

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
MOST_CLASSES = 5
"""Classes of a prediction that have a bar beside cards."""


@dataclass(frozen=True, eq=False)
class PatchCard:
    """The content of a card, in plain values. `truth`: how the map agrees with the known truth, a line each."""

    title: str
    view: PatchMap
    check: Check | None
    cost: str
    notes: tuple[str, ...] = ()
    caution: str = ""
    facts: Facts = ()
    truth: tuple[str, ...] = ()


def patch_card(
    method: Explainer,
    explanation: Explanation,
    omitted: Iterable[str] = (),
    look: ViewOptions = DEFAULT_VIEW,
    ends: Mapping[str, float] | None = None,
    truth: tuple[str, ...] = (),
) -> PatchCard:
    """The card of an explanation. `omitted`: notes that stand elsewhere on the page. `truth` as in `PatchCard`.

    `ends`: where the scales end that maps share (`view_options.shared_ends`); None as long as that is not known.
    """
    view = replace(patch_map(method, explanation), look=replace(look, scale=SCALES[0]) if ends is None else look)
    group = scale_group(method, explanation.provenance.params)
    if ends and group is not None and group in ends:
        view = replace(view, end=ends[group], sharing=group)
    notes = tuple(note for note in explanation.remarks if note not in set(omitted))
    return PatchCard(
        method.title,
        view,
        explanation.check,
        cost_line(explanation),
        notes,
        method.caution,
        facts(method, explanation),
        truth,
    )


def patch_map(method: Explainer, explanation: Explanation) -> PatchMap:
    """The map of an explanation, on its own scale."""
    origin = explanation.provenance
    return PatchMap(explanation.on_grid, method.is_signed(origin.params), origin.target_label)


def extent(method: Explainer, explanation: Explanation) -> float:
    """The map's largest score."""
    return patch_map(method, explanation).largest


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
    """The picture alone, as the model sees it, with lines of text below it."""
    text = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return (
        f'<div class="xg xg-card"><p class="xg-title">{escape(title)}</p><div></div>'
        f'<div class="xg-patches xg-alone" role="img" aria-label="{escape(title)}">{LAYERS}</div>'
        f'<div class="xg-small">{text}</div></div>'
    )


def quiet_card_html(card: Placeholder) -> str:
    """The card of a method without a map: its numbers are still to come, or an error stands in their place."""
    title, text, kind = escape(card.title), escape(card.sentence), " xg-error" if card.failed else ""
    return (
        f'<div class="xg xg-card xg-quiet"><p class="xg-title">{title}</p><div></div>'
        f'<div class="xg-patches xg-empty"></div><p class="xg-small xg-sentence{kind}">{text}</p></div>'
    )


def check_mark(check: Check | None) -> str:
    """The method's own check in one line; its numbers are in the details, and here if they are not good."""
    if check is None or not check.ok:
        return check_html(check)
    measured = escape(", ".join(f"{part.name}: {small(part.value)}" for part in check.parts))
    return f'<p class="xg-small" title="{measured}">✓ checked</p>'


def check_facts(check: Check | None) -> Facts:
    """The method's own check as details, one for each number."""
    return () if check is None else tuple(("check", _describe(part)) for part in check.parts)


def _describe(part: Check) -> str:
    verdict = "good: at most" if part.ok else "not good: above"
    return f"{part.name}: {small(part.value)}, {verdict} {plain(part.limit)}"


def patches_html(title: str, view: PatchMap) -> str:
    """The picture with the map over it; the browser reads its scores from it (picker.js)."""
    rows, columns = view.grid
    return (
        f'<div class="xg-patches" tabindex="0" role="application" aria-roledescription="map of patches"'
        f' aria-label="{escape(title)}" aria-description="{escape(sentence(view))}"'
        f' data-g={rows}x{columns}{" data-s" * view.signed} data-r={_ranks(view)} data-v="{_scores(view)}">'
        f'{layers_html(view)}<i class="xg-lit"></i></div>'
    )


def _unbroken(text: str) -> str:
    """Escaped, and no line begins with a point between two parts."""
    return escape(text).replace(" · ", "\u00a0· ")


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
