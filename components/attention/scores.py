"""A number for every head by the score that a person chose: read from its attention, or computed on demand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from streamlit.delta_generator import DeltaGenerator

from components.attention.look import UNITS, BoardLook
from components.attention.state import AttentionState
from components.awaiting import awaited
from components.computing import Tick
from components.engine_room import computed, explain, key_of
from components.numbers import count
from components.prediction_area import PROBE
from components.question_words import plural
from components.stopping import is_stopped
from engine.errors import ExegesisError
from engine.heads import readings
from engine.heads.readings import HeadAblation, HeadReading, switch_off_each
from engine.heads.scores import AGREEMENT, AGREES, OFF, SCORES, PerHead, agreement_with
from engine.registry import explainer
from engine.result import Explanation
from engine.store import result_store


@dataclass(frozen=True, eq=False)
class HeadMap:
    """What the map of layers and heads shows. `values`: NaN for a head that has none. `words`: what it means."""

    id: str
    title: str
    unit: str
    signed: bool
    values: Float[np.ndarray, "layer head"]
    words: str
    citation: str


def score_map(state: AttentionState, reading: HeadReading, place: DeltaGenerator) -> HeadMap | None:
    """The chosen score; None after saying in `place`, an empty element, why there is none.

    What is not read from the attention is computed here, with its progress in `place`.
    """
    if state.look.score == AGREEMENT:
        made = compared_with(state, place)
        return None if made is None else agreement_map(reading, made, state.look)
    if state.look.score == OFF:
        off = switched_off(state, place)
        return None if off is None else off_map(off, reading.of.prediction.regression)
    return _map(state.look.score, reading.scores[state.look.score])


def is_pending(state: AttentionState) -> bool:
    """Whether `score_map` would have to compute for it: neither cached nor stopped."""
    keys = {
        OFF: lambda: readings.switching_key(state.request(PROBE)),
        AGREEMENT: lambda: key_of(state.request(state.look.against)),
    }
    if state.look.score not in keys:
        return False
    try:
        key = keys[state.look.score]()
    except ExegesisError:  # `score_map` says it
        return False
    return not is_stopped(key) and not result_store().contains(key)


def switched_off(state: AttentionState, place: DeltaGenerator) -> HeadAblation | None:
    """What the model says without each head."""
    request = state.request(PROBE)

    def work(tick: Tick) -> HeadAblation:
        return computed(readings.switching_key(request), lambda token: switch_off_each(request, cancel=token), tick)

    stopped = "Stopped before every head was switched off."
    return awaited(place, lambda: readings.switching_key(request), "Switching each head off", stopped, work)


def compared_with(state: AttentionState, place: DeltaGenerator) -> Explanation | None:
    """The attribution that maps of heads are compared with: of the same input, class and switched heads."""
    request = state.request(state.look.against)
    title = explainer(request.method, state.kind).title
    return awaited(
        place, lambda: key_of(request), f"Computing: {title}", f"Stopped: {title}.", lambda tick: explain(request, tick)
    )


def off_map(off: HeadAblation, regression: bool) -> HeadMap:
    """By how much the answer falls without each head; positive where the head speaks for the class."""
    if regression:
        return _map(OFF, off.fall, unit="score")
    flips = int(off.flipped.sum())
    told = (
        f"Without {count(flips, 'head')} another class is predicted." if flips else "No head alone changes the class."
    )
    return _map(OFF, off.fall, told)


def agreement_map(reading: HeadReading, made: Explanation, look: BoardLook) -> HeadMap:
    """The rank agreement of each head's map, as the board shows it, with an attribution."""
    title = title_of(made)
    return HeadMap(
        AGREEMENT,
        f"Agreement with {title}",
        AGREES.unit,
        AGREES.signed,
        agreement_with(shown_maps(reading, look), made.scores[made.features]),
        f"Whether a head's map ({of_view(reading, look)}) orders the {plural(noun(made))} as the sizes of the scores "
        f"by {title} do: +1 the same order, 0 no relation. No value where a map is flat.",
        AGREES.citation,
    )


def shown_maps(reading: HeadReading, look: BoardLook) -> Float[np.ndarray, "layer head feature"]:
    """Each head's map over the features: what one position attends to, else what they receive on average."""
    return reading.received(query_of(reading, look) if look.view == "query" else None)


def query_of(reading: HeadReading, look: BoardLook) -> int:
    """The position whose attention is shown: the one that was asked for, else the one that the model reads most."""
    if look.query is not None and look.query < len(reading.reads):
        return look.query
    return int(reading.reads.argmax())


def of_view(reading: HeadReading, look: BoardLook) -> str:
    """What its maps show, in words."""
    if look.view != "query":
        return "the mean attention received"
    return f"the attention from «{reading.of.tokens[query_of(reading, look)].text}»"


def title_of(made: Explanation) -> str:
    """The title of the method that made it."""
    return explainer(made.provenance.method, kind_of(made)).title


def noun(made: Explanation) -> str:
    """What a feature of the input is called."""
    return UNITS[kind_of(made)]


def kind_of(made: Explanation) -> str:
    """Whether it is of a text or an image."""
    return "text" if made.grid is None else "image"


def _map(id: str, values: PerHead, told: str = "", unit: str | None = None) -> HeadMap:
    score = SCORES[id]
    words = " ".join(filter(None, (score.about, told)))
    return HeadMap(id, score.title, unit or score.unit, score.signed, values, words, score.citation)
