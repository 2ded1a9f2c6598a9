"""The attacks that are asked for: those that are there, a button with what the others cost, and each at its work."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.adversarial.charts import CURVES, Along, trail_chart
from components.adversarial.live import forget, live_of
from components.adversarial.session import key
from components.adversarial.state import PATH, AdversarialState
from components.adversarial.strength import chosen
from components.adversarial.told import starts_words
from components.adversarial.words import EMPTY, OBJECTIVE_TITLES, STOPPED
from components.engine_room import computed
from components.numbers import count
from components.stopping import STOPPED as STOPPED_KEYS
from components.stopping import ProgressLine, go_on_button, is_stopped
from components.theme import shown_theme
from components.trouble import say_error, sentence
from engine.attacks.attack import AttackRequest, attack_many, key_of
from engine.attacks.result import Attacked
from engine.errors import Cancelled
from engine.progress import CancelToken
from engine.store import result_store

ASKED = "adversarial_asked"
"""In the session: the cache keys of attacks that the person wants run."""
FAILED = "adversarial_failed"
"""In the session: why attacks failed, by their cache keys."""
DRAW_SECONDS = 1.0


def run_area(state: AdversarialState, place: DeltaGenerator) -> list[Attacked]:
    """The attacks that are there, computed now if they were asked for. `place`: where troubles are said."""
    try:
        requests = {key_of(one): one for one in (state.request(objective) for objective in state.objectives)}
    except Exception as error:
        say_error(sentence(error), place)
        return []
    asked = st.session_state.get(ASKED, [])
    missing = [own for own in requests if own not in asked and not result_store().contains(own)]
    if missing:
        _offer(state, missing)
    founds = [_run(request, own) for own, request in requests.items() if own not in missing]
    return [found for found in founds if found is not None]


def cost_words(state: AdversarialState, attacks: int) -> str:
    """What a run costs at most, in passes of the model."""
    params = chosen(state.kind, state.strength)
    nodes = state.points if state.method == PATH else 1
    passes = attacks * params.starts * params.steps * nodes
    path = f", each at {nodes} points of the path" if nodes > 1 else ""
    starts = starts_words(params.starts)
    return (
        f"{count(attacks, 'attack')}{starts} of at most {count(params.steps, 'step')}{path}: {passes:,} "
        f"{'pass' if passes == 1 else 'passes'} forwards through the model, and two backwards for each."
    )


def _offer(state: AdversarialState, missing: Sequence[str]) -> None:
    with st.container(border=True, key="adversarial_to_do"):
        st.markdown(EMPTY)
        st.caption(cost_words(state, len(missing)))
        st.button(
            "Run the attack", key=key(state.kind, "run"), type="primary", on_click=partial(_ask, list(missing))
        )  # fmt: skip


def _ask(keys: list[str]) -> None:
    st.session_state[ASKED] = sorted({*st.session_state.get(ASKED, []), *keys})
    st.session_state[STOPPED_KEYS] = [one for one in st.session_state.get(STOPPED_KEYS, []) if one not in keys]


def _run(request: AttackRequest, own: str) -> Attacked | None:
    """One attack, from the cache or watched; None after saying why there is none. `own`: its cache key."""
    title, failed = OBJECTIVE_TITLES[str(request.attack["objective"])], st.session_state.setdefault(FAILED, {})
    progress, curves = st.empty(), st.empty()
    if is_stopped(own):
        go_on_button(progress, own, STOPPED)
    elif own in failed:
        _say_failed(own, title, failed[own])
    else:
        try:
            found = computed(own, partial(_compute, request, own), _watched(request, own, title, progress, curves))
            progress.empty()
            return found
        except Cancelled:
            go_on_button(progress, own, STOPPED)
        except Exception as error:
            failed[own] = sentence(error)
            progress.empty()
            _say_failed(own, title, failed[own])
        finally:
            curves.empty()
    return None


def _say_failed(own: str, title: str, why: str) -> None:
    """What failed is not tried again by itself."""
    say_error(f"{title}: {why}")
    st.button("Try again", key=f"adversarial_again.{own}", on_click=lambda: st.session_state[FAILED].pop(own, None))


def _compute(request: AttackRequest, own: str, token: CancelToken) -> Attacked:
    try:
        return attack_many([request], cancel=token, watch=live_of(own).add)[0]
    finally:
        forget(own)


def _watched(
    request: AttackRequest, own: str, title: str, progress: DeltaGenerator, curves: DeltaGenerator
) -> Callable[[str], None]:
    """Draws how far it is at each tick, and its curves now and then."""
    line, drawn = ProgressLine(progress, [own], title), [0.0]

    def tick(words: str) -> None:
        live = live_of(own)
        line.show(live.share, title)
        line.tick(", ".join(filter(None, (words.split(",")[0] if live.words else words, live.words))))
        if live.words and time.monotonic() - drawn[0] > DRAW_SECONDS:
            drawn[0] = time.monotonic()
            draw_curves([Along(str(request.attack["objective"]), live.trail())], curves)

    return tick


def draw_curves(attacks: Sequence[Along], place: DeltaGenerator, regression: bool = False) -> None:
    """Objective, rank change and probability side by side."""
    columns = place.container().columns(len(CURVES), gap="small")
    for column, (curve, title) in zip(columns, CURVES.items(), strict=True):
        column.altair_chart(trail_chart(attacks, curve, shown_theme(), regression), alt=f"{title} along the steps")
