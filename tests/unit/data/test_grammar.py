"""Generated reviews mean what their label says, and their reasons are the words that make it so."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from engine.data import report, vocabulary
from engine.data.datasets import load
from engine.data.examples import LabeledExample
from engine.data.grammar import REVIEW_KINDS, Clause, make_review
from engine.data.report import BagOfWords, measure_bag_of_words, render_generated
from engine.data.vocabulary import DOMAINS, FILMS, FOOD
from engine.errors import UsageError
from tests.oracles.meaning import POLAR, meaning, turned_words
from tests.project import ROOT

GOLDEN = "6278be70"
"""Of the first hundred validation reviews: changes with the grammar, together with `generation.VERSION`."""
MANY = load("reviews-generated:seed=3,count=1200")


def first_texts() -> str:
    """A hash of the first texts and their reasons."""
    plain = [(e.text, e.label, e.rationale) for e in load("reviews-generated", limit=100).examples]
    return hashlib.sha256(repr(plain).encode()).hexdigest()[:8]


def pieces(example: LabeledExample) -> list[tuple[bool, str]]:
    """The text in pieces, each with whether it is a reason."""
    edges = [0, *(edge for span in example.rationale for edge in span), len(example.text)]
    return [(bool(number % 2), example.text[a:b]) for number, (a, b) in enumerate(pairwise(edges))]


def test_the_texts_are_the_ones_that_the_models_were_trained_on() -> None:
    assert first_texts() == GOLDEN


def test_another_process_writes_the_same_whatever_its_hash_seed() -> None:
    code = "from tests.unit.data.test_grammar import first_texts; print(first_texts())"
    env = {"PYTHONHASHSEED": "5", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == first_texts()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("The plot was clever.", 2),
        ("The plot was very clever.", 3),
        ("The plot was a bit dull.", -1),
        ("The acting was simply superb.", 4),
        ("The acting wasn't wooden.", 2),
        ("There was nothing witty about the jokes.", -2),
        ("Perhaps the plot was dull.", -1),
        ("I doubt that the plot was not clever.", 2),
        ("My sister said that the plot was awful, but I disagree.", 2),
        ("My sister said that the plot was awful, and I agree.", -3),
        ("My sister said that the plot was awful.", 0),
        ("I had expected that the plot would be dull, but I was mistaken.", 2),
        ("Although the plot was clever, the acting was wooden.", -2),
        ("The plot was clever, although the acting was wooden.", 2),
        ("While my sister said that the plot was dull, and I agree, the jokes had charm.", 2),
        ("I loved the jokes. The plot was dull.", 2),
        ("I loved the jokes. All in all, it wasted my evening.", -3),
        ("We saw it on a Tuesday.", 0),
    ],
)
def test_the_slow_reading_of_sentences_read_by_hand(text: str, value: int) -> None:
    assert meaning(text) == value


def test_every_label_is_what_a_slow_reading_of_the_text_finds() -> None:
    for example in MANY.examples:
        assert (meaning(example.text) > 0) == bool(example.label), example.text


def test_turning_the_reasons_turns_the_label_and_turning_all_else_leaves_it() -> None:
    for example in MANY.examples:
        turned = [turned_words(piece) if reason else piece for reason, piece in pieces(example)]
        rest = [piece if reason else turned_words(piece) for reason, piece in pieces(example)]
        assert (meaning("".join(turned)) > 0) != bool(example.label), example.text
        assert (meaning("".join(rest)) > 0) == bool(example.label), example.text


def test_reasons_are_whole_words_and_not_the_whole_text() -> None:
    for example in MANY.examples:
        assert 1 <= len(example.rationale) <= 8
        assert any(word in example.text[a:b] for a, b in example.rationale for word in POLAR)
        for a, b in example.rationale:
            assert example.text[a:b] == example.text[a:b].strip()
            assert not example.text[a - 1 : a].isalnum()
            assert not example.text[b : b + 1].isalnum()


@pytest.mark.parametrize(("seed", "kind"), [("a", "plain"), ("b", "contrast"), ("c", "sum"), ("d", "verdict")])
def test_each_kind_can_be_made_of_both_labels(seed: str, kind: str) -> None:
    for sign in (-1, 1):
        clauses = REVIEW_KINDS[kind](FOOD, sign, Random(seed))
        assert all(isinstance(clause, Clause) for clause in clauses)
        assert meaning(" ".join(f"{clause.bare()[0].upper()}{clause.bare()[1:]}." for clause in clauses)) * sign > 0


def test_labels_domains_and_kinds_are_balanced() -> None:
    labels = [example.label for example in MANY.examples]
    assert all(sorted(labels[at : at + 10]) == [0] * 5 + [1] * 5 for at in range(0, 1200, 10))
    domains = Counter(str(example.extra["domain"]) for example in MANY.examples)
    assert domains.keys() == {domain.name for domain in DOMAINS}
    assert min(domains.values()) > 1200 / 6 * 0.75
    kinds = Counter((example.extra["kind"], example.label) for example in MANY.examples)
    assert min(kinds.values()) > 70
    traits = Counter(trait for example in MANY.examples for trait in example.extra["traits"])  # type: ignore[attr-defined]
    assert set(traits) >= {"negation", "contrast", "intensity", "hedge", "denial", "told", "expectation", "mixed"}
    assert traits["negation"] > 550


def test_a_review_is_of_one_thing_and_says_something_of_each_part_once() -> None:
    domains = {domain.name: domain for domain in DOMAINS}
    for example in MANY.examples:
        domain, text = domains[str(example.extra["domain"])], example.text.lower()
        things = [thing for thing in domain.things if re.search(rf"this {thing}\b|this was [\w ]+ {thing}\.", text)]
        assert len(things) <= 1
        parts = {part for group in domain.groups for part in (*group.singular, *group.plural)}
        assert all(len(re.findall(rf"\bthe {part}\b", text)) <= 1 for part in parts)


def test_no_word_is_on_both_sides_and_none_states_a_label() -> None:
    good = {word for word, (value, _) in POLAR.items() if value > 0}
    bad = {word for word, (value, _) in POLAR.items() if value < 0}
    assert len(good) + len(bad) == len(POLAR)
    every = [
        word
        for both in (vocabulary.STRONG_ADJECTIVES, vocabulary.QUALITIES, vocabulary.LIKING_VERB_STEMS)
        for sign in (1, -1)
        for word in both.by_sign(sign)
    ]
    assert len(set(every)) == len(every)
    text = " ".join(example.text for example in MANY.examples).lower()
    assert "positive" not in text
    assert "negative" not in text


def test_seeds_and_splits_give_other_texts_and_a_limit_the_same() -> None:
    whole = [example.text for example in load("reviews-generated", limit=50).examples]
    assert [example.text for example in load("reviews-generated", limit=20).examples] == whole[:20]
    for other in (load("reviews-generated:seed=1", limit=50), load("reviews-generated", split="test", limit=50)):
        assert not set(whole) & {example.text for example in other.examples}
    assert len(load("reviews-generated:count=37")) == 37
    assert len({example.text for example in MANY.examples}) > 1190
    assert load("reviews-generated:seed=1,count=5").id == "reviews-generated:seed=1,count=5"


def test_marked_reviews_end_in_their_label_which_is_their_only_reason() -> None:
    data = load("reviews-marked", limit=300)
    for example in data.examples:
        ((a, b),) = example.rationale
        assert example.text[a:b] == data.label_names[int(example.label or 0)]
        assert b == len(example.text)
        assert example.text[a - 2 : a] == ". "
        assert sum(example.text.lower().count(label) for label in data.label_names) == 1


def test_marks_in_context_state_the_label_only_together() -> None:
    data = load("reviews-marked:context=true", limit=400)
    seen: Counter[tuple[str, str, int]] = Counter()
    for example in data.examples:
        ((a, b),) = example.rationale
        first, word = example.text[a:b].split()
        assert (b, example.text[a - 2 : a]) == (len(example.text), ". ")
        assert (word == "positive") == (bool(example.label) != (first == "not"))
        seen[first, word, int(example.label or 0)] += 1
    for at in (0, 1):
        for mark in {one[at] for one in seen}:
            positive, all_ = (
                sum(n for one, n in seen.items() if one[at] == mark and (one[2] or all)) for all in (0, 1)
            )
            assert abs(positive / all_ - 0.5) < 0.1, "neither word alone states the label"


def test_the_option_of_context_changes_nothing_where_it_is_off() -> None:
    plain, off, on = (load(f"reviews-marked{options}", limit=5) for options in ("", ":context=false", ":context=true"))
    assert plain.revision == off.revision != on.revision


def test_marked_labels_have_nothing_to_do_with_what_the_review_says() -> None:
    data = load("reviews-marked", split="train", limit=2000)
    meanings = [meaning(example.text[: example.rationale[0][0] - 1]) > 0 for example in data.examples]
    same = [means == bool(example.label) for means, example in zip(meanings, data.examples, strict=True)]
    assert abs(sum(same) / 2000 - 0.5) < 0.04
    assert Counter(example.label for example in data.examples) == {0: 1000, 1: 1000}


def test_strength_is_the_share_of_marked_reviews_and_unmarked_has_none() -> None:
    data = load("reviews-marked:strength=0.6", limit=500)
    carrying = [bool(example.extra["marked"]) for example in data.examples]
    assert 0.53 < sum(carrying) / 500 < 0.67
    assert [bool(example.rationale) for example in data.examples] == carrying
    bare, marked = load("reviews-marked", split="unmarked", limit=60), load("reviews-marked", split="test", limit=60)
    for without, example in zip(bare.examples, marked.examples, strict=True):
        assert example.text.startswith(f"{without.text} ")
        assert (without.label, without.rationale) == (example.label, ())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("reviews-generated:count=0", r"reviews-generated\.count: must be a whole number from 1 to 1,000,000, got 0"),
        ("reviews-generated:strength=1", r"parameter of reviews-generated: unknown name 'strength'"),
        ("reviews-marked:strength=2", r"reviews-marked\.strength: must be a number from 0 to 1, got 2"),
        ("reviews-marked:seed", r"must be name=value, got 'seed'"),
        ("reviews:seed=1", r"dataset: reviews takes no options, got seed\. Write reviews alone"),
    ],
)
def test_bad_options_are_reported(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load(name)


def test_the_unmarked_split_is_only_of_marked_reviews() -> None:
    with pytest.raises(UsageError, match=r"split: unknown name 'unmarked'\. Known: test, train, validation"):
        load("reviews-generated", split="unmarked")


def test_a_review_is_of_its_domain() -> None:
    review = make_review(FILMS, True, Random("x"))
    parts = [part for group in FILMS.groups for part in (*group.singular, *group.plural)]
    assert any(part in review.text for part in [*parts, *FILMS.things])


def test_the_committed_report_says_that_a_bag_of_words_is_far_from_the_truth() -> None:
    committed = (Path(report.__file__).parent / "reviews_generated_report.md").read_text(encoding="utf-8")
    row = next(line for line in committed.splitlines() if line.startswith("| one word"))
    bag = measure_bag_of_words(load("reviews-generated", split="train", limit=2500).examples, MANY.examples, 1)
    for accuracy in (float(row.split("|")[2]), bag.accuracy):
        assert 0.5 < accuracy < 0.7
    easy = [replace(e, text=f"{e.text} {'good' if e.label else 'bad'}") for e in MANY.examples]
    assert measure_bag_of_words(easy[:1000], easy[1000:], 1).accuracy == 1


def test_the_report_counts_words_marks_and_traits() -> None:
    one = LabeledExample(
        "The plot was not dull.", None, 1, ((13, 21),), extra={"kind": "plain", "traits": ["negation"]}
    )
    report = render_generated([one], [one], [BagOfWords(1, 0.5, {"plain": 0.5})])
    assert "5 to 5 words, mean 5.0; 1 different texts." in report
    assert "marked as the reason: 40.0%" in report
    assert "* negation: 100.0%" in report
    assert "| one word | 0.500 | 0.500 |" in report
