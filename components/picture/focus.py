"""What every page of pictures looks at: one model, one picture set, one example of it or a picture of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool

from components.link_choice import whole
from components.picture.open_pictures import PICTURES, OpenPictures, Shown, own_shown, shown_of
from components.text.focus import DIGEST_CHARACTERS, Query
from engine.data.image_datasets import registered_name
from engine.data.labels import NUMBERED_CLASS, ClassMatch, match_classes
from engine.errors import ExegesisError
from engine.models.catalog import card
from engine.request import Picture
from engine.vision.view import read_view

NAMES = ("model", "data", "split", "index", "digest", "picture_sha")
"""The names by which a link holds the focus."""
EVERYDAY = ("photos-vit", "scenes-vit")
"""Models of everyday things, where they are there: they stand in for a picture set that no model fits."""
NOTHING = Shown(None)


@dataclass(frozen=True)
class PictureFocus:
    """`index`: the place in the picture set, kept while a picture of one's own is looked at, which `picture_sha` names.

    `split`: empty for the usual one.
    """

    model: str
    data: str = PICTURES
    split: str = ""
    index: int = 0
    picture_sha: str = ""
    shown: Shown = field(default=NOTHING, repr=False)

    @property
    def own(self) -> bool:
        """Whether a picture of one's own is looked at."""
        return bool(self.picture_sha)

    @property
    def picture(self) -> Picture | None:
        """None where it cannot be read; `trouble` then says why."""
        return self.shown.picture

    @property
    def mask(self) -> Bool[np.ndarray, "height width"] | None:
        """Where the thing is that the label names, in the picture as it came."""
        return self.shown.mask

    @property
    def label(self) -> int | None:
        """The true class, by its place in the names of the picture set."""
        return self.shown.label

    @property
    def name(self) -> str:
        """What the picture is called: its file or place. Not ours, so it must be escaped."""
        return self.shown.name

    @property
    def trouble(self) -> str:
        return self.shown.trouble


@dataclass(frozen=True)
class Truth:
    """The true class: `label` in the picture set's words, `index` among the model's classes, None where that has none.

    `said`: how the two were matched or why they were not; empty where the names are the same.
    """

    label: str
    index: int | None
    said: str = ""


def read_picture_focus(
    last: Mapping[str, str], models: Sequence[str], opened: OpenPictures, said: list[str]
) -> PictureFocus:
    """What a link asks to look at; a sentence is added to `said` for everything in it that is not there.

    Where the controls have turned to another set than the link's since, the link's picture is not read.
    """
    name, split = last.get("data") or PICTURES, last.get("split", "")
    model = last.get("model", "").strip() or usual_model(models, opened)
    if (name, split) != opened.wanted:
        return PictureFocus(model, name, split)
    index, sha = _index(last, opened, said), last.get("picture_sha", "")
    own = own_shown(sha) if sha else None
    focus = PictureFocus(model, name, split, index, sha if own else "", own or shown_of(opened, index))
    if sha and own is None:
        said.append(
            "picture_sha: the link names a picture by its hash, which this machine does not have. Give the picture "
            f"again. Example {index} of {opened.name} is shown."
        )
    elif not opened.trouble and is_another_picture(last, focus, opened):
        said.append(
            f"digest: example {index} of {opened.name} is not the picture that the link was made of, because the data "
            "set has changed since. Pins of the link are left out; look for the picture in the list."
        )
    return focus


def is_another_picture(last: Mapping[str, str], focus: PictureFocus, opened: OpenPictures) -> bool:
    """Whether it is another picture than the one that the link was made of, so that its pins mean nothing."""
    if focus.own:
        return False
    now = digest(focus)
    return bool(last.get("picture_sha")) or last.get("digest", "" if opened.trouble else now) != now


def digest(focus: PictureFocus) -> str:
    """A few hex digits by which a picture is known again after others were put before it."""
    return "" if focus.picture is None else focus.picture.digest[:DIGEST_CHARACTERS]


def write_picture_focus(focus: PictureFocus) -> Query:
    """What a link says of it: an example by its place in the picture set, a picture of one's own by its hash."""
    query: Query = {"model": [focus.model]}
    if focus.own:
        place: Query = {} if focus.data == PICTURES else {"data": [focus.data]}
        place |= {"index": [str(focus.index)]} if focus.index else {}
        return query | place | _split(focus) | {"picture_sha": [focus.picture_sha]}
    query |= {"data": [focus.data], **_split(focus), "index": [str(focus.index)]}
    return query if registered_name(focus.data) or focus.picture is None else query | {"digest": [digest(focus)]}


def truth_of(focus: PictureFocus, opened: OpenPictures, labels: Sequence[str]) -> Truth:
    """The true class of what is looked at. `labels`: the model's classes."""
    if focus.label is None:
        return Truth("", None)
    found = picture_classes(opened.data.label_names, labels)
    index = None if found.indices is None else found.indices[focus.label]
    return Truth(opened.data.label_names[focus.label], index, found.note)


def picture_classes(names: Sequence[str], labels: Sequence[str]) -> ClassMatch:
    """Which of a model's classes each class of a picture set is."""
    return match_classes(names, labels, NUMBERED_CLASS)


def usual_model(models: Sequence[str], opened: OpenPictures) -> str:
    """The model that is called after the picture set or was trained on it, else one with the most of its classes."""
    name = registered_name(opened.name)
    called = [model for model in models if name and model.startswith(f"{name}-")]
    trained = (model for model in models if name and card(model).get("settings", {}).get("dataset") == name)
    # "scenes-marked-vit" is called after scenes too.
    return next(iter([*sorted(called, key=len), *trained, *_fitting(models, opened)]), "")


def better_model(models: Sequence[str], model: str, opened: OpenPictures) -> str:
    """The usual model of the picture set where it has more of its classes than `model`, else an empty text."""
    usual = usual_model(models, opened)
    return usual if _matched(usual, opened) > _matched(model, opened) else ""


def _fitting(models: Sequence[str], opened: OpenPictures) -> list[str]:
    """The models with more of the set's classes first; of those with as many, the ones of everyday things."""
    everyday = [model for model in EVERYDAY if model in models]
    ranked = dict.fromkeys([*everyday, *models])
    return sorted(ranked, key=lambda model: -_matched(model, opened))


def _matched(model: str, opened: OpenPictures) -> int:
    """How many classes of the set the model has; 0 where its files cannot be read."""
    try:
        of = picture_classes(opened.data.label_names, read_view(model).labels).indices
    except ExegesisError:
        return 0
    return sum(index is not None for index in of or ())


def _split(focus: PictureFocus) -> Query:
    return {"split": [focus.split]} if focus.split else {}


def _index(last: Mapping[str, str], opened: OpenPictures, said: list[str]) -> int:
    if opened.trouble:  # the place was meant in another picture set
        return 0
    given, most = last.get("index", "0"), len(opened.data) - 1
    index = whole(given, most)
    if index is not None:
        return index
    said.append(f"index: must be 0 to {most} in {opened.name}, got {given[:40]!r}. The first picture is shown.")
    return 0
