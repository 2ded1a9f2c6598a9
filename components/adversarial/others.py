"""Does the attack transfer? The maps that other methods make of the attacked input, before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from components.adversarial.board import map_html
from components.adversarial.example import seen_of
from components.adversarial.session import OPEN, key
from components.adversarial.told import title_of
from components.adversarial.views import View, map_of, on_one_scale
from components.adversarial.words import NOT_ATTACKED, TRANSFER
from components.awaiting import awaited
from components.engine_room import computed
from components.kept import KEPT
from components.numbers import percent, signed
from components.trouble import say_note
from components.widgets.patch_map.picture import picture_style
from engine.progress import cancellable
from engine.registry import Explainer

if TYPE_CHECKING:
    from components.adversarial.state import AdversarialState
    from engine.attacks.result import Attacked
    from engine.attacks.transfer import Transferred
    from engine.progress import CancelToken

TITLE = "Does it fool other methods?"


def others_area(state: AdversarialState, founds: Sequence[Attacked], methods: Mapping[str, Explainer]) -> None:
    """The choice of methods, and a row of maps for each. Nothing is computed while it is closed."""
    if not st.toggle(TITLE, key=key(state.kind, f"{OPEN}others"), help=TRANSFER, persist_state=KEPT):
        return
    offered = [id for id in methods if id != state.method]
    st.pills(
        "Other methods", offered, selection_mode="multi", key=key(state.kind, "others"), help=NOT_ATTACKED,
        format_func=lambda id: methods[id].title if id in methods else id, persist_state=KEPT,
    )  # fmt: skip
    wanted = [id for id in offered if id in state.others]
    if not wanted:
        say_note("No other method is chosen. Pick one or more.")
    for id in wanted:
        _row(state, founds, methods[id])


def _row(state: AdversarialState, founds: Sequence[Attacked], method: Explainer) -> None:
    made = [(found, _of(state, found, method)) for found in founds]
    there = [(found, other) for found, other in made if other is not None]
    if there and state.input is not None:
        st.html(row_html(state, there, method))


def _of(state: AdversarialState, found: Attacked, method: Explainer) -> Transferred | None:
    """The maps of one method, from the cache or computed; None after saying why there are none."""
    from engine.attacks.transfer import key_of, transferred

    request = state.request(str(found.attack["objective"]))
    own = partial(key_of, request, method.id, {})

    def work(token: CancelToken) -> Transferred:
        with cancellable(token):
            return transferred(request, found, method.id, {})

    return awaited(
        st.empty(), own, f"{method.title}, {title_of(found).lower()}", "Stopped before these maps were made.",
        lambda tick: computed(own(), work, tick),
    )  # fmt: skip


def row_html(state: AdversarialState, made: Sequence[tuple[Attacked, Transferred]], method: Explainer) -> str:
    """A method's map before, then after each attack, on one scale."""
    first, founds = made[0], [found for found, _ in made]
    given = state.input
    assert given is not None
    signed_map = method.is_signed({})
    scores = [first[1].before, *(other.after for _, other in made)]
    views = on_one_scale([map_of(first[0], own, given, signed_map) for own in scores])
    seen = seen_of(state, founds)
    style = "" if seen is None else picture_style(seen, scope=".xg-others")
    cells = "".join(f"<div>{cell}</div>" for cell in _cells(views, made))
    return (
        f'<div class="xg xg-others">{style}<p class="xg-title">{escape(method.title)}</p>'
        f'<div class="xg-sides">{cells}</div></div>'
    )


def _cells(views: Sequence[View], made: Sequence[tuple[Attacked, Transferred]]) -> Iterator[str]:
    yield f'<p class="xg-small">Before</p>{map_html(views[0], "Before")}'
    for view, (found, other) in zip(views[1:], made, strict=True):
        title = title_of(found)
        told = f'<p class="xg-small">{change_words(other)}</p>'
        yield f'<p class="xg-small">{escape(title)}</p>{map_html(view, title)}{told}'


def change_words(other: Transferred) -> str:
    """How much its own top changed."""
    normalised = other.top_k_sum_change_normalised
    more = "" if normalised is None else f", normalised {signed(normalised)}"
    return (
        f"<b>Rank change {percent(other.rank_change)}</b> of its own first {other.k} · "
        f"top-k sum change {signed(other.top_k_sum_change)}{more}"
    )
