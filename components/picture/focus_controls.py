"""The one place where model, picture set and picture are chosen: the same on every page that looks at pictures."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping

import streamlit as st

from components.kept import KEPT
from components.looking import Looking
from components.picture.focus import NAMES, PictureFocus, better_model
from components.picture.open_pictures import PICTURES, OpenPictures, open_pictures, own_shown, shown_of
from components.picture.own import own_picture_controls
from components.trouble import literal, say_error
from engine.data.image_datasets import registered_name
from engine.data.scenes import MarkedSceneParams
from engine.data.sources import list_datasets
from engine.errors import ExegesisError
from engine.params import from_mapping, parse_assignments

WIDGETS = "picture_focus."
"""Every widget that chooses what is looked at has a key that starts so."""
LOOKING = Looking(WIDGETS, "picture_focus_link", NAMES)
key, value, carried, carry, turn_to, focus_of = (
    LOOKING.key, LOOKING.value, LOOKING.carried, LOOKING.carry, LOOKING.turn_to, LOOKING.focus_of
)  # fmt: skip

OF_DATA, OWN = "Data set", "Your picture"
MARKED = "scenes-marked"
DATA_HELP = (
    "A name, a zip or folder with class folders, a .npz, or hub:owner/name. "
    "Options follow the name: scenes:seed=7,count=500."
)


def asked(link: Mapping[str, list[str]]) -> tuple[str, str]:
    """The name and split that the controls name, else the link."""
    if not value("data"):
        return _last(link, "data") or PICTURES, _last(link, "split")
    return str(value("data")).strip(), str(value("split") or "")


def fill(focus: PictureFocus, opened: OpenPictures) -> None:
    """Gives the controls that have no value yet theirs."""
    values: dict[str, object] = {
        "model": focus.model or None,
        "data": focus.data,
        "split": focus.split,
        "index": focus.index,
        "picture_sha": focus.picture_sha,
        "source": OWN if focus.own else OF_DATA,
    }
    for name, initial in values.items():
        st.session_state.setdefault(key(name), initial)
    if not 0 <= _index() < len(opened.data):
        LOOKING.put("index", 0)


def from_widgets(opened: OpenPictures) -> PictureFocus:
    """What the controls now show."""
    sha = str(value("picture_sha") or "") if value("source") == OWN else ""
    own = own_shown(sha) if sha else None
    index = min(_index(), len(opened.data) - 1)
    name, split = opened.asked
    model = str(value("model") or "").strip()
    return PictureFocus(model, name, split, index, sha if own else "", own or shown_of(opened, index))


def show(opened: OpenPictures, index: int) -> None:
    """Looks at a picture of the set, which is thereby chosen: in a callback, or before the controls are drawn."""
    for name, new in {"data": opened.name, "split": opened.split, "index": index, "source": OF_DATA}.items():
        LOOKING.put(name, new)


def picture_focus_controls(models: Collection[str], opened: OpenPictures) -> None:
    """Which model looks at which picture: an example of a picture set, or a picture of one's own."""
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key=key("sets")):
        LOOKING.model_control(models)
        _set_controls(opened)
    better_offer(models, opened, "set")
    _picture_controls(opened)


def picture_example_focus(opened: OpenPictures) -> None:
    """The same for a page on which several models look at one picture."""
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key=key("sets")):
        _set_controls(opened)
    _picture_controls(opened)


def _picture_controls(opened: OpenPictures) -> None:
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key=key("place")):
        st.segmented_control("Picture", (OF_DATA, OWN), key=key("source"), required=True, persist_state=KEPT)
        if value("source") != OWN:
            _example_controls(opened)
    if value("source") == OWN:
        own_picture_controls(LOOKING)
    if trouble := opened.trouble or from_widgets(opened).trouble:
        say_error(trouble)


def better_offer(models: Collection[str], opened: OpenPictures, name: str) -> None:
    """The model that has more of the set's classes than the chosen one, and a button that turns to it; mostly nothing.

    `name`: of this place among those that offer it.
    """
    model = str(value("model") or "").strip()
    better = "" if opened.trouble or not model else better_model(list(models), model, opened)
    if not better:
        return
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key=key(f"offer {name}")):
        st.caption(f"{literal(better)} has more of this data set's classes than {literal(model)}.", width="content")
        st.button(f"Use {literal(better)}", key=key(f"better {name}"), on_click=LOOKING.put, args=("model", better))


def _set_controls(opened: OpenPictures) -> None:
    LOOKING.data_control(list_datasets("image"), DATA_HELP, _other_data)
    if opened.data.splits and not opened.trouble:
        _split_control(opened)
    if registered_name(opened.name) == MARKED and not opened.trouble:
        _strength_control(opened.name)


def _split_control(opened: OpenPictures) -> None:
    """The usual split is the empty one, as in a link."""
    usual, *others = opened.data.splits
    options = list(dict.fromkeys(["", *others, str(value("split") or "")]))
    st.selectbox(
        "Split", options, key=key("split"), width=150, format_func=lambda split: split or usual,
        on_change=_first_of_data, persist_state=KEPT,
    )  # fmt: skip


def _strength_control(name: str) -> None:
    LOOKING.put("strength", _marked(name).strength)
    st.number_input(
        "Mark strength", 0.0, 1.0, key=key("strength"), step=0.25, width=130, on_change=_take_strength,
        help="The share of pictures that carry the mark of their label.", persist_state=KEPT,
    )  # fmt: skip


def _example_controls(opened: OpenPictures) -> None:
    last = len(opened.data) - 1
    st.number_input(f"Example, 0 to {last:,}", 0, last, key=key("index"), step=1, width=150, persist_state=KEPT)
    at = _index()
    _step("Previous example", ":material/chevron_left:", opened, at - 1 if at else None)
    _step("Next example", ":material/chevron_right:", opened, at + 1 if at < last else None)
    st.button(
        "Random", key=key("random"), icon=":material/shuffle:", help="An example by chance", on_click=_take_any,
        args=(opened,),
    )  # fmt: skip


def _step(name: str, icon: str, opened: OpenPictures, index: int | None) -> None:
    st.button(icon, key=key(f"step {name}"), help=name, disabled=index is None, on_click=show, args=(opened, index))


def _index() -> int:
    index = value("index")
    return index if isinstance(index, int) else 0


def _take_any(opened: OpenPictures) -> None:
    show(opened, random.randrange(len(opened.data)))


def _first_of_data() -> None:
    opened = open_pictures(*asked({}))
    if not opened.trouble:
        show(opened, 0)


def _other_data() -> None:
    LOOKING.put("split", "")
    _first_of_data()


def _take_strength() -> None:
    options = _options(str(value("data"))) | {"strength": f"{value('strength'):g}"}
    told = ",".join(f"{name}={given}" for name, given in options.items())
    LOOKING.put("data", f"{MARKED}:{told}" if told != "strength=1" else MARKED)


def _options(name: str) -> dict[str, str]:
    rest = name.partition(":")[2]
    return parse_assignments(rest.split(",")) if rest else {}


def _marked(name: str) -> MarkedSceneParams:
    try:
        return from_mapping(MarkedSceneParams, _options(name), MARKED)
    except ExegesisError:
        return MarkedSceneParams()


def _last(link: Mapping[str, list[str]], name: str) -> str:
    return (link.get(name) or [""])[-1]
