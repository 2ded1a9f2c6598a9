"""The rule language: every documented form, what it matches, the place of each error, and no crash on any text."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import UsageError
from engine.request import Example
from engine.rules.language import (
    FORMS,
    MOST_CHARACTERS,
    PATTERN_REPEATS,
    REGION_FORMS,
    And,
    Before,
    Has,
    Negation,
    Not,
    ObjectRegion,
    Or,
    PatchRegion,
    Phrase,
    parse_rule,
    target_of,
)
from engine.substitution import words_of

TEXT = "It is not very good, but the END is great"


def matched(condition: str, text: str = TEXT, pair: str | None = None) -> list[str] | None:
    """The words that make the condition true, in reading order; None where it is false."""
    words = words_of(Example(text, pair))
    places = parse_rule(f"{condition} -> x").condition.matches(words)
    return None if places is None else [words[at].text for at in sorted(places)]


@pytest.mark.parametrize("form", [*FORMS, *REGION_FORMS])
def test_every_documented_form_is_read(form: str) -> None:
    rule = parse_rule(form)
    assert rule.text == form
    assert rule.label == form.partition("-> ")[2]
    assert rule.of_pictures is (form in REGION_FORMS)


def test_or_and_not_and_parentheses_are_read_by_their_precedence() -> None:
    a, b, c = (Has(Phrase((name,))) for name in "abc")
    assert parse_rule('"a" or "b" and not "c" -> x').condition == Or((a, And((b, Not(c)))))
    assert parse_rule('("a" or "b") and not "c" -> x').condition == And((Or((a, b)), Not(c)))
    assert parse_rule('NOT has("a") -> x').condition == Not(a)
    assert parse_rule('negation before "a"→"very bad"').condition == Before(Negation(), Phrase(("a",)))
    assert parse_rule('"a" → "very bad"').label == "very bad"
    assert parse_rule("object -> any").condition == ObjectRegion()
    assert parse_rule("patch 3 12 -> 1").condition == PatchRegion(3, 12)


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ('"good"', ["good"]),
        ('"GOOD"', ["good"]),
        ('"goo"', None),
        ('"very good"', ["very", "good"]),
        ('"good the"', None),
        ('"is"', ["is", "is"]),
        ("negation", ["not"]),
        ("/^g/", ["good", "great"]),
        ("/oo|ea/", ["good", "great"]),
        ('starts with "it is"', ["It", "is"]),
        ('starts with "is"', None),
        ('ends with "great"', ["great"]),
        ('ends with "is"', None),
        ('first third "is"', ["is"]),  # 10 words: the first 3
        ('last third "is"', ["is"]),
        ('first third "very"', None),
        ('last third "the"', None),
        ('negation before "good"', ["not"]),
        ('negation before "but"', ["not"]),  # the third word after it
        ('negation before "the"', None),
        ('"good" before negation', None),
        ('has("good") and not "bad"', ["good"]),
        ('"bad" or "great" or "good"', ["good", "great"]),
        ('not "bad"', []),
        ('not "good"', None),
        ('"good" and "bad"', None),
    ],
)
def test_a_condition_matches_these_words(condition: str, words: list[str] | None) -> None:
    assert matched(condition) == words


def test_words_of_a_pair_are_one_sequence_that_no_phrase_crosses() -> None:
    assert matched('"good plot"', "a good", "plot") is None
    assert matched('negation before "plot"', "not", "plot") is None
    assert matched('starts with "a"', "a good", "plot") == ["a"]
    assert matched('ends with "plot"', "a good", "plot") == ["plot"]


def test_contractions_negate_with_either_apostrophe() -> None:
    assert matched("negation", "It isn't, it ISN’T, and without nothing") == ["isn't", "ISN’T", "without", "nothing"]


def test_no_word_matches_in_a_text_without_one() -> None:
    assert matched('"a"', "...") is None
    assert matched('starts with "a"', "") is None
    assert matched('not "a"', "") == []


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("good -> positive", 1, 'Put words in quotation marks: "good".'),
        ('"good -> positive', 1, "A quotation mark is missing."),
        ('"good" ->', 10, "expected one class, got the end"),
        ('"good"', 7, "expected and, or, or -> and a class, got the end"),
        ('"good" andd "b" -> x', 8, "Did you mean 'and'?"),
        ('start with "a" -> x', 1, "Did you mean 'starts with'?"),
        ('starts at "a" -> x', 1, "got 'starts at'. Did you mean 'starts with'?"),
        ('has "a" -> x', 5, "expected ( and words in quotation marks after has"),
        ('has("a" -> x', 9, "expected )"),
        ('("a" or "b" -> x', 13, "expected )"),
        ('"." -> x', 1, "expected a word in the quotation marks"),
        ("/[/ -> x", 1, "expected a regular expression (unterminated character set)"),
        ("/(a+)+/ -> x", 1, "none of them after a parenthesis"),
        ("/a{2}/ -> x", 1, "expected a pattern of at most 40"),
        ("/a*b*c*d*/ -> x", 1, "at most 3 of * + ?"),
        ('object and "a" -> x', 12, "expected a rule of one region"),
        ("not object -> x", 1, "expected a region without not"),
        ("patch 0 1 -> x", 7, "from 1"),
        ("patch 1 -> x", 9, "from 1"),
        (f"{'(' * 30}", 10, "within each other"),
        ("", 1, 'Example: "not" or "never" -> negative'),
    ],
)  # fmt: skip
def test_an_error_names_the_place_and_the_nearest_form(text: str, place: int, message: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_rule(text)
    assert str(error.value).startswith(f"rules: character {place}: expected ")
    assert message in str(error.value)


@pytest.mark.parametrize("text", ['"a", "b" -> x', '"a"\n-> x', f'"{"a" * MOST_CHARACTERS}" -> x'])
def test_commas_lines_and_long_rules_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="a rule must have"):
        parse_rule(text)


PIECES = st.sampled_from(
    ['"a"', '"not good"', "/^x/", "negation", "has(", ")", "(", "and", "or", "not", "before", "starts with",
     "first third", "object", "patch", "3", "->", "→", "positive", '"', "/", "“", ","]
)  # fmt: skip


@given(st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=14).map(" ".join)))
def test_any_text_is_a_rule_or_a_usage_error(text: str) -> None:
    message = ""
    try:
        rule = parse_rule(text)
    except UsageError as error:
        message = str(error)
    if message:
        assert re.fullmatch("rules: .+", message)
    else:
        assert parse_rule(rule.text) == rule
        rule.condition.matches(words_of(Example(TEXT)))


@settings(max_examples=60)
@given(st.text(alphabet="ab.^$|?*+()[]-", min_size=1, max_size=40))
def test_a_pattern_that_is_allowed_takes_no_long(source: str) -> None:
    try:
        rule = parse_rule(f"/{source}/ -> x")
    except UsageError:
        return
    assert sum(source.count(sign) for sign in "*+?") <= PATTERN_REPEATS
    re.compile(source)
    words = words_of(Example(" ".join("a" * (30 + at) + "!" for at in range(3))))
    began = time.process_time()
    rule.condition.matches(words)
    assert time.process_time() - began < 5


def test_the_slowest_allowed_pattern_is_quick() -> None:
    began = time.process_time()
    matched("/a*a*a*b/", " ".join("a" * 40 + str(at) for at in range(50)))
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "source",
    [".*.*.*" + "(|)" * 11 + "b", "(a|)b", "|a", "a|", "a|b|c|d|e|f|g"],
    ids=["many", "end", "first", "last", "bars"],
)
def test_empty_and_many_alternatives_are_refused(source: str) -> None:
    with pytest.raises(UsageError, match=r"at most 5 \|, each between two alternatives"):
        parse_rule(f"/{source}/ -> x")
    assert matched("/^(bad|dull)$/", "a dull film") == ["dull"]


def test_a_class_is_named_by_its_name_in_any_case_or_by_its_number() -> None:
    labels = ("negative", "Positive")
    assert [target_of(parse_rule(f'"a" -> {name}'), labels) for name in ("negative", "positive", "1")] == [0, 1, 1]
    assert target_of(parse_rule("object -> any"), labels) is None
    with pytest.raises(UsageError, match=r"must be one of negative, Positive, or its number.*Did you mean 'negative'"):
        target_of(parse_rule('"a" -> negatve'), labels)
    with pytest.raises(UsageError, match="got 'any'"):
        target_of(parse_rule('"a" -> any'), labels)
