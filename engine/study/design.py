"""Study designs: the organizer's decisions, with checks, JSON conversion and presets."""

from __future__ import annotations

import dataclasses
import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from engine.errors import UsageError, not_allowed, unknown
from engine.params import Plain, as_plain, from_mapping, option
from engine.registry import KINDS, explainer

PLACEBO = "random"
MIN_METHODS, MAX_METHODS = 2, 6
PLACES = string.ascii_uppercase
"""Names of the places of explanations on a ballot, in order."""
RANK, PREDICT, COUNTERFACTUAL, DECIDE = "rank", "predict", "counterfactual", "decide"
GUESSING = (PREDICT, COUNTERFACTUAL, DECIDE)
"""Modes in which people choose a class, with one explanation or none."""
MODES = (RANK, *GUESSING)
BY_RANK, BY_SIZE, BY_SIGN = "rank", "size", "sign"
COLORS = (BY_RANK, BY_SIZE, BY_SIGN)
CHOICES = ("seed", "filter", "hand")
JUDGED = ("any", "right", "wrong")
QUESTION = "Which explanation aligns the most with how you would explain a similar decision?"
"""SMaT's question (Fernandes et al., 2022, section 5.2)."""
CONSENT_PLACEHOLDERS = ("[your organization]", "[number of minutes]", "[name and email address]")
"""Parts of the default consent text that the organizer has to fill in."""
CONSENT = (
    "**Purpose.** This study examines how people judge explanations of a machine learning model. It is run by "
    "[your organization].\n\n"
    "**Duration.** It takes about [number of minutes] minutes. Participation is voluntary, and you can stop at any "
    "time.\n\n"
    "**Data.** Your answers and response times are stored under a generated pseudonym. Nothing else about you is "
    "collected.\n\n"
    "**Contact.** If you have questions, or want your answers deleted, write to [name and email address]."
)
INSTRUCTIONS = (
    "You see an input and a model's prediction for it. Below are several explanations of the prediction, unnamed and "
    "in shuffled order. Rank them from best to worst. Explanations that you find equally good may share a rank. If you "
    "have no preference, choose “Cannot tell”."
)
GUESS_QUESTION = "What does the model predict for this input?"
GUESS_INSTRUCTIONS = (
    "You see an input and, for some items, an explanation of a model's answer. Guess this answer, and rate how sure "
    "you are. The model may be wrong: guess its answer, not the correct one. If you have no idea, choose “Cannot tell”."
)
EDIT_QUESTION = "What does the model predict for the edited text?"
EDIT_INSTRUCTIONS = (
    "You see a text, a model's prediction for it and, for some items, an explanation of that prediction. One word of "
    "the text is then replaced or deleted. Guess what the model predicts for the edited text, and rate how sure you "
    "are. The prediction may stay the same or change. If you have no idea, choose “Cannot tell”."
)
DECIDE_QUESTION = "What is the correct answer?"
DECIDE_INSTRUCTIONS = (
    "You see an input, a model's answer and, for some items, an explanation of that answer. Decide which answer is "
    "correct, and rate how sure you are. The model may be wrong. If you have no idea, choose “Cannot tell”."
)
DEFAULT_TEXTS: Mapping[str, Mapping[str, str]] = {
    "question": {
        RANK: QUESTION, PREDICT: GUESS_QUESTION, COUNTERFACTUAL: EDIT_QUESTION, DECIDE: DECIDE_QUESTION
    },
    "instructions": {
        RANK: INSTRUCTIONS, PREDICT: GUESS_INSTRUCTIONS, COUNTERFACTUAL: EDIT_INSTRUCTIONS, DECIDE: DECIDE_INSTRUCTIONS
    },
}  # fmt: skip
"""Default texts for participants, by mode."""
TEXT_LIMITS = {
    "title": 200,
    "question": 1_000,
    "consent": 20_000,
    "instructions": 20_000,
    "model": 1_000,
    "dataset": 1_000,
}
"""Maximum characters of each text."""

FIELD_LABELS: Mapping[str, str] = {
    "title": "Title",
    "mode": "Task",
    "kind": "Type of items",
    "question": "Question",
    "model": "Model",
    "dataset": "Data set",
    "items": "Items",
    "items.how": "Selection",
    "items.count": "Number of items",
    "items.split": "Split",
    "items.label": "Class",
    "items.judged": "The model is",
    "items.least_words": "Minimum words",
    "items.most_words": "Maximum words",
    "items.indices": "Example numbers",
    "practice": "Practice items",
    "seed": "Seed",
    "methods": "Methods",
    "placebo": "Add a random explanation",
    "colors": "Colors show",
    "items_per_annotator": "Items per person",
    "repeats": "Repeated items",
    "votes_per_item": "Target votes per item",
    "closes_at": "Closes automatically",
    "consent": "Consent",
    "instructions": "Instructions",
    "exclusion": "Exclusion rules",
    "exclusion.least_seconds": "Minimum time per vote (s)",
    "exclusion.least_votes": "Minimum votes per person",
    "exclusion.most_cannot_tell": "Maximum share of “cannot tell”",
    "exclusion.least_consistency": "Minimum self-consistency",
}
"""The label of each field of a design, on the form and in errors."""
FIELD_PATH = re.compile(r"\b(?:parameter of )?design\.(\w+(?:\.\w+)*)")


@dataclass(frozen=True)
class ItemChoice:
    """How examples are chosen from the data set.

    seed: `count` random examples, drawn by the study's seed. filter: `count` random examples that meet the conditions.
    hand: `indices` in their order. Practice items are drawn in addition; in a hand-picked list they come first.
    """

    how: str = option(
        "seed", "Random items, random items that pass a filter, or the items that you list", choices=CHOICES
    )
    count: int = option(20, "Items whose votes count, without practice items", low=1, high=10_000)
    split: str | None = option(None, "Split of the data set, such as train; empty: the default split")
    label: str | None = option(None, "filter: only examples of this class")
    judged: str = option(
        "any", "filter: only examples that the model classifies correctly, or incorrectly", choices=JUDGED
    )
    least_words: int = option(0, "filter: skip texts with fewer words", low=0)
    most_words: int | None = option(None, "filter: skip texts with more words", low=1)
    indices: tuple[int, ...] = ()


@dataclass(frozen=True)
class MethodChoice:
    """A method and its parameters."""

    id: str
    params: Mapping[str, Plain] = field(default_factory=dict)


@dataclass(frozen=True)
class ExclusionRules:
    """Rules that exclude votes and annotators from the results, set before the study opens. 0 or None: no rule."""

    least_seconds: float = option(0.0, "Faster votes are excluded as careless", low=0)
    least_votes: int = option(0, "People who answered fewer items are excluded with all their votes", low=0)
    most_cannot_tell: float | None = option(
        None, "People who chose “cannot tell” more often, as a share of their answers, are excluded", low=0, high=1
    )
    least_consistency: float | None = option(
        None, "People whose two rankings of repeated items have a lower mean Kendall's tau are excluded", low=-1, high=1
    )


@dataclass(frozen=True)
class Design:
    """All decisions made before a study opens. Texts are Markdown; `closes_at`: seconds since 1970 (UTC).

    `mode`: in "rank", people rank explanations. In the other modes they choose a class, with one explanation or none.
    "predict": they guess the model's prediction, which is hidden (forward simulation). "counterfactual": they see the
    prediction for a text and guess the prediction for an edited text (counterfactual simulation; Doshi-Velez and Kim,
    2017, Towards a rigorous science of interpretable machine learning). "decide": they see the prediction and choose
    the correct class.

    `colors`: "rank" shows only the order of the parts by absolute score, so that all explanations on a ballot share one
    set of colors. "size" shows shares of the largest absolute score, and "sign" adds the sign. Sizes and signs can
    reveal a method or the placebo.
    """

    title: str = ""
    question: str = QUESTION
    consent: str = CONSENT
    instructions: str = INSTRUCTIONS
    model: str = ""
    dataset: str = ""
    mode: str = option(
        "rank",
        "Rank explanations, guess hidden predictions, guess predictions for edited texts, or decide what is correct",
        choices=MODES,
    )
    kind: str = option("text", "Model, data set and methods depend on it", choices=KINDS)
    items: ItemChoice = ItemChoice()
    methods: tuple[MethodChoice, ...] = ()
    placebo: bool = option(True, "Add a random explanation")
    colors: str = option(BY_RANK, "Ranks hide sizes and signs of scores, which can reveal a method", choices=COLORS)
    practice: int = option(2, "Shown first; their votes are not counted", low=0, high=20)
    repeats: int = option(2, "Items shown to each person a second time, to measure self-consistency", low=0, high=1_000)
    items_per_annotator: int = option(
        20,
        "Each person gets a random subset of the study's items, without practice and repeated items",
        low=1,
        high=10_000,
    )
    votes_per_item: int | None = option(
        None, "An item with this many votes is no longer shown; for guesses, this many per condition", low=1
    )
    closes_at: float | None = option(None, "The time at which the study closes automatically", low=0)
    exclusion: ExclusionRules = ExclusionRules()
    seed: int = option(0, "Determines random items and random explanations", low=0, high=2**31 - 1)

    @property
    def guessing(self) -> bool:
        """Whether people choose a class."""
        return self.mode in GUESSING

    @property
    def ballot_methods(self) -> tuple[MethodChoice, ...]:
        """The methods on a ballot, the placebo last. A method is identified by its index in this tuple everywhere."""
        return (*self.methods, MethodChoice(PLACEBO)) if self.placebo else self.methods

    @property
    def item_count(self) -> int:
        """Number of items, without practice items."""
        return len(self.items.indices) - self.practice if self.items.how == "hand" else self.items.count

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON values, which are stored and exported."""
        values = dataclasses.asdict(self)
        values["items"]["indices"] = list(self.items.indices)
        values["methods"] = [{"id": method.id, "params": dict(method.params)} for method in self.methods]
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Design:
        """Parse a design written by `to_json` or by hand. Errors: an unknown name, or a value that is not allowed."""
        names = [each.name for each in dataclasses.fields(Design)]
        for name in values:
            if name not in names:
                raise unknown("design", name, names)
        parsed = {name: parse(values[name]) for name, parse in _PARSERS.items() if name in values}
        options = {name: value for name, value in values.items() if name not in _PARSERS}
        return dataclasses.replace(from_mapping(Design, options, "design"), **parsed)


def check_design(design: Design) -> Design:
    """Check a design and fill in all method parameters, so that later changes of defaults have no effect.

    Default texts of other modes are replaced by those of the design's mode. The model and the data set are not read.
    Errors: an empty text, or inconsistent values.
    """
    design = apply_default_texts(Design.from_json(design.to_json()))
    for name in ("title", "question", "model", "dataset"):
        if not getattr(design, name).strip():
            raise UsageError(f"design.{name} is empty. Give one.")
    _check_items(design)
    least = design.exclusion.least_consistency
    if design.guessing and least is not None:
        raise not_allowed("design.exclusion.least_consistency", "empty in a study of guesses", least)
    if design.mode == COUNTERFACTUAL and design.kind != "text":
        raise not_allowed("design.mode", "rank, predict or decide for pictures", design.mode, "Only texts are edited.")
    return dataclasses.replace(design, methods=_check_methods(design))


def check_available(design: Design) -> None:
    """Refuse methods that are not available for the model, such as an untrained explainer. Loads nothing."""
    for method in design.methods:
        explainer(method.id, design.kind).resolve(method.params, design.model)


def apply_default_texts(design: Design) -> Design:
    """Replace default texts of other modes with those of the design's mode."""
    texts: dict[str, Any] = {
        name: defaults[design.mode]
        for name, defaults in DEFAULT_TEXTS.items()
        if getattr(design, name) in defaults.values()
    }
    return dataclasses.replace(design, **texts)


def field_label(path: str) -> str:
    """Return the label of a field on the form, or of the section that contains it."""
    return FIELD_LABELS.get(path) or FIELD_LABELS.get(path.partition(".")[0], path)


def label_fields(message: str, label: Callable[[str], str] = field_label) -> str:
    """Replace field paths in an error, such as design.items.count, with their labels."""
    return FIELD_PATH.sub(lambda match: label(match[1]), message)


def consent_placeholders(consent: str) -> list[str]:
    """Return the placeholders of the default consent text that are not filled in yet."""
    return [placeholder for placeholder in CONSENT_PLACEHOLDERS if placeholder in consent]


def _check_items(design: Design) -> None:
    items = design.items
    if items.how == "hand" and len(items.indices) <= design.practice:
        raise UsageError(
            f"design.items.indices: must list more than the {design.practice} practice items, which come first, got "
            f"{len(items.indices)}. List more, or use fewer practice items."
        )
    if items.how == "filter" and items.most_words is not None and items.most_words < items.least_words:
        raise not_allowed("design.items.most_words", f"at least the minimum ({items.least_words})", items.most_words)
    if design.items_per_annotator > design.item_count:
        allowed = f"at most the study's {design.item_count} items"
        raise not_allowed("design.items_per_annotator", allowed, design.items_per_annotator)
    if design.repeats >= design.items_per_annotator:
        allowed = f"less than the items per person ({design.items_per_annotator})"
        raise not_allowed("design.repeats", allowed, design.repeats)


def _check_methods(design: Design) -> tuple[MethodChoice, ...]:
    if not MIN_METHODS <= len(design.methods) <= MAX_METHODS:
        allowed = f"{MIN_METHODS} to {MAX_METHODS} methods"
        got = ", ".join(method.id for method in design.methods) or "none"
        raise UsageError(f"design.methods: must be {allowed}, got {got}. The placebo does not count.")
    methods: list[MethodChoice] = []
    for choice in design.methods:
        method = explainer(choice.id, design.kind)
        methods.append(MethodChoice(method.id, as_plain(from_mapping(method.params, choice.params, method.id))))
    for place, choice in enumerate(methods):
        if choice in methods[:place]:
            raise UsageError(
                f"design.methods: {choice.id} is listed twice with the same parameters. Remove one of them."
            )
        if design.placebo and choice.id == PLACEBO:
            raise UsageError(f"design.methods: {PLACEBO} is the placebo already. Remove it, or turn the placebo off.")
    return tuple(methods)


def _parse_items(value: object) -> ItemChoice:
    values = _parse_mapping("design.items", value)
    indices = _parse_list("design.items.indices", values.pop("indices", ()))
    if any(type(index) is not int or index < 0 for index in indices) or len(set(indices)) < len(indices):
        raise not_allowed("design.items.indices", "different whole numbers of at least 0", indices)
    label = values.pop("label", None)  # parsed here: a class may be called none
    if label is not None and not isinstance(label, str):
        raise not_allowed("design.items.label", "the name of a class, or none", label)
    choice = from_mapping(ItemChoice, values, "design.items")
    return dataclasses.replace(choice, label=label, indices=tuple(indices))


def _parse_methods(value: object) -> tuple[MethodChoice, ...]:
    return tuple(map(_parse_method, _parse_list("design.methods", value)))


def _parse_method(value: object) -> MethodChoice:
    values = _parse_mapping("design.methods", value)
    if not {"id"} <= values.keys() <= {"id", "params"} or not isinstance(values["id"], str):
        raise not_allowed("design.methods", 'a list of {"id": ..., "params"?: {...}}', value)
    params = _parse_mapping("design.methods.params", values.get("params", {}))
    for name, param in params.items():
        if not isinstance(param, bool | int | float | str | None):
            raise not_allowed(f"design.methods.params.{name}", "a text, a number, true, false or none", param)
    return MethodChoice(values["id"], params)


def _parse_exclusion(value: object) -> ExclusionRules:
    return from_mapping(ExclusionRules, _parse_mapping("design.exclusion", value), "design.exclusion")


def _parse_text(name: str, limit: int, value: object) -> str:
    if not isinstance(value, str) or len(value) > limit:
        got = f"{len(value):,} characters" if isinstance(value, str) else value
        raise not_allowed(f"design.{name}", f"a text of at most {limit:,} characters", got)
    return value


def _parse_mapping(where: str, value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise not_allowed(where, "an object with named values", value)
    return dict(value)


def _parse_list(where: str, value: object) -> list[Any]:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise not_allowed(where, "a list", value)
    return list(value)


_PARSERS: dict[str, Callable[[object], Any]] = {
    "items": _parse_items,
    "methods": _parse_methods,
    "exclusion": _parse_exclusion,
    **{name: partial(_parse_text, name, limit) for name, limit in TEXT_LIMITS.items()},
}


@dataclass(frozen=True)
class StudyPreset:
    """A design to start from.

    `design`: function of model, data set and kind of input that creates it. `note`: function of model and kind of input
    that describes the differences from the source.
    """

    title: str
    note: Callable[[str, str], str]
    design: Callable[[str, str, str], Design]


def find_preset(name: str) -> StudyPreset:
    """Return the preset with this name. Errors: unknown names; the message lists the known ones."""
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    return PRESETS[name]


SMAT_METHODS = ("gradient_x_input", "integrated_gradients", "attention_mean", "smat")
"""The methods in table 4 of SMaT, the worst first."""
STAND_IN = "attention_logits"
"""The method that replaces the learned explainer if the model has none."""
SMAT_STEPS = 50
_SMAT_NOTE = (
    "A random placebo and two repeated items are added. Unlike in SMaT, gradients do not pass through a softmax, and "
    "each item has its own random order."
)


def smat_methods(model: str, kind: str) -> tuple[str, ...]:
    """Return the four methods. `STAND_IN`, where SMaT's training starts, replaces a missing learned explainer."""
    return SMAT_METHODS if _has_learned_explainer(model, kind) else (*SMAT_METHODS[:-1], STAND_IN)


def _has_learned_explainer(model: str, kind: str) -> bool:
    return not explainer(SMAT_METHODS[-1], kind).why_not(model)


def _smat_note(model: str, kind: str) -> str:
    if _has_learned_explainer(model, kind):
        return f"The fourth method is the learned explainer of {model}. {_SMAT_NOTE}"
    return (
        "The model has no learned explainer, so attention logits of all layers replace it: the same formula, with the "
        f"equal weights from which SMaT starts to learn. {_SMAT_NOTE}"
    )


def _smat_design(model: str, dataset: str, kind: str) -> Design:
    """Create a design with the methods that three volunteers ranked in SMaT.

    Source: Fernandes et al. (2022), section 5.2 and appendices A and B.
    """
    params: dict[str, dict[str, str | int]] = {"integrated_gradients": {"steps": "fixed", "n_steps": SMAT_STEPS}}
    methods = tuple(MethodChoice(id, params.get(id, {})) for id in smat_methods(model, kind))
    title = "Which explanations do people find plausible?"
    return Design(title, QUESTION, model=model, dataset=dataset, kind=kind, methods=methods)


PRESETS: Mapping[str, StudyPreset] = {"smat": StudyPreset("SMaT's four methods", _smat_note, _smat_design)}
