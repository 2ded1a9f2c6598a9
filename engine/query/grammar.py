"""The grammar of questions, read from `grammar.toml`: operations with their slots, forms, and the words of each form.

A sentence fits a form when it has a word of each class that the form requires, when each of its other words is a filler
or of a class that the operation allows, and when each name in it fills a slot of the operation. A sentence with an
unexplained word is not understood, because the word may change the meaning: "least", "not", "without". If several
operations fit, the one with the highest tier is chosen; if several have that tier, none is.

Based on Slack et al., 2023, Explaining machine learning models with interactive natural language conversations using
TalkToModel, with a table in place of their language model.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

THIS = "this"
"""The example that the page shows."""


@dataclass(frozen=True)
class ParsedQuery:
    """The meaning of a sentence: an operation and its slots; a slot that the sentence leaves out is empty.

    `example`: the index in the data set, from 0, or `THIS`. `text`, `text_pair`: quoted texts in place of an example.
    `word`, `replacement`: the word to remove or replace. `target`: the label of a class. `layer`, `head`: from 0.
    `token`, `contrast`: the next token of a prompt, and the one that it is compared with. `chat`: whether the prompt is
    in the chat template of the model; only set by a page.
    """

    operation: str
    methods: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    dataset: str | None = None
    example: int | str | None = None
    text: str | None = None
    text_pair: str | None = None
    target: str | None = None
    count: int | None = None
    word: str | None = None
    replacement: str | None = None
    layer: int | None = None
    head: int | None = None
    token: str | None = None
    contrast: str | None = None
    chat: bool | None = None

    def slots(self) -> dict[str, object]:
        """The slots that the sentence fills, by name."""
        values = {name: value for name, value in vars(self).items() if name != "operation"}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items() if v is not None and v != ()}


@dataclass(frozen=True)
class QueryForm:
    """A form of questions: a word of each class in `words`, none of those in `without`, and `least` names per slot."""

    words: frozenset[str]
    least: Mapping[str, int]
    without: frozenset[str]


@dataclass(frozen=True)
class QueryOperation:
    """An operation that questions can ask for. `title`: a noun phrase. `slots`: slots that a question may fill.

    `most`: maximum number of names per slot, 1 by default. `least`: alternatives for the minimum number of names per
    slot. `allows`: classes of words that are allowed in addition to those of a form. `forms`: alternatives, one of
    which a question must fit. `templates`: templates of sentences, the first one for any query. `tier`: if several
    operations fit, the one with the highest tier is chosen.
    """

    title: str
    tier: int
    slots: frozenset[str]
    allows: frozenset[str]
    most: Mapping[str, int]
    least: tuple[Mapping[str, int], ...]
    forms: tuple[QueryForm, ...]
    templates: tuple[str, ...]


@dataclass(frozen=True)
class QueryRefusal:
    """A pattern of sentences, with marks in place of names, whose meaning differs from that of the operations."""

    operations: frozenset[str]
    pattern: re.Pattern[str]
    reason: str


def _read_refusal(plain: Mapping[str, str]) -> QueryRefusal:
    pattern = re.sub(r"\{([a-z]+)\}", lambda match: "|".join(sorted(CLASSES[match[1]])), plain["pattern"])
    return QueryRefusal(
        frozenset(plain["operations"].split()), re.compile(rf"(?<![\w<])(?:{pattern})(?!\w)"), plain["reason"]
    )


def _read_operation(plain: Mapping[str, Any]) -> QueryOperation:
    forms = tuple(map(_read_form, plain["forms"]))
    allows = frozenset(f"{GRAMMAR['soft']} {plain['allows']}".split()) - set(plain.get("bars", "").split())
    return QueryOperation(
        plain["title"],
        plain["tier"],
        frozenset(plain["slots"].split()),
        allows,
        plain.get("most", {}),
        tuple(plain.get("least", ({},))),
        forms,
        tuple(re.sub(r"<(\w+)>", lambda match: GRAMMAR["places"][match[1]], one) for one in plain["templates"]),
    )


def _read_form(plain: str) -> QueryForm:
    parts = plain.split()
    least = [part[1:].partition(":") for part in parts if part.startswith("+")]
    return QueryForm(
        frozenset(part for part in parts if part.isalpha()),
        {slot: int(number or 1) for slot, _, number in least},
        frozenset(part[1:] for part in parts if part.startswith("-")),
    )


GRAMMAR: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("grammar.toml").read_text(encoding="utf-8"))
OPERATIONS: Mapping[str, QueryOperation] = {id: _read_operation(own) for id, own in GRAMMAR["operations"].items()}
"""The operations by id, in the order in which they are listed."""
FILLERS = frozenset(GRAMMAR["words"]["fillers"].split())
"""Words that do not change the meaning."""
CLASSES: Mapping[str, frozenset[str]] = {
    name: frozenset(words.split()) for name, words in GRAMMAR["words"]["classes"].items()
}
"""The words of each class; a word may be in several."""
CLASSES_OF: Mapping[str, frozenset[str]] = {
    word: frozenset(name for name, words in CLASSES.items() if word in words)
    for word in frozenset().union(*CLASSES.values())
}
"""The classes of a word."""
REFUSALS = tuple(map(_read_refusal, GRAMMAR["refusals"]))
PHRASES: tuple[tuple[str, str], ...] = tuple((pattern, word) for pattern, word in GRAMMAR["phrases"])
"""Phrases that count as one word: patterns, and the word that replaces them."""

WORD = r"(?:the )?(?:word |words |token |term |phrase )?"
_X = r"(?P<word>«\d+»|[^\W_]+(?:['’-][^\W_]+)*)"
_Y = r"(?P<replacement>«\d+»|[^\W_]+(?:['’-][^\W_]+)*)"
_BE = r"(?:is|are|was|were|be|gets|got|get|being|has been|had been|have been)"
_GONE = (
    r"(?:removed|deleted|dropped|omitted|erased|cut|struck|excluded|masked|missing|gone|absent|left out|taken out|"
    r"hidden|ignored|skipped|blanked out|wiped out|"
    r"taken away|cut out|struck out|no longer there|not there|disappear(?:s|ed)?|vanish(?:es|ed)?)"
)
_REMOVE = (
    r"(?:remov(?:e|es|ing|ed)|the removal of|delet(?:e|es|ing|ed)|the deletion of|drop(?:s|ping|ped)?|"
    r"omit(?:s|ting|ted)?|eras(?:e|es|ing|ed)|cut(?:s|ting)?(?: out)?|strik(?:e|es|ing)(?: out)?|"
    r"exclud(?:e|es|ing|ed)|mask(?:s|ing|ed)?(?: out)?|leav(?:e|es|ing) out|left out|tak(?:e|es|ing) (?:out|away)|"
    r"took(?: out)?|"
    r"get(?:s|ting)? rid of|los(?:e|es|ing)|without|minus|removal of|deletion of|hid(?:e|es|ing)|ignor(?:e|es|ing|ed)|"
    r"skip(?:s|ping|ped)?|blank(?:s|ing|ed)? out|wip(?:e|es|ing|ed) out)"
)
_BY = r"(?:by|with|to|into|for|through|w/)"
_SWAP = r"(?:replac(?:e|es|ing|ed)|swap(?:s|ping|ped)?(?: out)?|exchang(?:e|es|ing|ed)|substitut(?:e|es|ing|ed))"
_TURN = r"(?:chang(?:e|es|ing|ed)|turn(?:s|ing|ed)?|switch(?:es|ing|ed)?|rewrit(?:e|es|ing)|edit(?:s|ing|ed)?)"
_SWAPPED = r"(?:replaced|swapped(?: out)?|exchanged|substituted|changed|turned|switched|rewritten|edited|swapped out)"
EDITS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (operation, re.compile(rf"(?<![\w«]){pattern}(?![\w»])", re.IGNORECASE))
    for operation, pattern in (
        ("replace", rf"substitut(?:e|es|ing|ed) {WORD}{_Y} for {WORD}{_X}"),
        ("replace", rf"{_Y} (?:is |was |were )?substituted for {WORD}{_X}"),
        ("replace", rf"if {WORD}(?P<word>«\d+») (?:was|were|is|had been) {WORD}(?P<replacement>«\d+»)"),
        ("replace", rf"{WORD}{_Y} (?:instead|in place) of {WORD}{_X}"),
        (
            "replace",
            rf"instead of {WORD}{_X},? (?:it |the text |the review )?(?:said |says |had |has |we had )?{WORD}{_Y}",
        ),
        ("replace", rf"{WORD}{_Y} rather than {WORD}{_X}"),
        ("replace", r"(?P<replacement>«\d+»),? (?:and |but )?not (?P<word>«\d+»)"),
        ("replace", rf"{_Y} as (?:a |the )?(?:replacement|substitute) for {WORD}{_X}"),
        (
            "replace",
            rf"(?:put|use|write|insert|say|said|had)s? {WORD}{_Y} (?:where it sa(?:ys|id)|in for|for) {WORD}{_X}",
        ),
        ("replace", rf"(?:from )?{WORD}{_X} ?(?:->|→|=>|-->) ?{WORD}{_Y}"),
        ("replace", rf"from {WORD}{_X} to {WORD}{_Y}"),
        ("replace", rf"{_SWAP} {WORD}{_X} (?:by|with|w/|for|to|into) {WORD}{_Y}"),
        ("replace", rf"{_TURN} {WORD}{_X} (?:to|into|for|with|as) {WORD}{_Y}"),
        ("replace", r"(?P<word>«\d+»),? (?:to|into|by|with) (?P<replacement>«\d+»)"),
        ("replace", r"make (?P<word>«\d+»),? (?P<replacement>«\d+»)"),
        ("replace", rf"{WORD}{_X} {_BE} (?:instead )?{_SWAPPED} {_BY} {WORD}{_Y}"),
        ("replace", rf"{_SWAPPED} {WORD}{_X} {_BY} {WORD}{_Y}"),
        ("replace", rf"{WORD}{_X} (?:becomes?|became|turns into|turned into|changes to|changed to) {WORD}{_Y}"),
        ("delete", rf"(?:leav(?:e|es|ing)|tak(?:e|es|ing)|cut(?:s|ting)?|left) {WORD}{_X} (?:out|away)"),
        (
            "delete",
            rf"{WORD}{_X} (?:was|were|is|had) ?(?:not|n't|n’t|nt) (?:been )?(?:there|present|included|in it|in)",
        ),
        ("delete", rf"(?:did|does|do|had|has)(?: not|n't|n’t|nt) (?:have|contain|include|say|mention|use) {WORD}{_X}"),
        ("delete", rf"(?:there (?:was|were|is) no|had no|has no) {WORD}{_X}"),
        ("delete", rf"{WORD}{_X} {_BE} {_GONE}"),
        ("delete", rf"(?:the word|with|has|have|had|get) {WORD}{_X} {_GONE}"),
        ("delete", rf"{WORD}{_X} (?:disappear(?:s|ed)?|vanish(?:es|ed)?)"),
        ("delete", rf"{_REMOVE} {WORD}{_X}"),
    )
)
"""Phrases that remove or replace a word, quoted or not, the most specific first."""

_TOKEN, _CONTRAST = r"(?:the )?(?:word |token )?(?P<token>«\d+»)", r"(?:the )?(?:word |token )?(?P<contrast>«\d+»)"
_RATHER = (
    r",? (?:rather than|instead of|in place of|and not|but not|not|over|(?:is |be )?(?:more likely|likelier) than)"
)
_NEXT = r"(?:next|following|coming) (?:token|word)"
_SAY = r"(?:says?|said|writes?|wrote|continues? with|goes? on with|generates?|outputs?)"
TOKENS: tuple[re.Pattern[str], ...] = tuple(
    re.compile(rf"(?<![\w«]){pattern}(?![\w»])", re.IGNORECASE)
    for pattern in (
        rf"(?:{_NEXT} (?:(?:is|to|be|become|being|as|of) )*|{_SAY} )?{_TOKEN}{_RATHER} {_CONTRAST}(?: after(?= «))?",
        rf"{_SAY} (?P<token>[^\W\d_]+) (?:rather than|instead of) (?P<contrast>[^\W\d_]+) after(?= «)",
        rf"{_NEXT} (?:(?:is|to|be|become|being|as|of) )*{_TOKEN}",
        rf"(?:{_SAY} |(?<=decides )(?:on )?){_TOKEN}",
        rf"{_TOKEN} (?:(?:is|be|as|comes?|come|becomes?|the) )*(?:{_NEXT}|next)",
    )
)
"""Phrases that name a next token and its contrast. They must be quoted, unless both come before "after"."""
NO_WORD = frozenset(word for word in FILLERS if not word.endswith("ly")).union(
    ("all", "any", "every", "each", "some", "my", "your", "our", "their", "same", "if", "til", "until", "without"),
    ("before", "after", "while"),
    ("nothing", "something", "anything", "everything"),
    ("changing", "altering", "affecting", "knowing"),
    ("last", "next", "half", "most", "rest", "punctuation", "negation", "negations", "stopword", "stopwords", "stop"),
    ("adjective", "adjectives", "adverb", "adverbs", "noun", "nouns", "verb", "verbs", "pronoun", "pronouns"),
    ("article", "articles", "name", "names", "number", "numbers", "beginning", "start", "end", "ending", "paragraph"),
    GRAMMAR["names"]["ordinals"].split(),
    *(CLASSES[name] for name in ("word", "example", "examples", "data", "model", "method", "map", "predict", "class",
                                 "score", "weights", "heads", "hypothetical", "flip")),
)  # fmt: skip
"""Words that are never the object of an edit unless they are quoted or follow "the word"."""
