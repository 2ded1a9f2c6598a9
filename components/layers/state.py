"""The state of the Layers page, in the widgets and the link: model, both texts, patching and display options."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from components.links import Query, join_values, opened_option, read_record, seed_option, target_option, write_record
from components.state import PageSession, apart, control_values, sections_of
from engine.errors import UsageError
from engine.input_kinds import list_models
from engine.inside.patching import PatchQuery
from engine.next_token import has_chat_template
from engine.params import option
from engine.request import Example, Prompt

SITES = {"residual": "Residual stream", "attention": "Attention output", "mlp": "MLP output", "heads": "Heads"}
CORRUPTIONS = {"text": "Another text", "noise": "Noise", "mean": "Mean embedding"}
METRICS = {"logit_difference": "Logit difference", "probability": "Probability", "kl": "KL divergence"}
VIEWS = {"exact": "Exact", "preview": "Gradient preview"}
MOST_CHARACTERS = 1500
"""Maximum length of a text. Longer ones need the command: they do not fit into a link or a readable grid."""
MOST_PLACE = 9999
USUAL = "The default is used."


@dataclass(frozen=True)
class PatchExample:
    """A clean and a corrupted text, or pair of texts, that differ in what the prediction depends on."""

    title: str
    model: str
    text: str
    corrupted: str
    target: str | None = None
    contrast: str | None = None
    pair: str = ""
    corrupted_pair: str = ""


EXAMPLES = (
    PatchExample(
        "Indirect object", "tiny-llama", "When Anna and Paul went to the park, Paul gave a ring to",
        "When Anna and Paul went to the park, Anna gave a ring to", " Anna", " Paul",
    ),
    PatchExample(
        "Agreement", "tiny-llama", "The key near the cabinets", "The keys near the cabinets", None, " were",
    ),
    PatchExample(
        "Indirect object (SmolLM2)", "smollm2-135m", "When Mary and John went to the store, John gave a drink to",
        "When Mary and John went to the store, Mary gave a drink to", " Mary", " John",
    ),
    PatchExample(
        "Sentiment", "reviews-minilm", "The film was wonderful and I loved it.",
        "The film was terrible and I hated it.",
    ),
    PatchExample(
        "Entailment", "nli-minilm", "A woman is playing a guitar.", "A woman is playing a guitar.",
        pair="A woman is making music.", corrupted_pair="A woman is making dinner.",
    ),
)  # fmt: skip


def patch_examples() -> list[PatchExample]:
    """Return the examples whose models are available."""
    models = list_models("text")
    return [one for one in EXAMPLES if one.model in models]


def _read_tokens(given: list[str], said: list[str]) -> tuple[int, ...]:
    parts = [part for part in given[-1].split(",") if part] if given else []
    if all(part.isascii() and part.isdigit() and len(part) <= 4 for part in parts):
        return tuple(sorted({int(part) for part in parts}))
    said.append(f"tokens: must be positions such as 3,4, got {given[-1][:40]!r}. No token is corrupted.")
    return ()


@dataclass(frozen=True)
class LayersState:
    """The state of the page.

    `chat`: whether a language model reads the texts in its chat template. `threshold`: smallest importance of a drawn
    edge of the routes; None for the smallest that keeps the graph readable. `data`, `examples`: data set of head
    importance, and number of its examples.
    """

    model: str = option("reviews-minilm")
    text: str = option("The film was wonderful and I loved it.")
    corrupted: str = option("The film was terrible and I hated it.")
    has_pair: bool = option(False)
    pair: str = option("")
    corrupted_pair: str = option("")
    chat: bool = option(False)
    corruption: str = option("text", choices=tuple(CORRUPTIONS))
    tokens: tuple[int, ...] = option((), read=_read_tokens, write=join_values)
    site: str = option("residual", choices=tuple(SITES))
    metric: str = option("logit_difference", choices=tuple(METRICS))
    view: str = option("exact", choices=tuple(VIEWS))
    target: str | None = target_option()
    contrast: str | None = target_option()
    seed: int = seed_option()
    threshold: float | None = option(None, low=0, high=1, digits=4, fallback=USUAL)
    data: str = option("reviews")
    examples: int = option(20, low=1, high=1000, fallback=USUAL)
    opened: tuple[str, ...] = opened_option("routes", "heads", default=("routes",))

    @property
    def example(self) -> Example:
        """The input of the clean run. Errors: the second text is missing."""
        if self.chat and has_chat_template(self.model):
            return Prompt(self.text, chat=True)
        if self.has_pair and not self.pair.strip():
            raise UsageError("text_pair: is empty. Type the second text, or turn it off in Options.")
        return Example(self.text, self.pair if self.has_pair else None)

    @property
    def query(self) -> PatchQuery:
        """The query for the engine. Errors: there is no corrupted text, or no token to corrupt."""
        corrupted = self.corrupted if self.corruption == "text" else None
        example, tokens = self.example, () if self.corruption == "text" else self.tokens
        pair = self.corrupted_pair if self.corruption == "text" and example.text_pair is not None else None
        return PatchQuery(
            self.model, example, corrupted, self.corruption, tokens, self.site, self.metric, self.target,
            self.contrast, seed=self.seed, corrupted_pair=pair,
        )  # fmt: skip


SESSION = PageSession("layers", apart("layers"), ())
key = SESSION.key
OWN = (
    "text", "corrupted", "has_pair", "pair", "corrupted_pair", "chat", "corruption", "tokens", "site", "metric",
    "view", "target", "contrast", "seed", "threshold", "data", "examples",
)  # fmt: skip
"""Fields that have one control each, except the model."""


def load() -> tuple[LayersState, list[str]]:
    """Fill the widgets that have no value yet. Return the state of the last link and its errors."""
    link, fresh = SESSION.follow()
    errors: list[str] = []
    # A link without texts opens the first example.
    start = LayersState() if {"model", "text"} & link.keys() else _of_example(patch_examples()[0])
    state = read_record(start, link, errors)
    st.session_state.setdefault(SESSION.selection.key("model"), state.model)
    SESSION.fill(_values(state))
    return state, SESSION.tell(errors, fresh, lambda: write(state), state)


def write(state: LayersState) -> Query:
    """Return the link that reopens the state: model and texts, and other values that differ from their defaults."""
    texts = {name: [getattr(state, name)] for name in ("model", "text", "corrupted")}
    return texts | write_record(state, names=[name for name in (*OWN, "opened") if name not in texts])


def from_widgets(loaded: LayersState) -> LayersState:
    """Return the state that the controls show. Another model resets target, contrast and corrupted tokens."""
    state = SESSION.read_record("", loaded, OWN)
    model = str(SESSION.selection.value("model") or loaded.model).strip()
    if model != loaded.model:
        state = replace(state, target=None, contrast=None, tokens=())
    return replace(state, model=model, opened=SESSION.opened_sections(loaded))


def save(state: LayersState, loaded: LayersState) -> None:
    """Save the state and write its link to the address if it changed."""
    SESSION.remember(state, loaded, write)


def show_example(example: PatchExample) -> None:
    """Show an example (a callback)."""
    state = _of_example(example)
    SESSION.replace(_values(state))
    SESSION.selection.put("model", state.model)


def _of_example(one: PatchExample) -> LayersState:
    return LayersState(
        one.model, one.text, one.corrupted, has_pair=bool(one.pair), pair=one.pair, corrupted_pair=one.corrupted_pair,
        target=one.target, contrast=one.contrast,
    )  # fmt: skip


def _values(state: LayersState) -> dict[str, Any]:
    sections = {f"open.{name}": name in state.opened for name in sections_of(state)}
    return {**control_values("", state, OWN), **sections}
