"""What an organiser decides: a study's design, checked, and as plain JSON both ways."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.errors import UsageError, not_allowed, unknown
from engine.params import Plain, as_plain, from_mapping, option
from engine.registry import KINDS, explainer

PLACEBO = "random"
FEWEST_METHODS, MOST_METHODS = 2, 6
RANK, PREDICT = "rank", "predict"
MODES = (RANK, PREDICT)
BY_RANK, BY_SIZE, BY_SIGN = "rank", "size", "sign"
COLORS = (BY_RANK, BY_SIZE, BY_SIGN)
CHOICES = ("seed", "filter", "hand")
JUDGED = ("any", "right", "wrong")
QUESTION = "Which explanation aligns the most with how you would explain a similar decision?"
"""SMaT's question (Fernandes et al., 2022, section 5.2)."""
CONSENT = (
    "Taking part is voluntary, and you can stop at any time. Your answers and how long they took are kept under a "
    "pseudonym drawn by chance; nothing else about you is asked or kept."
)
INSTRUCTIONS = (
    "You see an input and what a model says of it. Below are explanations of the model's answer without names, in an "
    "order drawn by chance. Rank them: the best first; those that you find equally good may share a rank. If you "
    "cannot tell, say so."
)
GUESS_QUESTION = "What does the model say of this input?"
GUESS_INSTRUCTIONS = (
    "You see an input, and sometimes an explanation of what a model said of it. Guess what it said, and tell how sure "
    "you are. The model may be wrong: guess its answer, not the right one. If you cannot tell, say so."
)
USUAL_TEXTS: Mapping[str, Mapping[str, str]] = {
    "question": {RANK: QUESTION, PREDICT: GUESS_QUESTION},
    "instructions": {RANK: INSTRUCTIONS, PREDICT: GUESS_INSTRUCTIONS},
}
"""What people read where the organiser writes nothing of their own, by what they do."""


@dataclass(frozen=True)
class ItemChoice:
    """Which examples of the data set are shown.

    seed: `count` drawn by the study's seed. filter: the same of those that meet the conditions. hand: `indices` in
    their order. Practice items come on top; of a hand-picked list they are the first.
    """

    how: str = option("seed", "How items are chosen", choices=CHOICES)
    count: int = option(20, "How many items, practice items not counted", low=1, high=10_000)
    split: str | None = option(None, "The part of the data set; none: the one that the data set is usually read from")
    label: str | None = option(None, "filter: only examples of the class of this name")
    judged: str = option("any", "filter: only examples that the model gets right, or wrong", choices=JUDGED)
    least_words: int = option(0, "filter: only texts of at least so many words", low=0)
    most_words: int | None = option(None, "filter: only texts of at most so many words", low=1)
    indices: tuple[int, ...] = ()


@dataclass(frozen=True)
class MethodChoice:
    """A method and its parameters."""

    id: str
    params: Mapping[str, Plain] = field(default_factory=dict)


@dataclass(frozen=True)
class ExclusionRules:
    """Which votes and annotators the results leave out, declared before the study opens. 0 and none: none."""

    least_seconds: float = option(0.0, "A vote made in less time is left out, in seconds", low=0)
    least_votes: int = option(0, "Who gave fewer votes is left out", low=0)
    most_cannot_tell: float | None = option(None, "Who could not tell in a larger share is left out", low=0, high=1)
    least_consistency: float | None = option(
        None, "Who ranks repeated items with a smaller mean Kendall's tau is left out", low=-1, high=1
    )


@dataclass(frozen=True)
class Design:
    """All that is decided before a study opens. Texts are Markdown; `closes_at` is in seconds since 1970 (UTC).

    mode "rank": explanations are ranked; "predict": people guess the model's answer with and without one. `colors`:
    "rank": the order of the parts by size alone, so that all explanations of a ballot share one set of colors; "size":
    sizes as shares of the largest; "sign": the same with the sign. Sizes and signs can tell a method, and the placebo.
    """

    title: str = ""
    question: str = QUESTION
    consent: str = CONSENT
    instructions: str = INSTRUCTIONS
    model: str = ""
    dataset: str = ""
    mode: str = option("rank", "What people do", choices=MODES)
    kind: str = option("text", "What the items are", choices=KINDS)
    items: ItemChoice = ItemChoice()
    methods: tuple[MethodChoice, ...] = ()
    placebo: bool = option(True, "A random explanation is mixed in")
    colors: str = option(BY_RANK, "What the colors of an explanation show", choices=COLORS)
    practice: int = option(2, "Practice items, which do not count", low=0, high=20)
    repeats: int = option(2, "Items that a person sees twice", low=0, high=1_000)
    items_per_annotator: int = option(20, "Items that a person sees", low=1, high=10_000)
    votes_per_item: int | None = option(
        None, "An item with so many votes is given to nobody else; of guesses, so many in each condition", low=1
    )
    closes_at: float | None = option(None, "When the study closes by itself", low=0)
    exclusion: ExclusionRules = ExclusionRules()
    seed: int = option(0, "Draws the items and the random explanations", low=0, high=2**31 - 1)

    @property
    def shown(self) -> tuple[MethodChoice, ...]:
        """The methods that are shown, the placebo last. Places in this list stand for them everywhere."""
        return (*self.methods, MethodChoice(PLACEBO)) if self.placebo else self.methods

    def as_plain(self) -> dict[str, Any]:
        """Dicts, lists, texts, numbers, true and false, and none: what is stored and exported."""
        plain = dataclasses.asdict(self)
        plain["items"]["indices"] = list(self.items.indices)
        plain["methods"] = [{"id": method.id, "params": dict(method.params)} for method in self.methods]
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Design:
        """The design that `as_plain` wrote, or that a person did. Errors name what is unknown or of no use."""
        for name in plain:
            if name not in _FIELDS:
                raise unknown("design", name, _FIELDS)
        numbers = {name: value for name, value in plain.items() if name not in (*_LIMITS, *_PARTS)}
        made = {name: read(plain[name]) for name, read in _PARTS.items() if name in plain}
        texts = {name: _text(name, plain[name]) for name in _LIMITS if name in plain}
        return dataclasses.replace(from_mapping(Design, numbers, "design"), **texts, **made)


def check(design: Design) -> Design:
    """The same design with every parameter of its methods filled in, so that later defaults change nothing.

    Usual texts are those of its mode. Reads neither the model nor the data set. Errors: what does not go together,
    with what would.
    """
    design = with_usual_texts(Design.from_plain(design.as_plain()))
    for name in ("title", "question", "model", "dataset"):
        if not getattr(design, name).strip():
            raise UsageError(f"design.{name}: must not be empty. Write it.")
    _check_items(design)
    if design.mode == PREDICT and design.exclusion.least_consistency is not None:
        asked = design.exclusion.least_consistency
        raise not_allowed("design.exclusion.least_consistency", "none where people guess: it is of rankings", asked)
    return dataclasses.replace(design, methods=_checked_methods(design))


def check_served(design: Design) -> None:
    """Refuses a method that the model has not: a learned explainer, where none was learned. Loads nothing."""
    for method in design.methods:
        explainer(method.id, design.kind).settled(method.params, design.model)


def with_usual_texts(design: Design) -> Design:
    """The same design; where it has the usual text of another mode, nobody wrote it, and it gets that of its own."""
    changed: dict[str, Any] = {
        name: usual[design.mode] for name, usual in USUAL_TEXTS.items() if getattr(design, name) in usual.values()
    }
    return dataclasses.replace(design, **changed)


def _check_items(design: Design) -> None:
    items = design.items
    if items.how == "hand" and len(items.indices) <= design.practice:
        raise UsageError(
            f"design.items.indices: must name more than the {design.practice} practice items, which come first, got "
            f"{len(items.indices)}. Name more, or take fewer practice items."
        )
    if items.how == "filter" and items.most_words is not None and items.most_words < items.least_words:
        raise not_allowed("design.items.most_words", f"at least least_words ({items.least_words})", items.most_words)
    there = counted_items(design)
    if design.items_per_annotator > there:
        raise not_allowed(
            "design.items_per_annotator", f"at most the study's {there} items", design.items_per_annotator
        )
    if design.repeats >= design.items_per_annotator:
        allowed = f"less than items_per_annotator ({design.items_per_annotator})"
        raise not_allowed("design.repeats", allowed, design.repeats, "Something must lie between two looks.")


def counted_items(design: Design) -> int:
    """How many items the study has, practice items not counted."""
    return len(design.items.indices) - design.practice if design.items.how == "hand" else design.items.count


def _checked_methods(design: Design) -> tuple[MethodChoice, ...]:
    if not FEWEST_METHODS <= len(design.methods) <= MOST_METHODS:
        allowed = f"{FEWEST_METHODS} to {MOST_METHODS} methods"
        got = ", ".join(method.id for method in design.methods) or "none"
        raise UsageError(f"design.methods: must be {allowed}, got {got}. The placebo is not counted.")
    filled = [_filled(method, design.kind) for method in design.methods]
    for place, method in enumerate(filled):
        if method in filled[:place]:
            raise UsageError(f"design.methods: {method.id} is there twice with the same parameters. Leave one out.")
        if design.placebo and method.id == PLACEBO:
            raise UsageError(f"design.methods: {PLACEBO} is the placebo already. Leave it out, or the placebo.")
    return tuple(filled)


def _filled(method: MethodChoice, kind: str) -> MethodChoice:
    known = explainer(method.id, kind)
    return MethodChoice(known.id, as_plain(from_mapping(known.params, method.params, known.id)))


def _items(given: object) -> ItemChoice:
    values = _mapping("design.items", given)
    indices = _list("design.items.indices", values.pop("indices", ()))
    if any(type(index) is not int or index < 0 for index in indices) or len(set(indices)) < len(indices):
        raise not_allowed("design.items.indices", "different whole numbers of at least 0", indices)
    label = values.pop("label", None)  # by itself: a class may be called none
    if label is not None and not isinstance(label, str):
        raise not_allowed("design.items.label", "the name of a class, or none", label)
    rest = from_mapping(ItemChoice, values, "design.items")
    return dataclasses.replace(rest, label=label, indices=tuple(indices))


def _methods(given: object) -> tuple[MethodChoice, ...]:
    return tuple(_method(one) for one in _list("design.methods", given))


def _method(given: object) -> MethodChoice:
    values = _mapping("design.methods", given)
    if not {"id"} <= values.keys() <= {"id", "params"} or not isinstance(values["id"], str):
        raise not_allowed("design.methods", 'a list of {"id": ..., "params"?: {...}}', given)
    params = _mapping("design.methods.params", values.get("params", {}))
    for name, value in params.items():
        if not isinstance(value, bool | int | float | str | None):
            raise not_allowed(f"design.methods.params.{name}", "a text, a number, true, false or none", value)
    return MethodChoice(values["id"], params)


def _exclusion(given: object) -> ExclusionRules:
    return from_mapping(ExclusionRules, _mapping("design.exclusion", given), "design.exclusion")


def _text(name: str, given: object) -> str:
    limit = _LIMITS[name]
    if not isinstance(given, str) or len(given) > limit:
        got = f"{len(given):,} characters" if isinstance(given, str) else given
        raise not_allowed(f"design.{name}", f"a text of at most {limit:,} characters", got)
    return given


def _mapping(where: str, given: object) -> dict[str, Any]:
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise not_allowed(where, "names with values", given)
    return dict(given)


def _list(where: str, given: object) -> list[Any]:
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise not_allowed(where, "a list", given)
    return list(given)


_FIELDS = tuple(each.name for each in dataclasses.fields(Design))
_LIMITS = {
    "title": 200,
    "question": 1_000,
    "consent": 20_000,
    "instructions": 20_000,
    "model": 1_000,
    "dataset": 1_000,
}
"""The texts, and how many characters each may have."""
_PARTS = {"items": _items, "methods": _methods, "exclusion": _exclusion}
