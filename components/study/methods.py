"""The part of a study's form that chooses its methods; one may come several times, with different parameters.

A method that comes once more is entered under its id, "#" and a number, and has parameters of its own there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import streamlit as st

from components.engine_room import explainers
from components.method_picker import all_methods, chosen_methods
from components.parameters import has_parameters, held_parameters, reset_parameters
from components.study.controls import NARROW, key, one_of, put, value
from components.trouble import say_note
from engine.params import as_plain, from_mapping
from engine.registry import Explainer
from engine.study.design import BY_RANK, BY_SIGN, BY_SIZE, MOST_METHODS, MethodChoice
from engine.study.presets import STANDS_IN, smat_methods

LEARNED = "smat"
NOT_LEARNED = (
    "This model has no learned explainer (SMaT). Attention logits of all layers, where it would begin to learn, take "
    "its place. Train one on the Scaffold page."
)
AGAIN = "#"
AGAIN_HELP = "It is then shown as one more explanation. Give it other parameters under “All methods and parameters”."
Methods = Mapping[str, Explainer]
COLOR_WORDS = {BY_RANK: "Rank", BY_SIZE: "Size", BY_SIGN: "Size and sign"}
COLOR_COSTS = {
    BY_RANK: "All explanations share the same colors, so these do not give the random one away. How much more a part "
    "matters than another, and whether for or against the answer, is not shown.",
    BY_SIZE: "Some methods color few parts strongly, others many weakly. Who learns to tell them apart can name the "
    "random one more often than by chance. For or against the answer is not shown.",
    BY_SIGN: "Methods without negative scores look different at sight, so the random one can be named more often than "
    "by chance.",
}
"""What each rule costs; `python -m benchmarks.study_placebo` measures how often the random one can be named."""


def methods_form(kind: str) -> None:
    """Draws the controls."""
    model = (value(f"{kind}.model") or "").strip()
    _stand_in(kind, model)
    known, prefix = _known(kind), key(f"{kind}.")
    usual = [id for id in smat_methods(model, kind) if id in known]
    chosen_methods(known, prefix)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        all_methods(known, usual, prefix, [model])
        _once_more(kind, known)
    st.toggle("Mix in a random explanation", key=key("placebo"), persist_state="page")
    one_of("colors", "Colors show", COLOR_WORDS)
    st.caption(COLOR_COSTS[value("colors")])


def _stand_in(kind: str, model: str) -> None:
    """A learned explainer is of one model: on another that has none, what it would begin from takes its place."""
    chosen = value(f"{kind}.methods")
    others = [name for name in chosen if own_id(name) != LEARNED]
    if len(others) < len(chosen) and model and LEARNED not in smat_methods(model, kind):
        put(f"{kind}.methods", others if STANDS_IN in others else [*others, STANDS_IN])
        say_note(NOT_LEARNED)


def fill_methods(kind: str, chosen: Sequence[MethodChoice]) -> None:
    """Gives the controls what a design says; everything else is at its defaults."""
    known = explainers(kind)
    for method in known.values():
        reset_parameters(method, key(f"{kind}."))
    named = [(name, choice) for name, choice in names(chosen) if choice.id in known]
    put(f"{kind}.methods", [name for name, _ in named])
    for name, choice in named:
        params = as_plain(from_mapping(known[choice.id].params, choice.params, choice.id))
        for parameter, held in params.items():
            put(f"{kind}.{name}.{parameter}", held)


def held_methods(kind: str) -> list[Mapping[str, object]]:
    """The chosen methods with what their controls hold."""
    known, prefix = _known(kind), key(f"{kind}.")
    return [{"id": own_id(name), "params": held_parameters(known[name], prefix)} for name in value(f"{kind}.methods")]


def names(chosen: Sequence[MethodChoice]) -> list[tuple[str, MethodChoice]]:
    """Each with the name that it has in the form: its id, and from the second time on a number."""
    ids = [choice.id for choice in chosen]
    return [(_name(choice.id, ids[: place + 1].count(choice.id)), choice) for place, choice in enumerate(chosen)]


def own_id(name: str) -> str:
    """The method's id."""
    return name.partition(AGAIN)[0]


def with_repeated(methods: Methods, entered: Sequence[str]) -> dict[str, Explainer]:
    """The methods, each followed by those entered that are the same once more, with a title of their own."""
    listed: dict[str, Explainer] = {}
    for id, method in methods.items():
        repeated = sorted({name for name in entered if own_id(name) == id} - {id})
        listed |= {id: method, **{name: _titled(method, name) for name in repeated}}
    return listed


def _known(kind: str) -> dict[str, Explainer]:
    return with_repeated(explainers(kind), value(f"{kind}.methods"))


def _titled(method: Explainer, name: str) -> Explainer:
    number = name.partition(AGAIN)[2]
    return dataclasses.replace(method, id=name, title=f"{method.title} ({number})")


def _name(id: str, time: int) -> str:
    return id if time == 1 else f"{id}{AGAIN}{time}"


def _once_more(kind: str, known: Methods) -> None:
    chosen = [name for name in value(f"{kind}.methods") if own_id(name) == name and has_parameters(known[name])]
    st.selectbox(
        "A method once more", chosen, None, key=key(f"{kind}.again"), format_func=lambda name: known[name].title,
        placeholder="Choose one of these", help=AGAIN_HELP, width=NARROW, on_change=_enter, args=(kind,),
    )  # fmt: skip


def _enter(kind: str) -> None:
    """Under the first name that is free; its parameters begin at their defaults."""
    id, chosen = value(f"{kind}.again"), value(f"{kind}.methods")
    put(f"{kind}.again", None)
    if id is None:
        return
    name = next(name for name in (_name(id, time) for time in range(2, MOST_METHODS + 2)) if name not in chosen)
    reset_parameters(_titled(explainers(kind)[id], name), key(f"{kind}."))
    put(f"{kind}.methods", [*chosen, name])
