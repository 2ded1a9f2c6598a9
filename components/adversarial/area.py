"""One example below the controls: the run, before and after, how far what was moved, other methods, the files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from components.adversarial.board import board_html, lead_html, pictures_html, sides_of, sizes_html
from components.adversarial.charts import Along
from components.adversarial.example import seen_of, wrong_words
from components.adversarial.keep import keep_area
from components.adversarial.keep_maps import Kept
from components.adversarial.others import others_area
from components.adversarial.run import draw_curves, run_area
from components.adversarial.session import key
from components.adversarial.state import SCALES
from components.adversarial.styles import use_adversarial_styles
from components.adversarial.told import notes_of, title_of
from components.adversarial.views import maps_of, pale_words, sizes_of
from components.adversarial.words import CAUTION, NEAREST
from components.kept import KEPT
from components.tables import draw_table
from components.trouble import say_note
from engine.registry import Explainer
from engine.request import Example

if TYPE_CHECKING:
    import pandas as pd
    from streamlit.delta_generator import DeltaGenerator

    from components.adversarial.session import Opened
    from components.adversarial.state import AdversarialState
    from engine.attacks.result import Attacked


def attack_area(
    state: AdversarialState, methods: Mapping[str, Explainer], opened: Opened, place: DeltaGenerator
) -> None:
    """The run, and what came of it."""
    founds = run_area(state, place)
    given = state.input
    if not founds or given is None:
        return
    use_adversarial_styles()
    st.html(lead_html(founds))
    if wrong := wrong_words(state, opened, founds[0]):
        say_note(wrong)
    for note in notes_of(founds):
        say_note(note)
    seen = seen_of(state, founds)
    st.segmented_control(
        "Colours", list(SCALES), key=key(state.kind, "scale"), required=True, format_func=SCALES.__getitem__,
        persist_state=KEPT, help="On one scale a map that grew stands out; on its own each shows its order.",
    )  # fmt: skip
    maps = maps_of(founds, methods[state.method], given, shared=state.scale == "one")
    if pale := pale_words(maps):
        st.caption(pale)
    st.html(board_html(sides_of(founds, maps, seen)))
    st.caption(CAUTION)
    _moved(founds, given, seen)
    _along(founds)
    others_area(state, founds, methods)
    keep_area(Kept(state, founds, maps, seen, methods))


def _moved(founds: list[Attacked], given: object, seen: object) -> None:
    """How far each token or patch was moved."""
    st.subheader("What was moved", anchor=False)
    if any(found.picture is not None for found in founds):
        st.html(pictures_html(founds))
    st.html(sizes_html(founds, sizes_of(founds, given), seen))  # type: ignore[arg-type]
    if isinstance(given, Example):
        for found in founds:
            with st.expander(
                f"{title_of(found)}: each token and its nearest words", key=f"adversarial.near.{title_of(found)}"
            ):
                st.caption(NEAREST)
                draw_table(tokens_table(found), f"near.{title_of(found)}")


def tokens_table(found: Attacked) -> pd.DataFrame:
    """A row a token that is ranked: its places and scores, how far it was moved, and the words near it."""
    import pandas as pd

    from components.adversarial.moves import moves

    own = moves(found.features.tolist(), found.order_before, found.order_after)
    rows = [
        {
            "Token": found.tokens[move.position].text,
            "Place before": move.before,
            "Place after": move.after,
            "Largest change": _short(found.largest[move.position]),
            "Length of the change": _short(found.length[move.position]),
            "Nearest words": _near(found, move.position),
        }
        for move in sorted(own, key=lambda move: move.position)
    ]
    return pd.DataFrame(rows)


def _near(found: Attacked, position: int) -> str:
    return ", ".join(f"{word} ({far:.2f})" for word, far in found.nearest[position]) or "none"


def _short(value: float) -> float:
    return float(f"{value:.3g}")


def _along(founds: Sequence[Attacked]) -> None:
    """The curves along the steps."""
    st.subheader("Along the steps", anchor=False)
    attacks = [Along(str(found.attack["objective"]), found.trail, found.best) for found in founds]
    draw_curves(attacks, st.empty(), founds[0].prediction.regression)
    st.caption("A large point is the step that is kept; small points are steps at which the class was another.")
