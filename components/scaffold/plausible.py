"""Plausibility on the Scaffold page: measured on request, part by part, then as charts and a table."""

from __future__ import annotations

import streamlit as st

from components.engine_room import computed
from components.numbers import count, hundredths
from components.scaffold.asking import asked as asked_on
from components.scaffold.asking import marked_sets
from components.scaffold.pick import one_of
from components.scaffold.plausible_chart import TITLES_OF_SIDES, side_chart, table_of
from components.scaffold.section_chart import SectionChart, draw
from components.scaffold.section_words import (
    ACTIVE,
    ACTIVE_ALL,
    MARKED,
    NO_MARKS,
    PARTS,
    PLAUSIBILITY,
    SUPERVISED,
)
from components.scaffold.session import key
from components.scaffold.whose import median_of
from components.stopping import ProgressLine, go_on_button
from components.trouble import literal, say_note
from engine.errors import Cancelled
from engine.scaffold.asked import Asked, Learned, learned_of
from engine.scaffold.plausibility import Contrast, Plausibility, measured, part_key, parts_of, plausibility
from engine.scaffold.result import Scaffold
from engine.store import result_store

SIZES = (25, 50, 100, 200)
HELP = "Runs the teacher on these examples, integrated gradients with 50 steps each. What is measured is kept."


def plausible_area(found: Scaffold, train_size: int) -> None:
    """The controls, a button where something is to be measured, and what was found."""
    learned = learned_of(found.plan, median_of(found, train_size))
    plan, kind = found.plan, found.plan.kind
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        marks = one_of(kind, "Marks of", "marks", marked_sets(plan), 300)
        size = one_of(kind, "Examples", "examples", {number: f"{number}" for number in SIZES}, 130)
    asked = asked_on(plan, size, marks)
    if _measured(asked, learned, kind):
        _found(found, plausibility(asked, learned))


def contrast_words(found: Contrast) -> str:
    """Whether active heads are more plausible, with the numbers."""
    low, high = found.interval or (found.difference, found.difference)
    return (
        f"**{ACTIVE}**: mean AUC {hundredths(found.mean_active)} of {count(found.active, 'active head')}, "
        f"{hundredths(found.mean_inactive)} of {count(found.inactive, 'inactive head')}; difference "
        f"{hundredths(found.difference, sign=True)}, 95 % interval over examples {hundredths(low, sign=True)} to "
        f"{hundredths(high, sign=True)}. {found.verdict}"
    )


def skipped_words(found: Plausibility) -> str:
    """How many examples were judged, and why others were not."""
    side = found.side()
    told = f"{count(len(side.examples), 'example')} judged."
    left = "; ".join(f"{number:,}: {why}" for why, number in side.skipped.items())
    return f"{told} Left out: {left}." if left else told


def _measured(asked: Asked, learned: Learned | None, kind: str) -> bool:
    """Whether all parts are there, after measuring them where that was asked for."""
    keys = {part: part_key(asked, learned, part) for part in parts_of(learned)}
    if all(map(result_store().contains, keys.values())):
        return True
    wanted, mark = key(kind, "plausibility_wanted"), "/".join(keys.values())
    if st.session_state.get(wanted) != mark:
        st.button("Measure plausibility", key=key(kind, "measure"), help=HELP, on_click=_want, args=(wanted, mark))
        st.caption(f"Not measured yet on these {count(len(asked.places), 'example')}.")
        return False
    return _measure(asked, learned, keys)


def _want(name: str, mark: str) -> None:
    st.session_state[name] = mark


def _measure(asked: Asked, learned: Learned | None, keys: dict[str, str]) -> bool:
    place = st.empty()
    line = ProgressLine(place, list(keys.values()))
    for number, (part, name) in enumerate(keys.items()):
        line.show(number / len(keys), PARTS[part])
        try:
            computed(name, lambda token, part=part: measured(asked, learned, part, token), line.tick)  # type: ignore[misc]
        except Cancelled:
            go_on_button(place, name, "Stopped. What is measured is kept.")
            return False
    line.clear()
    return True


def _found(found: Scaffold, made: Plausibility) -> None:
    unit = "patch" if made.asked.kind == "image" else "word"
    st.caption(PLAUSIBILITY.format(unit, MARKED[made.exact]))
    if not made.side().examples:
        say_note(f"{NO_MARKS.format(made.asked.dataset)} {skipped_words(made)}")
        return
    sides = [one for one in made.sides if one.examples and (one.name or len(made.sides) == 1)]
    for place, side in zip(st.columns(len(sides), gap="medium"), sides, strict=True):
        title = f"Plausibility, AUC{TITLES_OF_SIDES[side.name]}: {found.plan.teacher} on {made.asked.dataset}"
        with place:
            if side.name:
                st.markdown(f"**{TITLES_OF_SIDES[side.name].removeprefix(', ').capitalize()}**")
            chart = SectionChart(
                found.plan, f"plausibility{f'-{side.name}' if side.name else ''}", title, SUPERVISED, table_of(side),
                lambda theme, side=side: side_chart(side, theme),  # type: ignore[misc]
            )  # fmt: skip
            draw(chart, open=True)
    st.caption(f"{literal(skipped_words(made))} {SUPERVISED}")
    if made.learned is not None:
        st.markdown(ACTIVE_ALL if made.contrast is None else contrast_words(made.contrast))
