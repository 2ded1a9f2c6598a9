"""The page that answers a question, and its link, written from the state of that page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from components.adversarial.state import OTHERS, AdversarialState
from components.adversarial.state import write as write_adversarial
from components.attention.state import AttentionState
from components.attention.state import write as write_attention
from components.browse.listing import DEFAULT_LISTING, Listing
from components.compare.state import CompareState, CompareViewOptions
from components.compare.state import write as write_compare
from components.experiment.state import plan_link
from components.images.state import START as PICTURE_START
from components.images.state import PictureState
from components.images.state import write_state as write_picture
from components.inputs.choices import Focus
from components.inputs.picture_choice import PictureFocus
from components.inputs.text_choice import TextFocus
from components.layers.state import LayersState
from components.layers.state import write as write_layers
from components.links import Query
from components.navigation import (
    ADVERSARIAL,
    ATTENTION,
    BEHAVIOR,
    COMPARE,
    EVALUATE,
    IMAGES,
    LAYERS,
    RANDOMIZATION,
    RULES_PAGE,
    TEXT,
    WORDS,
    PageEntry,
)
from components.text.state import START, TextState, write_state
from components.widgets.attention_board import default_options
from engine.comparison.plan import read_pair
from engine.errors import UsageError
from engine.input_kinds import kind_of_dataset, list_models
from engine.models.summary import fitting_model
from engine.query.command import edited_example, example_of, fits, kind_of, pairs_of, plan_of_query
from engine.query.grammar import ParsedQuery
from engine.request import Prompt

EXPERIMENT_PAGES = {
    "evaluate": EVALUATE,
    "randomize": RANDOMIZATION,
    "corpus": WORDS,
    "rules": RULES_PAGE,
    "behavior": BEHAVIOR,
}


def page_of(query: ParsedQuery) -> tuple[PageEntry, Query]:
    """Return the page that answers a completed query, and its link.

    Errors: those of reading the example; a word that the example lacks; a single text if two are compared.
    """
    if query.operation in EXPERIMENT_PAGES:
        view = {"example": str(query.example)} if query.example is not None else {}
        return EXPERIMENT_PAGES[query.operation], plan_link(plan_of_query(query), **view)
    if query.operation in ("compare", "disagree"):
        return COMPARE, write_compare(_comparison(query))
    if query.operation == "attention":
        return ATTENTION, write_attention(_attention(query))
    if query.operation == "lens":
        return LAYERS, write_layers(_layers(query))
    if query.operation == "attack":
        kind = kind_of(query)
        state = AdversarialState(kind=kind, focus=_focus(query), method=query.methods[0], others=OTHERS[kind])
        return ADVERSARIAL, write_adversarial(state)
    return _explanation(query)


def _explanation(query: ParsedQuery) -> tuple[PageEntry, Query]:
    """Return the page that explains one input, and its link with the operation's edit, open section or list."""
    shared: dict[str, Any] = {"focus": _focus(query), "target": query.target}
    if query.operation == "mistakes":
        listing = Listing(show="wrong", label=query.target or DEFAULT_LISTING.label)
        shared |= {"browse": listing, "opened": ("browse",), "target": None}
    if kind_of(query) == "image":
        methods = query.methods or PICTURE_START
        return IMAGES, write_picture(PictureState(methods=methods, **shared))
    if query.operation in ("delete", "replace"):
        edited = edited_example(query)
        shared |= {"edit": edited.text, "edit_pair": edited.text_pair}
    if query.operation in OPENED:
        shared |= {"opened": (OPENED[query.operation],)}
    if query.operation == "flip":
        shared["target"] = None
    link = write_state(TextState(methods=query.methods or START, **shared))
    flipped = {"flip_to": [query.target]} if query.operation == "flip" and query.target else {}
    return TEXT, link | flipped


OPENED = {
    "similarity": "similarity",
    "significance": "significance",
    "flip": "counterfactuals",
    "continuation": "generation",
}
"""Section of the Text page that answers an operation."""


def _focus(query: ParsedQuery) -> Focus:
    """Return the input as the state of a page stores it."""
    if kind_of(query) == "image":
        return PictureFocus(query.models[0], str(query.dataset), index=int(query.example or 0))
    compared = query.operation == "similarity"  # uses its own encoder
    model = _pair_model(str(query.dataset)) if compared or not query.models else query.models[0]
    if query.operation == "mistakes":
        query = replace(query, example=0)
    example = example_of(query)
    if query.operation == "similarity" and example.text_pair is None:
        raise UsageError("query: needs two texts, got one. Quote both, or name a data set of pairs.")
    index = None if query.text is not None else int(query.example or 0)
    focus = TextFocus(model, example.text, example.text_pair, index, str(query.dataset))
    if isinstance(example, Prompt):
        return replace(focus, target=example.target, contrast=example.contrast, chat=example.chat)
    return focus


def _pair_model(dataset: str) -> str:
    models = list_models(kind_of_dataset(dataset))
    return fitting_model([model for model in models if fits(model, dataset)], dataset)


def _comparison(query: ParsedQuery) -> CompareState:
    """Return the comparison of the columns.

    For a disagreement, it shows how far each part moves in rank, and opens the search if the query has no input.
    """
    kind, many = kind_of(query), query.example is None and query.text is None
    columns = tuple(read_pair(pair, kind) for pair in pairs_of(query))
    state = CompareState(kind=kind, focus=_focus(query), columns=columns, target=query.target)
    if query.operation == "compare":
        return state
    return replace(
        state,
        reference=columns[0],
        view=CompareViewOptions(shown="moves"),
        open_sections=("search",) if many else (),
    )


def _layers(query: ParsedQuery) -> LayersState:
    """Return the logit lens of the input. The user chooses the tokens to corrupt for the patching map."""
    example = example_of(query)
    target = example.target if isinstance(example, Prompt) else query.target
    contrast = example.contrast if isinstance(example, Prompt) else None
    return LayersState(
        query.models[0], example.text, "", example.text_pair is not None, example.text_pair or "",
        chat=bool(query.chat), corruption="mean", target=target, contrast=contrast,
    )  # fmt: skip


def _attention(query: ParsedQuery) -> AttentionState:
    """Return the board with the query's head locked, or limited to its layer or its head number."""
    kind = kind_of(query)
    board = default_options(kind)
    if query.layer is not None and query.head is not None:
        board = replace(board, head=(query.layer, query.head))
    else:
        board = replace(
            board,
            layers=() if query.layer is None else (query.layer,),
            heads=() if query.head is None else (query.head,),
        )
    return AttentionState(kind=kind, focus=_focus(query), board=board)
