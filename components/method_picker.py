"""The picker of methods and parameters: the chosen methods on the page, and a dialog of all methods by three axes.

The axes are those of Covert et al. (2021): how a method removes features, which behavior of the model it explains, and
how it summarizes. Everything is read from the registry, so a newly registered method appears in the list, the filters
and the presets.

All widget keys of a page's picker start with the page's `prefix`. The parameters are stored under `prefix` plus their
name in a link ("occlusion.window"); they survive while the dialog is closed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from html import escape

import streamlit as st

from components.controls import (
    PERSIST,
    changed_parameters,
    current_parameters,
    has_parameters,
    parameter_widgets,
    reset_parameters,
)
from components.errors import escape_label
from components.styles import use_sheet
from engine.registry import Explainer

TRAITS = {
    "removal": "Removed by",
    "behaviour": "Explains",
    "summary": "Summarized as",
    "scores": "Scores",
    "cost": "Cost",
}
"""Titles of the traits of methods, the three axes first."""
SCORES = {True: "signed", False: "unsigned"}
COSTS = {True: "quick", False: "many evaluations"}
ANY, BASELINE = "any", "baseline"
COLUMNS = (2, 8)
"""Relative widths of a method's name and its description."""
Methods = Mapping[str, Explainer]
PRESETS: dict[str, Callable[[Explainer], bool]] = {
    "Quick": lambda method: method.cheap,
    "Path methods": lambda method: kind(method.axes.summary) == "path integral",
    "Attention": lambda method: method.family == "attention",
    "Removal-based": lambda method: kind(method.axes.removal) == "chosen operator",
    "All": lambda method: True,
}


def kind(text: str) -> str:
    """Return the kind in the description of an axis: the part before the first colon or comma."""
    return re.split("[:,]", text, maxsplit=1)[0].strip()


def method_traits(method: Explainer, params: Mapping[str, object]) -> dict[str, str]:
    """Return the method's kind for each of `TRAITS`. A parameter may change whether its scores are signed."""
    axes = method.axes_at(params)
    return {
        "removal": kind(axes.removal),
        "behaviour": kind(axes.behaviour),
        "summary": kind(axes.summary),
        "scores": SCORES[method.is_signed(params)],
        "cost": COSTS[method.cheap],
    }


def kinds_by_trait(traits_of_methods: Iterable[Mapping[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return the distinct kinds of each trait, in the order of the methods."""
    methods = list(traits_of_methods)
    return {trait: tuple(dict.fromkeys(traits[trait] for traits in methods)) for trait in TRAITS}


def matches(traits: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether a method has the wanted traits. Each of `wanted` is a kind or any."""
    return all(kind in (ANY, traits[trait]) for trait, kind in wanted.items())


def presets(methods: Mapping[str, Explainer], usual: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return named sets of methods. All but "Default" include the baseline for comparison."""
    sets = {"Default": tuple(id for id in usual if id in methods)}
    for name, rule in PRESETS.items():
        fitting = [id for id, method in methods.items() if rule(method) and method.family != BASELINE]
        if fitting:
            sets[name] = tuple(id for id in methods if id in fitting or methods[id].family == BASELINE)
    return sets


def unavailable_methods(methods: Iterable[Explainer], models: Iterable[str]) -> dict[str, str]:
    """Return the methods that do not work on one of these models, each with the reason and a remedy."""
    names = list(models)
    reasons = {method.id: next(filter(None, map(method.why_not, names)), "") for method in methods}
    return {id: reason for id, reason in reasons.items() if reason}


def describe_params(changed: Mapping[str, str]) -> str:
    """Format parameters by their names in links: "n_steps 20, baseline zero"."""
    return ", ".join(f"{name} {value}" for name, value in changed.items())


def columns_html() -> str:
    """HTML of the headings above the columns of traits. Narrow rows name the traits themselves."""
    heads = "".join(f"<span>{name}</span>" for name in TRAITS.values())
    return f'<div class="xa"><div class="xa-axes xa-heads" aria-hidden="true">{heads}</div></div>'


def traits_html(method: Explainer, params: Mapping[str, object]) -> str:
    """HTML of the traits in full, followed by the caution with its source."""
    axes = method.axes_at(params)
    texts = method_traits(method, params) | {name: getattr(axes, name) for name in ("removal", "behaviour", "summary")}
    cells = "".join(f"<div><dt>{TRAITS[name]}</dt><dd>{escape(texts[name])}</dd></div>" for name in TRAITS)
    return (
        f'<div class="xa"><dl class="xa-axes">{cells}</dl>'
        f'<p class="xa-caution">{escape(method.caution)} <cite>{escape(method.citation)}</cite></p></div>'
    )


def chosen_methods(
    methods: Methods, prefix: str, labeled: bool = True, placeholder: str = "Pick at least one method"
) -> None:  # fmt: skip
    """Draw the choice of methods, with the key `prefix` + "methods", and the changed parameters of the chosen ones.

    `labeled`: whether its label is visible. `placeholder`: text of the empty choice.
    """
    st.multiselect(
        "Methods",
        list(methods),
        key=f"{prefix}methods",
        format_func=lambda id: methods[id].title,
        persist_state=PERSIST,
        placeholder=placeholder,
        label_visibility="visible" if labeled else "collapsed",
        help="random is the baseline that knows nothing: a map that looks no better says nothing.",
        wrap=True,
    )
    with st.container():
        _changed_line([methods[id] for id in st.session_state[f"{prefix}methods"]], prefix)


def all_methods(
    methods: Methods,
    usual: Sequence[str],
    prefix: str,
    models: Sequence[str] = (),
) -> None:
    """Draw a button that opens the list of all methods and closes the popover of rare controls around it.

    `usual`: the methods of the preset "Default". `models`: the explained models; the list says why a method does not
    work on one of them.
    """
    # An open popover would cover the list, which is a dialog: see `options_popover`.
    close = partial(st.session_state.__setitem__, f"{prefix}options", False)
    if st.button("All methods and parameters", key=f"{prefix}all", on_click=close):
        _choose(prefix, st.session_state[f"{prefix}methods"])
        for trait in TRAITS:
            st.session_state[f"{prefix}filter.{trait}"] = ANY
        _open(methods, usual, prefix, [model.strip() for model in models if model.strip()])


def picker_body(methods: Methods, usual: Sequence[str], prefix: str, models: Sequence[str] = ()) -> None:
    """Draw the content of the dialog: presets, filters, and one row per method."""
    use_sheet("picker")
    unavailable = unavailable_methods(methods.values(), models)
    with st.container(horizontal=True, gap="small"):
        available = {id: method for id, method in methods.items() if id not in unavailable}
        for name, ids in presets(available, usual).items():
            label, key = f"{name} ({len(ids)})", f"{prefix}preset.{name}"
            st.button(label, key=key, on_click=_choose, args=(prefix, ids), type="secondary")
    traits = {id: method_traits(method, current_parameters(method, prefix)) for id, method in methods.items()}
    kinds = kinds_by_trait(traits.values())
    with st.container(horizontal=True, gap="small"):
        wanted = {trait: _filter(trait, kinds[trait], prefix) for trait in TRAITS}
    listed = [id for id in methods if matches(traits[id], wanted)]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(f"{len(listed)} of {len(methods)} methods listed, {len(_chosen(prefix))} chosen.", width="stretch")
        _done(prefix, "above")
    if listed:
        st.columns(COLUMNS)[1].html(columns_html())
    else:
        st.info("No method is of this kind. Set a filter back to Any.")
    with st.container(gap=None, key="method_list"):
        for id in listed:
            _row(methods[id], prefix, unavailable.get(id, ""))
    _done(prefix, "below")


def _open(methods: Methods, usual: Sequence[str], prefix: str, models: Sequence[str]) -> None:
    @st.dialog("All methods", width="large", on_dismiss=lambda: _apply(prefix))
    def dialog() -> None:
        picker_body(methods, usual, prefix, models)

    dialog()


def _done(prefix: str, place: str) -> None:
    if st.button("Show the chosen methods", key=f"{prefix}done.{place}", type="primary"):
        _apply(prefix)
        st.rerun()


def _changed_line(methods: Sequence[Explainer], prefix: str) -> None:
    """Draw the changed parameters of the chosen methods, if any."""
    changes = {method.title: describe_params(changed_parameters(method, prefix)) for method in methods}
    if text := "; ".join(f"{title} with {changed}" for title, changed in changes.items() if changed):
        _changes_with_reset(text, methods, prefix, "reset")


def _changes_with_reset(changes: str, methods: Sequence[Explainer], prefix: str, name: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(f"Changed: {changes}", width="content")
        st.button("Reset", key=f"{prefix}{name}", type="tertiary", on_click=_reset, args=(methods, prefix))


def _reset(methods: Sequence[Explainer], prefix: str) -> None:
    for method in methods:
        reset_parameters(method, prefix)


def _filter(trait: str, kinds: Sequence[str], prefix: str) -> str:
    return st.selectbox(
        TRAITS[trait],
        [ANY, *kinds],
        key=f"{prefix}filter.{trait}",
        format_func=lambda kind: kind[:1].upper() + kind[1:],
        width=145,
    )


def _row(method: Explainer, prefix: str, unavailable: str) -> None:
    name, description = st.columns(COLUMNS, gap="small")
    pick = f"{prefix}pick.{method.id}"
    st.session_state[pick] = method.id in _chosen(prefix)
    name.checkbox(method.title, key=pick, on_change=_toggle, args=(prefix, method.id))
    with description.container(gap=None):
        st.html(traits_html(method, current_parameters(method, prefix)))
        if unavailable:
            st.caption(f"Not for this model. {escape_label(unavailable)}")
        if has_parameters(method):
            _parameters(method, prefix)


def _parameters(method: Explainer, prefix: str) -> None:
    if changes := describe_params(changed_parameters(method, prefix)):
        _changes_with_reset(changes, [method], prefix, f"reset.{method.id}")
    with st.expander("Parameters", key=f"{prefix}parameters.{method.id}", type="compact"):
        parameter_widgets(method, prefix)


def _chosen(prefix: str) -> tuple[str, ...]:
    return tuple(st.session_state[f"{prefix}draft"])


def _choose(prefix: str, ids: Sequence[str]) -> None:
    """Set the draft of the dialog. The page takes it over when the dialog closes, so that it computes only once."""
    st.session_state[f"{prefix}draft"] = list(ids)


def _toggle(prefix: str, id: str) -> None:
    others = [one for one in _chosen(prefix) if one != id]
    _choose(prefix, [*others, id] if st.session_state[f"{prefix}pick.{id}"] else others)


def _apply(prefix: str) -> None:
    st.session_state[f"{prefix}methods"] = list(_chosen(prefix))
