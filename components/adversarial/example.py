"""What is known of the example that is attacked: what the model sees of it, and whether it was right before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.adversarial.words import WRONG
from components.inputs.datasets import OpenPictures
from components.inputs.picture_choice import PictureFocus, true_class
from engine.attacks.result import Attacked
from engine.data.labels import match_classes
from engine.vision.view import read_view

if TYPE_CHECKING:
    import numpy as np

    from components.adversarial.session import Opened
    from components.adversarial.state import AdversarialState


def seen_of(state: AdversarialState, founds: list[Attacked]) -> np.ndarray | None:
    """The picture as the model sees it before the attack; None of a text."""
    if not isinstance(state.focus, PictureFocus) or state.focus.picture is None:
        return None
    shown = next((found.picture for found in founds if found.picture is not None), None)
    return read_view(state.focus.model).transform(state.focus.picture.pixels) if shown is None else shown.before


def wrong_words(state: AdversarialState, opened: Opened, found: Attacked) -> str:
    """That the model was wrong about the example before; empty where it was right or that is not known."""
    if found.prediction.regression:
        return ""
    label, true = _truth(state, opened, found.prediction.labels)
    if true is None or true == found.prediction.index:
        return ""
    return WRONG.format(found.prediction.label, label)


def _truth(state: AdversarialState, opened: Opened, labels: tuple[str, ...]) -> tuple[str, int | None]:
    """The label in the data set's words, and the model's class that it is."""
    focus = state.focus
    if isinstance(focus, PictureFocus):
        if focus.own or not isinstance(opened, OpenPictures):
            return "", None
        truth = true_class(focus, opened, labels)
        return truth.label, truth.index
    if focus.index is None or isinstance(opened, OpenPictures):
        return "", None
    label, names = opened.data[focus.index].label, opened.data.label_names
    of = match_classes(names, labels).indices
    if not isinstance(label, int) or not 0 <= label < len(names):
        return "", None
    return names[label], None if of is None else of[label]
