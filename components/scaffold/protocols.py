"""The check for trivial protocols on the Scaffold page: where the mass of explanations lies."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from components.awaiting import awaited
from components.engine_room import computed
from components.keeping import file_button
from components.numbers import count, percent, points
from components.scaffold.asking import asked as asked_on
from components.scaffold.section_words import KINDS, PROTOCOLS, PROTOCOLS_PICTURES, STOP_NOTE, TITLES
from components.scaffold.session import key
from components.scaffold.whose import median_of
from components.tables import draw_table
from components.trouble import literal, say_note
from engine.scaffold.asked import learned_of
from engine.scaffold.plan import SMAT
from engine.scaffold.protocols import MOVED, Mass, Protocols, protocols, protocols_key
from engine.scaffold.result import Scaffold

EXAMPLES = 100
"""Of the test split."""
AGAINST = "SMaT above uniform, points"


def protocols_area(found: Scaffold, train_size: int) -> None:
    """The verdict, and the shares of each kind of features."""
    learned = learned_of(found.plan, median_of(found, train_size))
    asked = asked_on(found.plan, EXAMPLES)
    st.caption(PROTOCOLS_PICTURES if asked.kind == "image" else PROTOCOLS)
    name = protocols_key(asked, learned)
    made = awaited(
        st.empty(), lambda: name, "Reading the heads of test examples", "Stopped.",
        lambda tick: computed(name, lambda token: protocols(asked, learned, token), tick),
    )  # fmt: skip
    if made is None:
        return
    if not made.examples:
        say_note(f"No test example can be read. {skipped_words(made)}")
        return
    if SMAT in made.explainers:
        st.markdown(verdict(made))
    _numbers(made, found.plan.kind)


def verdict(found: Protocols) -> str:
    """In words: on which kinds the learned explainer leans, or that it does not."""
    if not found.suspect:
        kinds = " or ".join(KINDS[kind] for kind in found.kinds)
        return (
            f"**No trivial protocol is seen**: the learned explainer puts on {kinds} less than {100 * MOVED:.0f} "
            "percentage points more of its mass than a uniform map does."
        )
    told = "; ".join(_leaning(one) for one in found.suspect)
    return (
        f"**Take care, this may be a trivial protocol**: {told}. Look whether its maps explain the prediction or only "
        "leak it."
    )


def table_of(found: Protocols) -> pd.DataFrame:
    """A row a kind: each explainer's mean share, and how many points above uniform the learned one is."""
    return pd.DataFrame([_row(found, kind) for kind in found.kinds])


def skipped_words(found: Protocols) -> str:
    """On how many examples, and why others are left out."""
    told = f"Means over {count(len(found.examples), 'test example')}."
    left = "; ".join(f"{number:,}: {why}" for why, number in found.skipped.items())
    return f"{told} Left out: {left}." if left else told


def _leaning(one: Mass) -> str:
    return f"{percent(one.mean)} of its mass lies on {KINDS[one.kind]}, {points(one.moved)} points more than uniform"


def _row(found: Protocols, kind: str) -> dict[str, object]:
    cells = [found.mass(kind, explainer) for explainer in found.explainers]
    shares = {TITLES.get(one.explainer, one.explainer): percent(one.mean) for one in cells}
    learned = {AGAINST: _moved(cells[-1])} if cells[-1].explainer == SMAT else {}
    return {"Mass on": KINDS[kind], **shares, **learned}


def _moved(one: Mass) -> str:
    if one.moved_interval is None:
        return points(one.moved)
    low, high = map(points, one.moved_interval)
    return f"{points(one.moved)} [{low} : {high}]"


def _numbers(made: Protocols, kind: str) -> None:
    table = table_of(made)
    draw_table(table, key(kind, "protocols_table"))
    note = f" {STOP_NOTE}" if made.asked.kind == "text" else ""
    st.caption(f"{literal(skipped_words(made))} In brackets 95 % intervals over examples.{note}")
    file_button(
        "Shares, CSV", "exegesis-scaffold-protocols.csv", "text/csv", lambda: table.to_csv(index=False),
        "What the table says.", key(kind, "protocols_csv"),
    )  # fmt: skip
