"""Cards of models and data sets, their buttons to other pages, and the check of any model."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.browse.thumbnails import first_thumbnails, thumbnails_html, use_thumbnails
from components.errors import describe_error, error_html, note_html
from components.inputs import picture_choice as picture_focus_controls
from components.inputs import text_choice
from components.navigation import IMAGES, SCAFFOLD, TEXT, PageEntry
from components.scaffold.state import opening_state, train_link
from components.tables import checks_html, facts_html
from engine.data.datasets import dataset_card, dataset_names
from engine.data.image_datasets import image_card, image_names, load_images
from engine.data.registry import DatasetCard
from engine.errors import UsageError
from engine.format import size_text
from engine.input_kinds import kind_of_model
from engine.lazy import LazyModule
from engine.models import catalog
from engine.models.sizes import stored_parameters
from engine.vision.view import read_view

if TYPE_CHECKING:
    from engine.models import inspection
else:  # it imports torch and transformers
    inspection = LazyModule("engine.models.inspection")

INSPECTION_KEY, CHECK_FAILURE_KEY = "library_checked_model", "library_check_failed"
NAME_KEY = "library.model_to_check"
ADAPTER = "LoRA adapter"
"""The kind on the card of a model that is stored as a change to its base."""
PICTURES = 10
"""Number of pictures on a card; generated sets and folders begin with one of each class."""
FIRST = ("size", "licence", "intended_use", "limits")


def draw_models() -> None:
    """Draw a card per model: accuracy, license, size, revision, and on demand the whole card."""
    _draw_model_cards("Models of texts", catalog.embedded_models(), _draw_model_card)
    _draw_model_cards("Models of pictures", catalog.embedded_image_models(), _draw_model_card)
    _draw_model_cards("Bases to fine-tune", catalog.embedded_bases(), _draw_base_card)


def _draw_model_cards(title: str, names: Sequence[str], draw: Callable[[str], None]) -> None:
    if names:
        st.header(title, anchor=False)
    for name in names:
        with st.container(border=True, key=f"model-{name.replace('/', '-')}", gap="xsmall"):
            st.subheader(name, anchor=False)
            try:
                draw(name)
            except Exception as error:
                st.html(error_html(describe_error(error)))


def _draw_base_card(name: str) -> None:
    st.html(facts_html(card_facts(catalog.card(name), catalog.revision(name))))
    _draw_whole_card(name)


def _draw_model_card(name: str) -> None:
    is_image = kind_of_model(name) == "image"
    view = view_facts(name) if is_image else {}
    st.html(facts_html(card_facts(catalog.card(name), catalog.revision(name), view)))
    _draw_whole_card(name)
    _draw_page_buttons(name, is_image, "it")


def _draw_page_buttons(name: str, is_image: bool, pronoun: str) -> None:
    with st.container(horizontal=True, gap="medium"):
        if is_image:
            draw_images_button(f"Look at pictures with {pronoun}", model=name)
        else:
            draw_text_button(f"Explain a text with {pronoun}", model=name)
        draw_scaffold_button(f"Train an explainer for {pronoun}", "image" if is_image else "text", name)


def view_facts(name: str) -> dict[str, object]:
    """Additional facts on the card of an image model."""
    return {**read_view(name).describe(), "parameters": f"{stored_parameters(name):,}"}


def card_facts(card: dict[str, Any], revision: str, view: Mapping[str, object] | None = None) -> dict[str, object]:
    """The facts on a model's card, by name. `view`: facts about the input of an image model."""
    return {
        "use": card.get("intended_use"),
        "labels": ", ".join(card.get("labels") or []),
        **measured_scores(card),
        "kind": card.get("kind"),
        **(view or {}),
        "licence": card.get("licence"),
        "size": _stored_size(card),
        "revision": revision,
    }


def _stored_size(card: dict[str, Any]) -> str:
    """The stored size, and the base of an adapter."""
    if not card.get("bytes"):
        return ""
    base = (card.get("base") or {}).get("name")
    return size_text(card["bytes"]) + (f", on top of {base}" if base and card.get("kind") == ADAPTER else "")


def measured_scores(card: dict[str, Any]) -> dict[str, str]:
    """The scores on splits that were not used for model selection; others only if there are none."""
    metric = card.get("metric") or "score"
    return {
        f"{metric}, {split}": f"{score['value']:.3f} on {score['count']:,} examples"
        for split, score in catalog.fair_scores(card).items()
    }


def draw_model_check() -> None:
    """Draw the form that loads a model, runs it on one sentence, and describes it or the error."""
    st.subheader("Check a model", anchor=False)
    with st.form("library.check", border=False):
        st.text_input(
            "Folder or hub id", key=NAME_KEY, placeholder="path/to/checkpoint, or owner/name", persist_state="session",
            help="safetensors only; a checkpoint that asks to run code of its own is refused.",
        )  # fmt: skip
        submitted = st.form_submit_button("Check")
    if submitted:
        _check_model((st.session_state[NAME_KEY] or "").strip())
    if CHECK_FAILURE_KEY in st.session_state:
        st.html(error_html(st.session_state[CHECK_FAILURE_KEY]))
    if INSPECTION_KEY in st.session_state:
        _draw_inspection(st.session_state[INSPECTION_KEY])


def _check_model(name: str) -> None:
    for key in (INSPECTION_KEY, CHECK_FAILURE_KEY):
        st.session_state.pop(key, None)
    try:
        if not name:
            raise UsageError("model: type the folder of a checkpoint, or a hub id such as owner/name.")
        with st.spinner("Loading the model …"):
            catalog.locate(name)  # an unknown name fails at once, before the libraries are imported
            st.session_state[INSPECTION_KEY] = inspection.inspect_model(name)
    except Exception as error:
        st.session_state[CHECK_FAILURE_KEY] = describe_error(error)


def _draw_inspection(result: dict[str, Any]) -> None:
    with st.container(border=True, key="checked-model", gap="xsmall"):
        st.html(checks_html([("ok" if c["ok"] else "broken", c["name"], c["detail"], "") for c in result["checks"]]))
        st.html(facts_html(inspection_facts(result)))
        _draw_page_buttons(result["name"], "picture" in result, "this model")


def inspection_facts(result: dict[str, Any]) -> dict[str, object]:
    """The facts of a loaded model; an image model has a grid of patches in place of a longest input."""
    names = ("name", "family", "task", "folder", "base", "revision")
    facts: dict[str, object] = {name: result.get(name) for name in names}
    facts["labels"] = ", ".join(map(str, result["labels"]))
    facts |= {name: f"{result[name]:,}" for name in ("parameters", "blocks")}
    facts |= {name: result.get(name) for name in ("picture", "patches")}
    if "longest_input" in result:
        facts["longest input"] = f"{result['longest_input']:,} tokens"
    return facts


def _draw_whole_card(name: str) -> None:
    file = catalog.locate(name).folder / "card.md"
    if file.is_file():
        st.expander("The whole card").markdown(without_title(file.read_text(encoding="utf-8")), anchors=False)


def without_title(card: str) -> str:
    """The card's Markdown without its first heading, which the page shows already."""
    first, _, rest = card.partition("\n")
    return rest.strip() if first.startswith("# ") else card


def draw_datasets() -> None:
    """Draw a card per data set: its use, and on demand its source and generation."""
    use_thumbnails()
    st.header("Sets of texts", anchor=False)
    for name in dataset_names():
        with _dataset_frame(name):
            _draw_dataset_card(name, dataset_card(name))
            draw_text_button("Explain its texts", data=name)
    st.caption(
        "A file of your own works wherever a data set is asked for: JSONL with `text`, `text_pair`, `label` and "
        "`rationale`, or CSV and TSV. So does `hub:owner/name`."
    )
    st.header("Sets of pictures", anchor=False)
    rows = {name: _draw_image_dataset(name) for name in image_names()}
    st.caption(
        "Pictures of your own work too: a folder or a zip with a folder a class, masks or boxes beside them where the "
        "truth is known; a `.npz` of pictures; or `hub:owner/name`."
    )
    # The pictures come last: some sets take a second or two to open for the first time.
    for name, row in rows.items():
        row.html(_first_pictures_html(name))


def _draw_image_dataset(name: str) -> DeltaGenerator:
    """Draw the card of a picture set; returns the placeholder of its pictures."""
    row = st.empty()
    with _dataset_frame(name):
        row = _draw_dataset_card(name, image_card(name))
        draw_images_button("Look at its pictures", data=name)
    return row


@contextlib.contextmanager
def _dataset_frame(name: str) -> Iterator[None]:
    with st.container(border=True, key=f"data-{name}", gap="xsmall"):
        try:
            yield
        except Exception as error:
            st.html(error_html(describe_error(error)))


def _draw_dataset_card(name: str, card: DatasetCard) -> DeltaGenerator:
    """Draw title and facts; returns the placeholder between them."""
    st.subheader(f"{card.title} · `{name}`", anchor=False)
    between = st.empty()
    first, rest = split_facts(card)
    st.html(facts_html(first))
    st.expander("Source, making, command").html(facts_html(rest))
    return between


def _first_pictures_html(name: str) -> str:
    try:
        return _thumbnails(name)
    except Exception as error:
        return note_html(describe_error(error))


@st.cache_data(show_spinner=False)
def _thumbnails(name: str) -> str:
    return thumbnails_html(first_thumbnails(load_images(name, limit=PICTURES)))


def split_facts(card: DatasetCard) -> tuple[dict[str, object], dict[str, object]]:
    """Split the facts into the most important ones and the others."""
    facts = {name.replace("_", " "): value.replace("`", "") for name, value in asdict(card).items() if name != "title"}
    first = {name: facts.pop(name) for name in (key.replace("_", " ") for key in FIRST)}
    return first, facts


def draw_text_button(label: str, **names: str) -> None:
    """Draw a button that opens the Text page with another model or data set."""
    _draw_turn_button(label, TEXT, text_choice.turn_to, names)


def draw_images_button(label: str, **names: str) -> None:
    """Draw a button that opens the Images page with another model or picture set."""
    _draw_turn_button(label, IMAGES, picture_focus_controls.turn_to, names)


def draw_scaffold_button(label: str, kind: str, model: str) -> None:
    """Draw a button that opens the Scaffold page to train an explainer for the model."""
    if st.button(label, key=f"train-for-{model}", icon=":material/school:", type="tertiary"):
        st.switch_page(SCAFFOLD.path, query_params=train_link(kind, model, opening_state(kind).data))


def _draw_turn_button(label: str, page: PageEntry, turn_to: Callable[..., None], names: Mapping[str, str]) -> None:
    place = "-".join([page.url_path, *names.values()])
    if st.button(label, key=f"turn-to-{place}", icon=":material/arrow_forward:", type="tertiary"):
        turn_to(**names)
        st.switch_page(page.path)
