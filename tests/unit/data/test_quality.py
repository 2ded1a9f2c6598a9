"""Translations of every quality: right German, errors where the tags say, and a score that counts them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest

from engine.data.datasets import load
from engine.data.examples import LabeledExample
from engine.data.quality import (
    ERRORS,
    OBJECTS,
    PERSONS,
    VERBS,
    Sense,
    SentencePair,
    TranslatedWord,
    Translation,
    make_example,
    make_sentence,
    make_translation,
    write_sentence,
)

GOLDEN = "90c0cb32"
"""Of the first hundred validation pairs: changes with the grammar, together with `generation.VERSION`."""
MANY = load("quality:seed=2,count=1500").examples


def words(text: str) -> list[str]:
    return text.removesuffix(".").replace(",", "").split()


def longest_common(left: Sequence[str], right: Sequence[str]) -> int:
    """Length of the longest common subsequence, by a plain table."""
    table = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            table[i + 1][j + 1] = table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def plain(example: LabeledExample, name: str) -> list[str]:
    """The words of a side, in small letters: what begins a sentence has a capital."""
    text = {"source": example.text, "target": example.text_pair, "reference": example.extra["reference"]}[name]
    return [word.lower() for word in words(str(text))]


def small() -> SentencePair:
    """Die alte Frau sieht den Hund."""
    the, old = Sense(("the",), "die", {"article": ("das",)}, 1), Sense(("old",), "alte", {"word": ("neue",)}, 1)
    woman = Sense(("woman",), "Frau", {"number": ("Frauen",)}, 1)
    sees = Sense(("sees",), "sieht", {"tense": ("sah",)})
    article, dog = Sense(("the",), "den", {}, 2), Sense(("dog",), "Hund", {}, 2)
    target = (the, old, woman, sees, article, dog)
    return SentencePair(tuple((sense.english[0], sense) for sense in target), target)


def test_the_pairs_are_the_ones_that_the_models_were_trained_on() -> None:
    rows = [(e.text, e.text_pair, e.label, e.rationale, e.rationale_pair) for e in load("quality", limit=100).examples]
    assert hashlib.sha256(repr(rows).encode()).hexdigest()[:8] == GOLDEN


@pytest.mark.parametrize(
    ("english", "german"),
    [
        ("the poor guest steals the cloth", "der arme Gast stiehlt das Tuch"),
        ("the small guests see the heavy coats beside the school", "die kleinen Gäste sehen montags"),
        ("the quiet cook sometimes visits the quiet thief", "der stille Koch besucht manchmal den stillen Dieb"),
        ("today the thief visits the daughters", "heute besucht der Dieb die Töchter"),
        ("the man did not eat the egg", "der Mann aß das Ei nicht"),
    ],
)
def test_the_grammar_holds_sentences_that_a_person_translated(english: str, german: str) -> None:
    every = [make_sentence(Random(i)) for i in range(30)]
    by_english = {
        " ".join(word for word, _ in sentence.source): " ".join(s.german for s in sentence.target) for sentence in every
    }
    translation = next(target for source, target in by_english.items() if source.startswith(english))
    assert translation.startswith(german)


def test_articles_and_endings_agree_with_their_noun_as_in_a_grammar_book() -> None:
    # Gender, number and case before a noun, looked up by the noun's form: der alte, den alten, dem ...
    right = {
        ("m", "nominative"): ("der", "e"), ("f", "nominative"): ("die", "e"), ("n", "nominative"): ("das", "e"),
        ("m", "accusative"): ("den", "en"), ("f", "accusative"): ("die", "e"), ("n", "accusative"): ("das", "e"),
        ("p", "nominative"): ("die", "en"), ("p", "accusative"): ("die", "en"),
    }  # fmt: skip
    singular, plural = {n.german: n.gender for n in OBJECTS}, {n.german_plural for n in OBJECTS}
    persons = {word for n in PERSONS for word in (n.german, n.german_plural)}
    checked = Counter[tuple[str, str]]()
    for seed in range(400):
        blocks: dict[int, list[str]] = {}
        for sense in make_sentence(Random(f"agree{seed}")).target:
            blocks.setdefault(sense.block, []).append(sense.german)
        for block, phrase in blocks.items():
            if block % 9 not in (1, 2) or len(phrase) == 1:
                continue
            case = "nominative" if block % 9 == 1 else "accusative"
            form = singular.get(phrase[-1]) or ("p" if phrase[-1] in plural else "?")
            article, ending = right[form, case]
            assert phrase[0] == article, phrase
            assert len(phrase) == 2 or phrase[1].endswith(ending), phrase
            assert len(phrase) == 2 or ending == "en" or not phrase[1].endswith("en"), phrase
            assert case == "accusative" or phrase[-1] in persons
            checked[form, case] += 1
    assert len(checked) == 8


def test_no_tense_or_number_of_a_verb_looks_like_another() -> None:
    for verb in VERBS:
        assert len(set(verb.german)) == 4, verb
        assert verb.english[2] not in verb.english[:2], verb


def test_intact_words_are_the_reference_and_nothing_else_is() -> None:
    for example in MANY:
        target, tags = plain(example, "target"), str(example.extra["target_tags"])
        intact = [word for word, tag in zip(target, tags, strict=True) if tag == "0"]
        reference = plain(example, "reference")
        assert longest_common(intact, reference) == len(intact), example
        # A swapped pair is two bad words, one of which a common run could keep.
        swaps = list(example.extra["errors"]).count("swapped")  # type: ignore[call-overload]
        assert longest_common(target, reference) <= len(intact) + swaps + coincidences(example)


def coincidences(example: LabeledExample) -> int:
    """Bad words that happen to be those of a neighbor: "die die", of which one was dropped."""
    target, tags = plain(example, "target"), str(example.extra["target_tags"])
    reference = plain(example, "reference")
    return sum(tag == "1" and word in reference for word, tag in zip(target, tags, strict=True))


def test_the_score_is_the_share_of_intact_words() -> None:
    for example in MANY:
        tags, missing = str(example.extra["target_tags"]), int(str(example.extra["missing"]))
        assert example.label == tags.count("0") / (len(tags) + missing)
        assert (example.label == 1) == (example.extra["errors"] == [])
        assert len(plain(example, "reference")) == tags.count("0") + missing + replaced(example)


def replaced(example: LabeledExample) -> int:
    """Words of the reference that stand in another form or place."""
    errors = Counter(list(example.extra["errors"]))  # type: ignore[call-overload]
    forms = sum(count for kind, count in errors.items() if kind.startswith(("wrong", "un")))
    return forms + 2 * errors["swapped"]


def test_spans_are_the_tagged_words() -> None:
    for example in MANY:
        for text, spans, name in (
            (example.text, example.rationale, "source_tags"),
            (str(example.text_pair), example.rationale_pair, "target_tags"),
        ):
            tagged = [word for word, tag in zip(words(text), str(example.extra[name]), strict=True) if tag == "1"]
            assert [text[a:b] for a, b in spans] == tagged


def test_lengths_kinds_and_scores_are_spread() -> None:
    errors = Counter(kind for example in MANY for kind in example.extra["errors"])  # type: ignore[attr-defined]
    assert set(errors) == set(ERRORS)
    assert min(errors.values()) > 100
    scores = [float(example.label or 0) for example in MANY]
    assert 0.1 < sum(score == 1 for score in scores) / len(scores) < 0.3
    assert all(sum(low <= s < low + 0.1 for s in scores) > 60 for low in (0.4, 0.5, 0.6, 0.7, 0.8))
    assert len({(example.text, example.text_pair) for example in MANY}) > 1480


@pytest.mark.parametrize(
    ("kind", "at", "target", "source_tags", "target_tags", "score"),
    [
        ("dropped", 1, "Die Frau sieht den Hund.", "010000", "00000", 5 / 6),
        ("doubled", 2, "Die alte Frau Frau sieht den Hund.", "000000", "0001000", 6 / 7),
        ("swapped", 0, "Alte die Frau sieht den Hund.", "000000", "110000", 4 / 6),
        ("untranslated", 5, "Die alte Frau sieht den dog.", "000001", "000001", 5 / 6),
        ("wrong word", 1, "Die neue Frau sieht den Hund.", "010000", "010000", 5 / 6),
        ("wrong number", 2, "Die alte Frauen sieht den Hund.", "001000", "001000", 5 / 6),
        ("wrong tense", 3, "Die alte Frau sah den Hund.", "000100", "000100", 5 / 6),
        ("wrong article", 0, "Das alte Frau sieht den Hund.", "000000", "100000", 5 / 6),
    ],
)
def test_each_error_spoils_the_words_that_a_person_would_mark(
    kind: str, at: int, target: str, source_tags: str, target_tags: str, score: float
) -> None:
    right = small()
    start = Translation(tuple(TranslatedWord(sense.german, sense) for sense in right.target))
    translation = ERRORS[kind](start, at, right.target[at], list(right.target), Random(0))
    assert translation is not None
    example = make_example(right, translation)
    assert (example.text, example.text_pair) == ("The old woman sees the dog.", target)
    assert (example.extra["source_tags"], example.extra["target_tags"]) == (source_tags, target_tags)
    assert example.label == pytest.approx(score)


def test_errors_that_do_not_fit_a_word_are_not_made() -> None:
    right = small()
    start = Translation(tuple(TranslatedWord(sense.german, sense) for sense in right.target))
    free = list(right.target)
    assert ERRORS["swapped"](start, 2, right.target[2], free, Random(0)) is None
    assert ERRORS["wrong tense"](start, 2, right.target[2], free, Random(0)) is None
    name = Sense(("Anna",), "Anna")
    assert ERRORS["untranslated"](Translation((TranslatedWord("Anna", name),)), 0, name, [name], Random(0)) is None


def test_each_word_is_spoilt_once_at_most() -> None:
    right = small()
    for seed in range(200):
        translation = make_translation(right, Random(seed))
        assert len(translation.errors) <= 4
        senses = [word.sense for word in translation.words if word.sense is not None] + list(translation.missing)
        assert len(senses) == len(set(map(id, senses))) == 6


def test_commas_and_capitals_are_written_as_in_a_sentence() -> None:
    assert write_sentence([("heute", False), ("geht", False), ("und", True)]) == (
        "Heute geht, und.",
        [(0, 5), (6, 10), (12, 15)],
    )


def test_seeds_splits_and_limits() -> None:
    whole = load("quality", limit=40)
    assert whole.task == "regression"
    assert whole.label_names == ()
    assert whole.pairs
    assert load("quality", limit=10).examples == whole.examples[:10]
    others = (load("quality:seed=1", limit=40), load("quality", split="train", limit=40))
    assert all({e.text for e in other.examples} != {e.text for e in whole.examples} for other in others)
