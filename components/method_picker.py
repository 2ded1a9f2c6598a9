"""Which methods, with which parameters: the chosen ones on the page, all of them on their three axes in a dialog.

Every key of a page's picker starts with the page's `prefix`. The parameters are the values under `prefix` and their
name in a link ("occlusion.window"); they are kept while the dialog is closed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from components.kept import KEPT
from components.method_axes import (
    ANY,
    TRAITS,
    columns_html,
    fits,
    in_words,
    kinds,
    lacking_on,
    picker_style,
    presets,
    traits,
    traits_html,
)
from components.parameters import (
    changed_parameters,
    has_parameters,
    held_parameters,
    parameters,
    reset_parameters,
)
from components.trouble import literal
from engine.registry import Explainer

COLUMNS = (2, 8)
"""Width of a method's name and of what is told of it."""
Methods = Mapping[str, Explainer]


def chosen_methods(methods: Methods, prefix: str) -> None:
    """The methods under the key `prefix` + "methods", in the order chosen, and which are not at their defaults."""
    st.multiselect(
        "Methods",
        list(methods),
        key=f"{prefix}methods",
        format_func=lambda id: methods[id].title,
        persist_state=KEPT,
        placeholder="Pick at least one",
        help="random is the baseline that knows nothing: a map that looks no better says nothing.",
        wrap=True,
    )
    with st.container():
        _changed_line([methods[id] for id in st.session_state[f"{prefix}methods"]], prefix)


def all_methods(methods: Methods, usual: Sequence[str], prefix: str, models: Sequence[str] = ()) -> None:
    """A button that opens the list of all methods. `usual`: those of the preset "Default". `models`: what is explained;
    of a method that one of them has not, it is said why."""
    if st.button("All methods and parameters", key=f"{prefix}all"):
        _choose(prefix, st.session_state[f"{prefix}methods"])
        for trait in TRAITS:
            st.session_state[f"{prefix}filter.{trait}"] = ANY
        _open(methods, usual, prefix, [model.strip() for model in models if model.strip()])


def picker_body(methods: Methods, usual: Sequence[str], prefix: str, models: Sequence[str] = ()) -> None:
    """What the dialog shows: sets of methods, filters, then a row a method."""
    st.html(picker_style())
    lacking = lacking_on(methods.values(), models)
    _presets({id: method for id, method in methods.items() if id not in lacking}, usual, prefix)
    told = {id: traits(method, held_parameters(method, prefix)) for id, method in methods.items()}
    wanted = _filters(kinds(told.values()), prefix)
    listed = [id for id in methods if fits(told[id], wanted)]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(f"{len(listed)} of {len(methods)} methods listed, {len(_chosen(prefix))} chosen.", width="stretch")
        _done(prefix, "above")
    if listed:
        st.columns(COLUMNS)[1].html(columns_html())
    else:
        st.info("No method is of this kind. Set a filter back to Any.")
    with st.container(gap=None, key="method_list"):
        for id in listed:
            _row(methods[id], prefix, lacking.get(id, ""))
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
    """The chosen methods that do not run at their defaults."""
    words = {method.title: in_words(changed_parameters(method, prefix)) for method in methods}
    if said := "; ".join(f"{title} with {changed}" for title, changed in words.items() if changed):
        _said_with_reset(said, methods, prefix, "reset")


def _said_with_reset(said: str, methods: Sequence[Explainer], prefix: str, name: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(f"Changed: {said}", width="content")
        st.button("Reset", key=f"{prefix}{name}", type="tertiary", on_click=_reset, args=(methods, prefix))


def _reset(methods: Sequence[Explainer], prefix: str) -> None:
    for method in methods:
        reset_parameters(method, prefix)


def _presets(methods: Methods, usual: Sequence[str], prefix: str) -> None:
    with st.container(horizontal=True, gap="small"):
        for name, ids in presets(methods, usual).items():
            label = f"{name} ({len(ids)})"
            st.button(label, key=f"{prefix}preset.{name}", on_click=_choose, args=(prefix, ids), type="secondary")


def _filters(kinds: Mapping[str, Sequence[str]], prefix: str) -> dict[str, str]:
    with st.container(horizontal=True, gap="small"):
        return {trait: _filter(trait, kinds[trait], prefix) for trait in TRAITS}


def _filter(trait: str, kinds: Sequence[str], prefix: str) -> str:
    return st.selectbox(
        TRAITS[trait],
        [ANY, *kinds],
        key=f"{prefix}filter.{trait}",
        format_func=lambda kind: kind[:1].upper() + kind[1:],
        width=145,
    )


def _row(method: Explainer, prefix: str, lacking: str) -> None:
    name, told = st.columns(COLUMNS, gap="small")
    pick = f"{prefix}pick.{method.id}"
    st.session_state[pick] = method.id in _chosen(prefix)
    name.checkbox(method.title, key=pick, on_change=_toggle, args=(prefix, method.id))
    with told.container(gap=None):
        st.html(traits_html(method, held_parameters(method, prefix)))
        if lacking:
            st.caption(f"Not for this model. {literal(lacking)}")
        if has_parameters(method):
            _parameters(method, prefix)


def _parameters(method: Explainer, prefix: str) -> None:
    if words := in_words(changed_parameters(method, prefix)):
        _said_with_reset(words, [method], prefix, f"reset.{method.id}")
    with st.expander("Parameters", key=f"{prefix}parameters.{method.id}", type="compact"):
        parameters(method, prefix)


def _chosen(prefix: str) -> tuple[str, ...]:
    return tuple(st.session_state[f"{prefix}draft"])


def _choose(prefix: str, ids: Sequence[str]) -> None:
    """The dialog's own list: the page takes it over when the dialog closes, so that it computes once."""
    st.session_state[f"{prefix}draft"] = list(ids)


def _toggle(prefix: str, id: str) -> None:
    others = [one for one in _chosen(prefix) if one != id]
    _choose(prefix, [*others, id] if st.session_state[f"{prefix}pick.{id}"] else others)


def _apply(prefix: str) -> None:
    st.session_state[f"{prefix}methods"] = list(_chosen(prefix))
