"""The choice of model, picture set and picture, which all pages of pictures share in their links and controls.

A picture is an example of a picture set, or the user's own picture from a file or the camera.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import streamlit as st
from jaxtyping import Bool
from streamlit.delta_generator import DeltaGenerator

from components.controls import PERSIST
from components.errors import describe_error, escape_label, show_error
from components.inputs.datasets import (
    DEFAULT_PICTURES,
    ChosenPicture,
    OpenPictures,
    describe_misfit,
    find_misfits,
    open_pictures,
    read_picture,
    read_uploaded_picture,
)
from components.inputs.label_choice import draw_label_controls
from components.links import DIGEST_CHARACTERS, Query, whole_number
from components.state import Selection
from components.styles import use_sheet
from engine.data.image_datasets import registered_name
from engine.data.labels import NUMBERED_CLASS, match_classes
from engine.data.picture_files import open_picture
from engine.data.scenes import MarkedSceneParams
from engine.data.sources import list_datasets
from engine.errors import ExegesisError
from engine.models.catalog import card, label_rules
from engine.models.summary import fitting_dataset, summarize_model
from engine.params import from_mapping, parse_assignments
from engine.request import Picture
from engine.store import store_picture
from engine.vision.picture import read_view

NAMES = ("model", "data", "split", "index", "digest", "picture_sha")
"""Fields of a link that hold the focus."""
WIDGETS = "picture_focus."
"""Prefix of the keys of all widgets of the choice."""
SELECTION = Selection(WIDGETS, "picture_focus_link", NAMES)
key, value, turn_to = SELECTION.key, SELECTION.value, SELECTION.turn_to
EVERYDAY = ("photos-vit", "scenes-vit")
"""Models of everyday objects, if available, as defaults for a picture set that no model fits."""
NO_PICTURE = ChosenPicture(None)

FROM_DATA, OWN = "Data set", "Your picture"
MARKED = "scenes-marked"
DATA_HELP = (
    "A name, a zip or folder with class folders, a .npz, or hub:owner/name. "
    "Options follow the name: scenes:seed=7,count=500."
)
KINDS = ("png", "jpg", "jpeg", "webp", "gif")
LAST_PICTURE_STAYS = "The previous picture is still shown."
EXAMPLE_STAYS = "Showing the data-set example until you upload a picture."


@dataclass(frozen=True)
class PictureFocus:
    """One model, one picture set, one picture.

    `index`: index in the picture set, which stays while the user's own picture is shown. `picture_sha`: hash of the
    user's own picture, empty for an example. `split`: empty for the default split.
    """

    model: str
    data: str = DEFAULT_PICTURES
    split: str = ""
    index: int = 0
    picture_sha: str = ""
    chosen: ChosenPicture = field(default=NO_PICTURE, repr=False)

    @property
    def own(self) -> bool:
        """Whether it is the user's own picture."""
        return bool(self.picture_sha)

    @property
    def place(self) -> int | None:
        """The index in the picture set; None for the user's own picture."""
        return None if self.own else self.index

    @property
    def picture(self) -> Picture | None:
        """The picture; None if it cannot be read, and `error` then says why."""
        return self.chosen.picture

    @property
    def input(self) -> Picture | None:
        return self.picture

    @property
    def mask(self) -> Bool[np.ndarray, "height width"] | None:
        """The mask of the labeled object, in the size of the original picture."""
        return self.chosen.mask

    @property
    def label(self) -> int | None:
        """The true class, as an index into the label names of the picture set."""
        return self.chosen.label

    @property
    def name(self) -> str:
        """The picture's name: its file or place. It is foreign text, so it must be escaped."""
        return self.chosen.name

    @property
    def error(self) -> str:
        return self.chosen.error


@dataclass(frozen=True)
class TrueClass:
    """The true class of a picture.

    `label`: its name in the picture set. `index`: its index among the model's classes, None if the model does not have
    it. `note`: how the two were matched, or why they were not; empty if the names are equal.
    """

    label: str
    index: int | None
    note: str = ""


def read_picture_focus(
    last: Mapping[str, str], models: Sequence[str], opened: OpenPictures, notes: list[str]
) -> PictureFocus:
    """Return the focus of a link; a note is added to `notes` for each value that is unavailable.

    If the controls have changed to another picture set than the link's, the link's picture is not read.
    """
    name, split = last.get("data") or DEFAULT_PICTURES, last.get("split", "")
    model = last.get("model", "").strip() or usual_model(models, opened)
    if (name, split) != opened.wanted:
        return PictureFocus(model, name, split)
    index, sha = _read_index(last, opened, notes), last.get("picture_sha", "")
    own = read_uploaded_picture(sha) if sha else None
    focus = PictureFocus(model, name, split, index, sha if own else "", own or read_picture(opened, index))
    if sha and own is None:
        notes.append(
            "picture_sha: the link refers to a picture by its hash, which this machine does not have. Upload the "
            f"picture again. Example {index} of {opened.name} is shown."
        )
    elif not opened.error and is_other_picture(last, focus, opened):
        notes.append(
            f"digest: example {index} of {opened.name} is not the picture in the link, because the data set has "
            "changed. The pins of the link are ignored. Look for the picture in the list."
        )
    return focus


def is_other_picture(last: Mapping[str, str], focus: PictureFocus, opened: OpenPictures) -> bool:
    """Whether the picture differs from the one that the link was made for, so that the link's pins do not apply."""
    if focus.own:
        return False
    digest = picture_digest(focus)
    return bool(last.get("picture_sha")) or last.get("digest", "" if opened.error else digest) != digest


def picture_digest(focus: PictureFocus) -> str:
    """Return a few hex digits that identify a picture even after others were put before it; empty without a picture."""
    return "" if focus.picture is None else focus.picture.digest[:DIGEST_CHARACTERS]


def write_picture_focus(focus: PictureFocus) -> Query:
    """Return the fields of a link: an example by its index in the picture set, the user's own picture by its hash."""
    query: Query = {"model": [focus.model]}
    split: Query = {"split": [focus.split]} if focus.split else {}
    if focus.own:
        place: Query = {} if focus.data == DEFAULT_PICTURES else {"data": [focus.data]}
        place |= {"index": [str(focus.index)]} if focus.index else {}
        return query | place | split | {"picture_sha": [focus.picture_sha]}
    query |= {"data": [focus.data], **split, "index": [str(focus.index)]}
    is_registered = registered_name(focus.data)
    return query if is_registered or focus.picture is None else query | {"digest": [picture_digest(focus)]}


def _read_index(last: Mapping[str, str], opened: OpenPictures, notes: list[str]) -> int:
    if opened.error:  # the index belongs to another picture set
        return 0
    text, most = last.get("index", "0"), len(opened.data) - 1
    index = whole_number(text, most)
    if index is not None:
        return index
    notes.append(f"index: must be 0 to {most} in {opened.name}, got {text[:40]!r}. The first picture is shown.")
    return 0


def true_class(focus: PictureFocus, opened: OpenPictures, labels: Sequence[str]) -> TrueClass:
    """Return the true class of the picture. `labels`: the model's classes."""
    if focus.label is None:
        return TrueClass("", None)
    match = match_classes(opened.data.label_names, labels, NUMBERED_CLASS)
    index = None if match.indices is None else match.indices[focus.label]
    return TrueClass(opened.data.label_names[focus.label], index, match.note)


def usual_model(models: Sequence[str], opened: OpenPictures) -> str:
    """Return the model that is named after the picture set or was trained on it, else one with most of its classes."""
    name = registered_name(opened.name)
    named = [model for model in models if name and model.startswith(f"{name}-")]
    trained = (model for model in models if name and card(model).get("settings", {}).get("dataset") == name)
    # Shortest first, because "scenes-marked-vit" also starts with "scenes-".
    return next(iter([*sorted(named, key=len), *trained, *_rank_by_classes(models, opened)]), "")


def better_model(models: Sequence[str], model: str, opened: OpenPictures) -> str:
    """Return the data set's default model if it covers more of its classes than `model`, else an empty string."""
    usual = usual_model(models, opened)
    return usual if _count_classes(usual, opened) > _count_classes(model, opened) else ""


def _rank_by_classes(models: Sequence[str], opened: OpenPictures) -> list[str]:
    """Sort models by the number of the set's classes that they have, most first; on ties, those in `EVERYDAY` first."""
    everyday = [model for model in EVERYDAY if model in models]
    ordered = dict.fromkeys([*everyday, *models])
    return sorted(ordered, key=lambda model: -_count_classes(model, opened))


def _count_classes(model: str, opened: OpenPictures) -> int:
    """Return the number of the set's classes that the model has; 0 if its files cannot be read."""
    try:
        indices = match_classes(opened.data.label_names, read_view(model).labels, NUMBERED_CLASS).indices
    except ExegesisError:
        return 0
    return sum(index is not None for index in indices or ())


def requested_dataset(link: Mapping[str, list[str]]) -> tuple[str, str]:
    """Return the name and split in the controls, or else in the link."""
    if value("data"):
        return str(value("data")).strip(), str(value("split") or "")
    name, split = ((link.get(name) or [""])[-1] for name in ("data", "split"))
    return name or DEFAULT_PICTURES, split


def fill_controls(focus: PictureFocus, opened: OpenPictures) -> None:
    """Fill the controls that have no value yet."""
    values: dict[str, object] = {
        "model": focus.model or None,
        "data": focus.data,
        "split": focus.split,
        "index": focus.index,
        "picture_sha": focus.picture_sha,
        "source": OWN if focus.own else FROM_DATA,
    }
    for name, initial in values.items():
        st.session_state.setdefault(key(name), initial)
    if not 0 <= _index() < len(opened.data):
        SELECTION.put("index", 0)


def read_controls(opened: OpenPictures) -> PictureFocus:
    """Return the focus that the controls show."""
    sha = str(value("picture_sha") or "") if value("source") == OWN else ""
    own = read_uploaded_picture(sha) if sha else None
    index = min(_index(), len(opened.data) - 1)
    model = str(value("model") or "").strip()
    return PictureFocus(model, *opened.requested, index, sha if own else "", own or read_picture(opened, index))


def show(opened: OpenPictures, index: int) -> None:
    """Choose a picture of the set, and thereby the set, in a callback or before the controls are drawn."""
    for name, new in {"data": opened.name, "split": opened.split, "index": index, "source": FROM_DATA}.items():
        SELECTION.put(name, new)


def draw_focus_controls(models: Collection[str], opened: OpenPictures) -> DeltaGenerator:
    """Draw the choice of the model and of a picture, an example or the user's own. Returns the row."""
    chosen = str(value("model") or "").strip()
    misfits = [] if opened.error else find_misfits(dict.fromkeys([*models, chosen]), opened.name, opened.data)
    row = _row()
    with row:
        SELECTION.model_control(models, misfits, opened.name)
        _draw_dataset_controls(opened)
        _draw_place_controls(opened)
    draw_label_controls(SELECTION, () if opened.error else opened.data.label_names)
    if chosen in misfits and value("source") != OWN:
        _offer_fitting(chosen, opened, better_model(list(models), chosen, opened))
    else:
        offer_better_model(models, opened, "set")
    _draw_own_picture(opened)
    return row


def fits_dataset(model: str, opened: OpenPictures) -> bool:
    """Whether the model was made for the task of the picture set, so that the set's labels and masks apply to it."""
    return not find_misfits([model], opened.name, opened.data)


def draw_example_controls(opened: OpenPictures, models: Iterable[str] = ()) -> None:
    """Draw the choice of the picture only, for a page on which several models see one picture.

    `models`: the models that see it.
    """
    with _row():
        _draw_dataset_controls(opened)
        _draw_place_controls(opened)
    misfits = [] if opened.error else find_misfits(models, opened.name, opened.data)
    if misfits and value("source") != OWN:
        _offer_fitting(misfits[0], opened, "")
    _draw_own_picture(opened)


def draw_split_control(opened: OpenPictures) -> None:
    """Draw the choice of the split, if the picture set has several. The default split is empty, as in a link."""
    if not opened.data.splits or opened.error:
        return
    usual, *others = opened.data.splits
    options = list(dict.fromkeys(["", *others, str(value("split") or "")]))
    st.selectbox(
        "Split", options, key=key("split"), width=150, format_func=lambda split: split or usual,
        on_change=_show_first, persist_state=PERSIST,
    )  # fmt: skip


def _offer_fitting(chosen: str, opened: OpenPictures, model: str) -> None:
    reason = describe_misfit(chosen, opened.name, opened.data)
    SELECTION.offer_fitting(reason, fitting_dataset(summarize_model(chosen)), _take_dataset, model)


def offer_better_model(models: Collection[str], opened: OpenPictures, name: str) -> None:
    """Draw a button that selects a model with more of the set's classes than the chosen one, if there is one.

    `name`: unique name for the button's place on the page.
    """
    model = str(value("model") or "").strip()
    better = "" if opened.error or not model else better_model(list(models), model, opened)
    if not better or label_rules(model) is not None:  # a zero-shot model takes the classes as its labels
        return
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key=key(f"offer {name}")):
        st.caption(
            f"{escape_label(better)} has more of this data set's classes than {escape_label(model)}.", width="content"
        )
        st.button(
            f"Use {escape_label(better)}", key=key(f"better {name}"), on_click=SELECTION.put, args=("model", better)
        )


def _row() -> DeltaGenerator:
    use_sheet("focus")
    return st.container(horizontal=True, gap="small", vertical_alignment="bottom", key=key("row"))


def _draw_dataset_controls(opened: OpenPictures) -> None:
    SELECTION.data_control(list_datasets("image"), DATA_HELP, _take_dataset)
    if registered_name(opened.name) == MARKED and not opened.error:
        SELECTION.put("strength", _read_marked_params(opened.name).strength)
        st.number_input(
            "Mark strength", 0.0, 1.0, key=key("strength"), step=0.25, width=130, on_change=_take_strength,
            help="The share of pictures that carry the mark of their label.", persist_state=PERSIST,
        )  # fmt: skip


def _draw_place_controls(opened: OpenPictures) -> None:
    """Draw the choice between the picture set and the user's own picture, and the example of the set."""
    if value("source") != OWN:
        _draw_example_number(opened)
    st.segmented_control(
        "Picture", (FROM_DATA, OWN), key=key("source"), required=True, label_visibility="collapsed", width="content",
        persist_state=PERSIST,
    )  # fmt: skip


def _draw_example_number(opened: OpenPictures) -> None:
    last = len(opened.data) - 1
    st.number_input(f"Example, 0 to {last:,}", 0, last, key=key("index"), step=1, width=150, persist_state=PERSIST)
    st.button("Random", key=key("random"), help="A random example", on_click=_show_random, args=(opened,))


def _draw_own_picture(opened: OpenPictures) -> None:
    """Draw the controls of the user's own picture, if it is chosen, and the error if there is no picture."""
    if value("source") == OWN:
        _draw_own_picture_controls()
    if error := opened.error or read_controls(opened).error:
        show_error(error)


def _draw_own_picture_controls() -> None:
    """Draw the file uploader and, if the camera is switched on, the camera.

    A file that cannot be read leaves the last picture as it is. The hash of an accepted picture is stored in the
    control `picture_sha`.
    """
    st.file_uploader(
        "A picture: PNG, JPEG, WebP or GIF",
        KINDS,
        key=key("upload"),
        on_change=take_picture,
        args=("upload",),
        help="The picture stays on this machine. Only its pixels are stored, without its name or location.",
    )
    if st.toggle("Use the camera", key=key("camera_on")):
        st.camera_input("Photograph", key=key("camera"), on_change=take_picture, args=("camera",))
    if refused := value("refused"):
        # The uploader still shows the name of the refused file.
        show_error(f"{refused} {LAST_PICTURE_STAYS if value('picture_sha') else EXAMPLE_STAYS}")
    elif not value("picture_sha"):
        st.caption(EXAMPLE_STAYS)


def take_picture(name: str) -> None:
    """Store the picture that the control `name` has just received, or the reason why it is refused."""
    SELECTION.put("refused", "")
    upload = st.session_state.get(key(name))
    if upload is None:
        return
    try:
        SELECTION.put("picture_sha", store_picture(open_picture(upload.getvalue(), upload.name)))
    except Exception as error:
        SELECTION.put("refused", describe_error(error))


def _index() -> int:
    index = value("index")
    return index if isinstance(index, int) else 0


def _show_random(opened: OpenPictures) -> None:
    show(opened, random.randrange(len(opened.data)))


def _show_first() -> None:
    opened = open_pictures(*requested_dataset({}))
    if not opened.error:
        show(opened, 0)


def _take_dataset() -> None:
    SELECTION.put("split", "")
    _show_first()


def _take_strength() -> None:
    options = _read_options(str(value("data"))) | {"strength": f"{value('strength'):g}"}
    assignments = ",".join(f"{name}={option}" for name, option in options.items())
    SELECTION.put("data", f"{MARKED}:{assignments}" if assignments != "strength=1" else MARKED)


def _read_options(name: str) -> dict[str, str]:
    rest = name.partition(":")[2]
    return parse_assignments(rest.split(",")) if rest else {}


def _read_marked_params(name: str) -> MarkedSceneParams:
    try:
        return from_mapping(MarkedSceneParams, _read_options(name), MARKED)
    except ExegesisError:
        return MarkedSceneParams()
