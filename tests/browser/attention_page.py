"""A page with the board of heads alone, of attention that is made up; it writes what Python holds.

In its address: `of` says whose attention, all else is as in a link of the Attention page. `of=noise` shows nothing
until "Next" is clicked, then a tensor of 12 x 12 x 197 x 197 from the cache, another one with each click.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import streamlit as st

from cache.codec import Arrays, Meta
from components.attention.page import board_panel
from components.attention.readings import ablation_score_map
from components.attention.state import BOARD_KEYS, SESSIONS, AttentionState, read_switched
from components.inputs.picture_choice import PictureFocus
from components.inputs.text_choice import TextFocus
from components.links import read_record
from components.styles import use_styles
from components.widgets.attention_board import HeadScoreMap, default_options
from components.widgets.patch_map import picture_style, use_picture_styles
from engine.heads.readings import HeadAblation, HeadReading, _cached_or
from engine.heads.scores import SCORES
from tests.head_readings import (
    GRID,
    LARGE,
    WORDS,
    causal_reading,
    explained,
    noise,
    patch_tokens,
    picture_reading,
    reading,
    text_reading,
    text_tokens,
)

OWN = ("attention", "slope", "weighted", "reads")
CACHED = ("distance", "entropy", "special", "importance")
PAIR = ["[CLS]", "A", "cat", "sat", "[SEP]", "An", "animal", "is", "sitting", "[SEP]"]


def sky() -> np.ndarray:
    rows, columns = np.mgrid[:224, :224] / 224
    return (255 * np.stack([0.7 - 0.5 * rows, 0.8 - 0.4 * columns, 0.9 - 0.2 * rows], axis=2)).astype(np.uint8)


def noisy() -> HeadReading | None:
    """The next one, from the cache but for the first time."""
    clicks = st.session_state.get("clicks", 0)
    if not clicks:
        return None
    tokens = patch_tokens(GRID)

    def compute() -> tuple[Meta, Arrays]:
        made = reading(noise(*LARGE, seed=clicks), tokens, GRID)
        own = {name: getattr(made, name) for name in OWN}
        return {}, own | {name: made.scores[name] for name in CACHED}

    _, arrays, _ = _cached_or(f"noise.{clicks}", compute)
    scores = {name: arrays[name] for name in CACHED}
    attention, slope, weighted, reads = (arrays[name] for name in OWN)
    return HeadReading(explained(tokens, GRID), attention, scores, slope, weighted, reads, causal=False)


def long(length: int = 512) -> HeadReading:
    words = ["[CLS]", *(f"word{at}" for at in range(length - 2)), "[SEP]"]
    return reading(noise(2, 4, length), text_tokens(words))


def resting() -> HeadReading:
    """Two heads that rest on [CLS]: the rest has 3% each at most, less than an even share."""
    rest = np.linspace(0.02, 0.03, len(WORDS) - 1)
    return reading(np.tile(np.r_[1 - rest.sum(), rest], (1, 2, len(WORDS), 1)).astype(np.float16), text_tokens(WORDS))


READINGS: dict[str, Callable[[], HeadReading | None]] = {
    "text": text_reading,
    "picture": picture_reading,
    "causal": causal_reading,
    "one": lambda: reading(np.ones((2, 3, 1, 1), np.float16), text_tokens(["good"])),
    "pair": lambda: reading(noise(4, 6, len(PAIR)), text_tokens(PAIR, 5)),
    "long": long,
    "resting": resting,
    "noise": noisy,
}


@st.cache_resource
def remembered(of: str) -> HeadReading | None:
    return READINGS[of]()


def scores(found: HeadReading, name: str) -> HeadScoreMap:
    if name in found.scores:
        score = SCORES[name]
        return HeadScoreMap(
            name, score.title, score.unit, score.signed, found.scores[name], score.about, score.citation
        )
    whole = np.array([0.27, 0.73])
    off = whole + found.slope[..., None] * [1, -1]
    return ablation_score_map(HeadAblation(whole, off, 1, ("negative", "positive")), regression=False)


def state_of(found: HeadReading) -> AttentionState:
    """As the address has it, but for what was clicked since."""
    query = dict(st.query_params)
    kind = "text" if found.explanation.grid is None else "image"
    board = read_record(default_options(kind), {name: [value] for name, value in query.items()}, [], kind)
    board = SESSIONS[kind].read_record(BOARD_KEYS, board)
    focus = TextFocus("model-a", "") if kind == "text" else PictureFocus("model-a")
    return AttentionState(kind=kind, focus=focus, board=board, switched=read_switched([query.get("switched", "")], []))


def count() -> None:
    st.session_state.clicks = st.session_state.get("clicks", 0) + 1


st.set_page_config(layout="wide")
use_styles()
use_picture_styles()
st.session_state.runs = st.session_state.get("runs", 0) + 1
again, following = st.columns(2)
again.button("Run again")
following.button("Next", on_click=count)
of = st.query_params.get("of", "text")
found = noisy() if of == "noise" else remembered(of)
if found is not None:
    state = state_of(found)
    if found.explanation.grid:
        st.html(picture_style(sky()))
    board_panel(state, found, scores(found, state.board.score))
    held = state.board
    st.text(f"Python holds {held.head} alone {held.alone} query {held.query} after {st.session_state.runs} runs")
else:
    st.text("Nothing yet")
