"""The rule language: a condition on the words of a text or a region of a picture, and the class to be predicted.

    rule      := condition "->" class
    condition := any of the following, joined by "and", "or", "not" and parentheses; "and" binds tighter than "or"
    words     := "good", "not good"     these words in this order, in any case
               | /^dis/                 a pattern that a word matches
               | negation               not, no, never, ... and words that end in n't
    part      := has(words)             the same as the words alone
               | starts with words | ends with words | first third words | last third words
               | words before words     the first at most `REACH` words before the second
    region    := object | patch 3 4     for a picture: the drawn or marked object; row and column, from 1

A rule contains no comma, so rules can be separated by commas.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from engine.errors import UsageError, excerpt
from engine.substitution import WORD, Word

MOST_CHARACTERS = 200
"""Maximum length of a rule."""
MOST_NESTED = 8
"""Maximum nesting depth of parentheses and negations."""
REACH = 3
"""Number of words that `before` looks ahead."""
NEGATIONS = frozenset(
    ("no", "not", "never", "none", "nobody", "nothing", "nowhere", "neither", "nor", "cannot", "without")
)
CONTRACTED = ("n't", "n’t")
PATTERN_CHARACTERS, PATTERN_REPEATS, PATTERN_BARS = 40, 3, 5
"""Limits of a pattern. They bound the time to match a word by a polynomial; `PATTERN_REPEATS` limits its degree."""
LONGEST_WORD = 40
"""Number of characters of a word that a pattern reads."""
ANY = "any"
"""Stands for the predicted class in a rule over pictures."""
FORMS = (
    '"not" or "never" -> negative',
    'has("good") and not negation -> positive',
    'negation before "good" -> negative',
    'last third "great" -> positive',
    "/^dis/ -> negative",
)
"""An example of each form, for the page, the help and error messages."""
REGION_FORMS = ("object -> any", "patch 3 4 -> any")
PLACES = ("starts with", "ends with", "first third", "last third")
QUOTES = ('"', "“", "”")
KEYWORDS = ("has", "negation", *PLACES, "and", "or", "not", "before", "object", "patch")
TOKEN = re.compile(r"""\s*(?:(?P<quoted>["“”][^"“”]*["“”])|(?P<pattern>/[^/]*/)|(?P<arrow>->|→)|(?P<sign>[()])"""
                   r"""|(?P<name>[^\s"“”/()]+?(?=->|→|[\s"“”/()]|$))|(?P<rest>\S))""")  # fmt: skip
UNSAFE = re.compile(r"\)[*+?]|\(\?|--|\|\||&&|~~|\[[^\]]*\[|\(\||\|\)|^\||\|$")
"""Forbidden in a pattern: repeated groups and empty alternatives, which need exponential time, and set operations."""
ALLOWED = re.compile(r"[\w'’\-.^$|?*+()\[\]]+")


@dataclass(frozen=True)
class Phrase:
    """Consecutive words, in lower case."""

    words: tuple[str, ...]

    def spans(self, words: Sequence[Word]) -> list[range]:
        """The positions of the words of each occurrence."""
        size = len(self.words)
        return [
            range(at, at + size)
            for at in range(len(words) - size + 1)
            if all(words[at + own].text.lower() == word for own, word in enumerate(self.words))
            and words[at].segment == words[at + size - 1].segment
        ]


@dataclass(frozen=True)
class Pattern:
    """A regular expression that is searched in each word separately, ignoring case."""

    source: str

    def spans(self, words: Sequence[Word]) -> list[range]:
        """The position of each matching word."""
        return [range(at, at + 1) for at, word in enumerate(words) if _searched(self.source, word.text[:LONGEST_WORD])]


@functools.lru_cache(maxsize=65536)
def _searched(source: str, word: str) -> bool:
    return re.search(source, word, re.IGNORECASE) is not None


@dataclass(frozen=True)
class Negation:
    """A negating word."""

    def spans(self, words: Sequence[Word]) -> list[range]:
        """The position of each negating word."""
        return [range(at, at + 1) for at, word in enumerate(words) if _negates(word.text.lower())]


def _negates(word: str) -> bool:
    return word in NEGATIONS or word.endswith(CONTRACTED)


Term = Phrase | Pattern | Negation
Matches = frozenset[int] | None
"""Positions of the words that make a condition true; None if it is false."""


@dataclass(frozen=True)
class Has:
    """Words within a part of the text. `place`: one of `PLACES`, or empty for anywhere."""

    term: Term
    place: str = ""

    def matches(self, words: Sequence[Word]) -> Matches:
        """Positions of the matching words. A third of the text is `len(words) // 3` words: 2 of 7."""
        spans = [span for span in self.term.spans(words) if self._lies(span, words)]
        return frozenset(at for span in spans for at in span) if spans else None

    def _lies(self, span: range, words: Sequence[Word]) -> bool:
        third = len(words) // 3
        inside = {
            "starts with": span.start == 0,
            "ends with": span.stop == len(words),
            "first third": span.stop <= third,
            "last third": span.start >= len(words) - third,
        }
        return inside.get(self.place, True)


@dataclass(frozen=True)
class Before:
    """Words at most `REACH` words before other words, in the same text."""

    first: Term
    second: Term

    def matches(self, words: Sequence[Word]) -> Matches:
        """Positions of the first words only, since the condition is false without them."""
        later = self.second.spans(words)
        spans = [span for span in self.first.spans(words) if any(_precedes(span, other, words) for other in later)]
        return frozenset(at for span in spans for at in span) if spans else None


def _precedes(span: range, other: range, words: Sequence[Word]) -> bool:
    near = span.stop <= other.start < span.stop + REACH
    return near and words[span.start].segment == words[other.start].segment


@dataclass(frozen=True)
class Not:
    """True if the condition is false. It has no matching words."""

    condition: Condition

    def matches(self, words: Sequence[Word]) -> Matches:
        return frozenset() if self.condition.matches(words) is None else None


@dataclass(frozen=True)
class And:
    """True if all conditions are true. The matching words are those of all conditions."""

    conditions: tuple[Condition, ...]

    def matches(self, words: Sequence[Word]) -> Matches:
        found = [one.matches(words) for one in self.conditions]
        return None if None in found else frozenset().union(*filter(None, found))


@dataclass(frozen=True)
class Or:
    """True if any condition is true. The matching words are those of all true conditions."""

    conditions: tuple[Condition, ...]

    def matches(self, words: Sequence[Word]) -> Matches:
        found = [own for one in self.conditions if (own := one.matches(words)) is not None]
        return frozenset().union(*found) if found else None


@dataclass(frozen=True)
class ObjectRegion:
    """The object in a picture, given by the mask of the data set."""

    def matches(self, words: Sequence[Word]) -> Matches:
        return None


@dataclass(frozen=True)
class PatchRegion:
    """A patch of a picture. `row`, `column`: counted from 1."""

    row: int
    column: int

    def matches(self, words: Sequence[Word]) -> Matches:
        return None


Condition = Has | Before | Not | And | Or | ObjectRegion | PatchRegion
REGIONS = (ObjectRegion, PatchRegion)


@dataclass(frozen=True)
class Rule:
    """A parsed rule. `label`: the class as written, by name or number."""

    text: str
    condition: Condition
    label: str

    @property
    def of_pictures(self) -> bool:
        """Whether the rule names a region."""
        return isinstance(self.condition, REGIONS)


def parse_rule(text: str) -> Rule:
    """Parse a rule. Errors name the position, what is expected there, and a similar form or an example."""
    text = text.strip()
    if "," in text or "\n" in text:
        raise UsageError(f"rules: a rule must have no comma and no line break, got {excerpt(text)}. Split it in two.")
    if len(text) > MOST_CHARACTERS:
        raise UsageError(f"rules: a rule must have at most {MOST_CHARACTERS} characters, got {len(text)}. Shorten it.")
    return _Parser(text).rule()


def target_of(rule: Rule, labels: Sequence[str]) -> int | None:
    """The index of the class that a rule names; None for `any`. Errors: the model has no such class."""
    if rule.of_pictures and rule.label.lower() == ANY:
        return None
    folded = [label.casefold() for label in labels]
    for name, known in ((rule.label, list(labels)), (rule.label.casefold(), folded)):
        if name in known:
            return known.index(name)
    if rule.label in map(str, range(len(labels))):
        return int(rule.label)
    near = difflib.get_close_matches(rule.label.casefold(), folded, n=1)
    hint = f" Did you mean {labels[folded.index(near[0])]!r}?" if near else ""
    raise UsageError(
        f"rules: the class after -> must be one of {', '.join(labels)}, or its number from 0, "
        f"got {excerpt(rule.label)}.{hint}"
    )


@dataclass(frozen=True)
class _Token:
    """A token of a rule. `at`: position of its first character, from 1."""

    kind: str
    text: str
    at: int


class _Parser:
    """Recursive-descent parser for one rule."""

    def __init__(self, text: str) -> None:
        self.text, self.place = text, 0
        self.tokens = [
            _Token(str(one.lastgroup), one.group(one.lastgroup or 0), one.start(one.lastgroup or 0) + 1)
            for one in TOKEN.finditer(text)
        ]

    def rule(self) -> Rule:
        condition = self._or(0)
        arrow = self._next()
        if arrow.kind != "arrow":
            self._fail(arrow, "and, or, or -> and a class")
        label = self.text[arrow.at - 1 + len(arrow.text) :].strip().strip('"“”').strip()
        if not label or "->" in label or "→" in label:
            self._fail(_Token("end", label, arrow.at + len(arrow.text)), "one class")
        return Rule(self.text, condition, label)

    def _or(self, depth: int) -> Condition:
        return self._joined("or", lambda: self._joined("and", lambda: self._unary(depth), And), Or)

    def _joined(
        self, name: str, read: Callable[[], Condition], kind: Callable[[tuple[Condition, ...]], Condition]
    ) -> Condition:
        parts = [read()]
        while self._take(name):
            at = self._peek()
            parts.append(read())
            if any(isinstance(part, REGIONS) for part in parts):
                self._fail(at, "a rule of one region, which is joined with nothing")
        return parts[0] if len(parts) == 1 else kind(tuple(parts))

    def _unary(self, depth: int) -> Condition:
        token = self._peek()
        if depth > MOST_NESTED:
            self._fail(token, f"at most {MOST_NESTED} parentheses and negations within each other")
        if self._take("not"):
            inner = self._unary(depth + 1)
            if isinstance(inner, REGIONS):
                self._fail(token, "a region without not")
            return Not(inner)
        if self._take("("):
            inner = self._or(depth + 1)
            self._close()
            return inner
        return self._part()

    def _part(self) -> Condition:
        first = self._next()
        name = first.text.lower() if first.kind == "name" else ""
        if name == "object":
            return ObjectRegion()
        if name == "patch":
            return PatchRegion(self._number(), self._number())
        if name in ("starts", "ends", "first", "last"):
            second = self._next()
            if f"{name} {second.text.lower()}" not in PLACES:
                self._fail(first, "a condition", f"{first.text} {second.text}")
            return Has(self._term(self._next()), f"{name} {second.text.lower()}")
        if name == "has":
            if not self._take("("):
                self._fail(self._peek(), "( and words in quotation marks after has")
            term = self._term(self._next())
            self._close()
        else:
            term = self._term(first)
        return Before(term, self._term(self._next())) if self._take("before") else Has(term)

    def _term(self, token: _Token) -> Term:
        if token.kind == "quoted":
            words = tuple(word.lower() for word in WORD.findall(token.text))
            return Phrase(words) if words else self._fail(token, "a word in the quotation marks")
        if token.kind == "pattern":
            return Pattern(self._pattern(token))
        if token.text.lower() == "negation":
            return Negation()
        self._fail(token, "a word in quotation marks, /pattern/, negation, has(, starts with or another condition")

    def _pattern(self, token: _Token) -> str:
        source = token.text[1:-1]
        limits = (
            f"a pattern of at most {PATTERN_CHARACTERS} letters, digits, - ' . ^ $ | [ ] ( ) and at most "
            f"{PATTERN_REPEATS} of * + ?, none of them after a parenthesis, and at most {PATTERN_BARS} |, each "
            "between two alternatives"
        )
        repeats = sum(source.count(sign) for sign in "*+?")
        if len(source) > PATTERN_CHARACTERS or repeats > PATTERN_REPEATS or not ALLOWED.fullmatch(source):
            self._fail(token, limits)
        if source.count("|") > PATTERN_BARS or UNSAFE.search(source):
            self._fail(token, limits)
        try:
            re.compile(source)
        except re.error as error:
            self._fail(token, f"a regular expression ({error.msg})")
        return source

    def _number(self) -> int:
        token = self._next()
        if not (token.text.isascii() and token.text.isdecimal() and len(token.text) < 4 and int(token.text)):
            self._fail(token, "patch, its row and its column, from 1")
        return int(token.text)

    def _close(self) -> None:
        if not self._take(")"):
            self._fail(self._peek(), ")")

    def _peek(self) -> _Token:
        end = _Token("end", "", len(self.text) + 1)
        return self.tokens[self.place] if self.place < len(self.tokens) else end

    def _next(self) -> _Token:
        token = self._peek()
        self.place += 1
        return token

    def _take(self, text: str) -> bool:
        token = self._peek()
        matched = token.kind in ("name", "sign") and token.text.lower() == text
        self.place += matched
        return matched

    def _fail(self, token: _Token, expected: str, got: str = "") -> NoReturn:
        got = got or token.text
        raise UsageError(
            f"rules: character {token.at}: expected {expected}, got {excerpt(got) if got else 'the end'}. "
            f"{_nearest(token, got)}"
        )


def _nearest(token: _Token, got: str) -> str:
    """Suggest what the writer may have meant, or give an example of a rule."""
    if got in QUOTES:
        return "A quotation mark is missing."
    written = {keyword.split()[0]: keyword for keyword in KEYWORDS} | {keyword: keyword for keyword in KEYWORDS}
    near = difflib.get_close_matches(got.lower(), written, n=1, cutoff=0.7)
    if near and written[near[0]] != got.lower():
        return f"Did you mean {written[near[0]]!r}?"
    if token.kind == "name" and WORD.fullmatch(got) and got.lower() not in KEYWORDS:
        return f'Put words in quotation marks: "{got}".'
    return f"Example: {FORMS[0]}"
