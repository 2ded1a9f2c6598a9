"""The Randomization page below its controls: the work, curves and verdicts of each model, one example, the files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from components.compact import compact_css
from components.evaluate.controls import Places, say_beside
from components.evaluate.words import left_out_html
from components.numbers import count
from components.picture.styles import use_picture_styles
from components.randomization.entries import Entry, beside, entries_of, offered
from components.randomization.judged import verdicts_html
from components.randomization.keep import keep_area
from components.randomization.known import Held, Known, known, trouble_of
from components.randomization.stage import stage_area
from components.randomization.state import RandomizationState, plan_of
from components.randomization.view import view_controls
from components.randomization.words import APPLIES, CAUTION, CLICK, NO_VERDICT, ZERO
from components.randomization.work import work_area
from components.trouble import literal, say_note, sentence
from engine.errors import ExegesisError
from engine.randomization.plan import MODES
from engine.registry import Explainer

if TYPE_CHECKING:
    from engine.randomization.curves import Curve
    from engine.randomization.result import ModelRandomization

LAYOUT = Path(__file__).resolve().parent.parent / "assets" / "randomization.css"
Methods = Mapping[str, Explainer]


def randomization_area(state: RandomizationState, methods: Methods, places: Places) -> None:
    """What is wrong with what is asked, or what there is of it."""
    try:
        plan = plan_of(state, methods)
    except ExegesisError as error:
        say_beside(places, sentence(error))
        return
    if trouble := trouble_of(plan):
        say_beside(places, trouble)
        return
    try:
        seen = known(plan)
    except Exception as error:
        say_beside(places, sentence(error))
        return
    work_area(plan, seen)
    if seen.held.found:
        _found(state, seen, methods)


def _found(state: RandomizationState, seen: Known, methods: Methods) -> None:
    held, titles = seen.held, {id: method.title for id, method in methods.items()}
    there = offered(held.plan, seen.before)
    others, said = beside(state.look.beside, there, seen.before)
    entries = entries_of([held, *others])
    use_picture_styles()
    st.html(f"<style>{compact_css(LAYOUT.read_text(encoding='utf-8'))}</style>")
    st.caption(how(held))
    method = view_controls(state, entries, titles, there)
    for trouble in said:
        say_note(trouble)
    _curves(state, entries, method, titles)
    _cautions(entries)
    stage_area(state, seen, entries, methods)
    _left_out(entries, titles)
    keep_area(state, held, methods)


def how(held: Held) -> str:
    """How it was done, in one sentence of numbers and our own words."""
    plan, size = held.plan, max(len(one.examples) for one in held.found)
    return (
        f"{count(size, 'example')}, each part randomized {count(plan.seeds, 'time')}; means over examples with 95 % "
        "intervals, without width where all examples agree; correlations over the tokens or patches of each."
    )


def _curves(state: RandomizationState, entries: Sequence[Entry], method: str, titles: Mapping[str, str]) -> None:
    """A row of charts and the verdicts for each model that is drawn, on the same axes; or one row of all models."""
    from components.randomization.charts import span_of
    from components.randomization.over import over_area

    names = [one.name for one in entries]
    alone = not method and state.look.model in names
    drawn = [one for one in entries if not alone or one.name == state.look.model]
    curves = {one.name: _named(one) for one in drawn}
    measured = [curve for own in curves.values() for curve in own if curve.metric == state.look.measure]
    span = span_of([curve for curve in measured if curve.method == method] or measured)
    st.caption(CLICK)
    if method:
        over_area(state, method, drawn, curves, titles, span)
        return
    for one in drawn:
        _model(state, one, curves[one.name], titles, span)


def _named(entry: Entry) -> list[Curve]:
    """Its curves, each under the name by which a click is understood."""
    from engine.randomization.curves import curves_of

    return [replace(curve, model=entry.name) for curve in curves_of(entry.found, entry.held.plan.seed)]


def _model(
    state: RandomizationState, entry: Entry, curves: list[Curve], titles: Mapping[str, str], span: tuple[float, float]
) -> None:
    from components.randomization.lines import panels_area
    from engine.randomization.curves import verdicts_of

    plan = entry.held.plan
    st.markdown(f"**{literal(entry.name)}**, {count(entry.found.blocks, 'block')}")
    panels_area(state, entry, curves, titles, span)
    if MODES[0] not in plan.modes:
        say_note(NO_VERDICT)
        return
    st.html(verdicts_html(verdicts_of(entry.found, plan.kind, plan.seed), titles, plan.kind, entry.name))


def _cautions(entries: Sequence[Entry]) -> None:
    flat = any(why.startswith("its map of the model as it is") for one in entries for why in one.found.reasons)
    st.caption(" ".join([CAUTION, APPLIES, *([ZERO] if flat else [])]))


def _left_out(entries: Sequence[Entry], titles: Mapping[str, str]) -> None:
    """Examples that failed and maps without an order, counted with the reason."""
    lines = left_out([(one.name, one.found) for one in entries], titles)
    if lines:
        with st.expander(f"Left out somewhere: {count(len(lines), 'reason')}", key="randomization.left_out"):
            st.html(left_out_html(lines))


def left_out(found: Sequence[tuple[str, ModelRandomization]], titles: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """For each reason: how many examples or maps of each model, by its name, and by which methods."""
    lines = []
    for name, one in found:
        for why, number in Counter(one.failed.values()).items():
            lines.append((why, f"{count(number, 'example')} on {name}", "all methods"))
        for code, why in enumerate(one.reasons):
            hit = one.why == code
            of = ", ".join(titles.get(id, id) for at, id in enumerate(one.methods) if hit[:, :, at].any())
            lines.append((why, f"{count(int(hit.sum()), 'map')} on {name}", of))
    return lines
