"""The choice of an input of either kind, for pages that support both texts and pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from streamlit.delta_generator import DeltaGenerator

from components.inputs import picture_choice, text_choice
from components.inputs.datasets import OpenPictures, OpenTexts, open_pictures, open_texts
from components.inputs.picture_choice import PictureFocus
from components.inputs.text_choice import TextFocus
from components.links import Query
from components.state import Selection
from engine.data.examples import LabeledExample
from engine.format import visible_token

Focus = TextFocus | PictureFocus
Opened = OpenTexts | OpenPictures


@dataclass(frozen=True)
class InputChoice:
    """The choice of one kind of input: an adapter between a page and the focus and data set of that kind.

    `noun`: noun for the input. `open`: opens the data set named by the controls or the link. `from_link`, `to_link`:
    read and write the focus of a link. `is_other`: whether the link was made for another input. `fill`, `controls`,
    `draw`: fill, read and draw the controls of the focus. `draw_options`: draws the rarely used controls of an open
    data set. `show`: selects one of its examples, in a callback. `label`: the true class as an index in the data set,
    or the true score; None if there is none.
    """

    noun: str
    selection: Selection
    open: Callable[[Query], Any]
    from_link: Callable[[Mapping[str, str], list[str], Any, list[str]], Any]
    is_other: Callable[[Mapping[str, str], Any, Any], bool]
    to_link: Callable[[Any], Query]
    fill: Callable[[Any, Any], None]
    controls: Callable[[Any], Any]
    draw: Callable[[list[str], Any], DeltaGenerator]
    draw_options: Callable[[Any], None]
    show: Callable[[Any, int], None]
    label: Callable[[Any, Any], int | float | None]


def _draw_text(models: list[str], opened: OpenTexts) -> DeltaGenerator:
    row = text_choice.draw_focus_controls(models, opened)
    text_choice.draw_text_fields()
    return row


CHOICES: Mapping[str, InputChoice] = {
    "text": InputChoice(
        noun="text",
        selection=text_choice.SELECTION,
        open=lambda link: open_texts(text_choice.requested_dataset(link)),
        from_link=text_choice.read_text_focus,
        is_other=text_choice.is_other_text,
        to_link=text_choice.write_text_focus,
        fill=text_choice.fill_controls,
        controls=text_choice.read_controls,
        draw=_draw_text,
        draw_options=lambda _: text_choice.draw_pair_switch(),
        show=text_choice.show,
        label=lambda focus, opened: None if focus.index is None else opened.data[focus.index].label,
    ),
    "image": InputChoice(
        noun="picture",
        selection=picture_choice.SELECTION,
        open=lambda link: open_pictures(*picture_choice.requested_dataset(link)),
        from_link=picture_choice.read_picture_focus,
        is_other=picture_choice.is_other_picture,
        to_link=picture_choice.write_picture_focus,
        fill=picture_choice.fill_controls,
        controls=picture_choice.read_controls,
        draw=picture_choice.draw_focus_controls,
        draw_options=picture_choice.draw_split_control,
        show=picture_choice.show,
        label=lambda focus, _: None if focus.own else focus.label,
    ),
}
"""Choices by kind of input, the default first."""
SELECTIONS = {kind: choice.selection for kind, choice in CHOICES.items()}


def label_name(kind: str, focus: Focus, opened: Opened) -> str:
    """Return the name of the true class in the data set; for a prompt, its answer. Empty if unknown or a score."""
    label, names = CHOICES[kind].label(focus, opened), opened.data.label_names
    if not isinstance(label, int) or not 0 <= label < len(names):
        return ""
    example = None if not isinstance(focus, TextFocus) or focus.index is None else opened.data[focus.index]
    answer = example.answer if isinstance(example, LabeledExample) else None
    return names[label] if answer is None else visible_token(answer)
