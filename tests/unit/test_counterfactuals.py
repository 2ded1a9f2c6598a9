"""Counterfactuals beside an exhaustive search, predictions run anew, and every subset of the changes."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from engine import runtime
from engine.counterfactuals import texts as module
from engine.counterfactuals.search import (
    Change,
    ChangedText,
    Changes,
    Goal,
    SearchOptions,
    _candidates,
    _Search,
    overlaps,
    search_flips,
)
from engine.counterfactuals.texts import CounterfactualResult, counterfactuals
from engine.errors import Cancelled, UsageError
from engine.models.classifier import as_float64
from engine.models.loading import load_model
from engine.predictions import predictions
from engine.progress import CancelToken, cancellable
from engine.request import Example
from engine.result import Prediction
from engine.substitution import load_masked_model, words_of
from tests.tiny import save_checkpoint

REVIEW = Example("good food, bad service, lovely view")
SMALL = SearchOptions(candidates=2, most_changes=3, results=50, beam=1_000_000, branches=1_000_000)
"""Every combination is tried."""

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny", labels=3, seed=3))


def apply(example: Example, changes: Changes) -> Example:
    """By hand: the words joined again, a deleted one without its space."""
    texts = [example.text, example.text_pair]
    for change in sorted(changes, key=lambda one: one.word, reverse=True):
        text, word = texts[change.word.segment] or "", change.word
        before, after = text[: word.start], text[word.end :]
        if not change.replacement:
            before, after = (before[:-1], after) if before.endswith(" ") else (before, after.removeprefix(" "))
        texts[word.segment] = before + change.replacement + after
    return Example(texts[0] or "", texts[1])


def exhaustive(model: str, example: Example, options: SearchOptions) -> Iterator[tuple[Changes, bool]]:
    """Every set of changes of different words up to the size, the smallest first, and whether it flips."""
    before = predictions(model, [example])[0].index
    with runtime.turn():
        loaded = load_model(model)
        singles, _ = _candidates(loaded, example, words_of(example), options)
    count = len(words_of(example))
    for size in range(1, options.most_changes + 1):
        sets = [
            changes
            for changes in itertools.combinations(sorted(singles, key=lambda one: one.word), size)
            if len({one.word for one in changes}) == size and sum(not one.replacement for one in changes) < count
        ]
        after = predictions(model, [apply(example, changes) for changes in sets])
        yield from ((changes, one.index != before) for changes, one in zip(sets, after, strict=True))


def check(result: CounterfactualResult) -> None:
    """Each counterfactual is the text with its changes, flips by itself, and none of its parts does."""
    goal = Goal(result.original.index, result.original.logits[0], result.target, result.threshold)
    for one in result.results:
        assert one.example == apply(result.example, one.changes)
        assert len({change.word for change in one.changes}) == len(one.changes)
        [alone] = predictions(result.model, [one.example])
        assert alone == one.prediction
        assert goal.margin(alone) < 0
        sizes = range(1, len(one.changes))
        parts = [part for size in sizes for part in itertools.combinations(one.changes, size)]
        assert one.subsets == len(parts)
        for part in parts:
            assert goal.margin(predictions(result.model, [apply(result.example, part)])[0]) >= 0
    sizes = [len(one.changes) for one in result.results]
    assert sizes == sorted(sizes)
    assert len({one.example for one in result.results}) == len(sizes)


@pytest.mark.parametrize("text", ["bad food", "the plot drags here", "the film is warm"])
def test_a_wide_beam_finds_the_minimal_flips_of_an_exhaustive_search(tiny: str, text: str) -> None:
    example, options = Example(text), dataclasses.replace(SMALL, sources=("nearest", "delete"))
    minimal: list[frozenset[Change]] = []
    tried = dict.fromkeys((1, 2, 3), 0)
    for changes, flips in exhaustive(tiny, example, options):
        if any(smaller <= frozenset(changes) for smaller in minimal):
            continue
        tried[len(changes)] += 1
        if flips:
            minimal.append(frozenset(changes))
    result = counterfactuals(tiny, example, options=options)
    check(result)
    assert minimal
    texts = {apply(example, tuple(changes)) for changes in minimal}
    assert {one.example for one in result.results} <= texts
    assert len(result.results) == min(50, len(texts))
    assert result.fewest == min(map(len, minimal))
    for one in result.rounds:
        assert one.complete
        assert one.tried == tried[one.changes]
        assert one.flipped == sum(len(changes) == one.changes for changes in minimal)
    assert result.is_smallest


def test_a_narrow_beam_does_not_claim_what_it_did_not_try(tiny: str) -> None:
    narrow = SearchOptions(most_changes=3, beam=1, branches=3, results=50)
    result = counterfactuals(tiny, REVIEW, options=narrow)
    check(result)
    first, *others = result.rounds
    assert first.complete
    assert others
    assert not any(one.complete for one in others)
    assert str(others[0]).endswith(" Not all combinations were tried.")
    one, two = (dataclasses.replace(result.results[0], changes=result.results[-1].changes * size) for size in (1, 2))
    sizes = [dataclasses.replace(result, results=(each,)) for each in (one, two)]
    assert [each.fewest for each in sizes] == [len(one.changes), 2 * len(one.changes)]
    assert sizes[0].is_smallest == (len(one.changes) < 3)
    assert not dataclasses.replace(sizes[1], rounds=(*result.rounds[:2],), results=(two,)).is_smallest


def test_results_change_different_words_before_they_repeat_any(tiny: str) -> None:
    result = counterfactuals(tiny, REVIEW, options=SearchOptions(results=4))
    check(result)
    sets = [frozenset(change.word for change in one.changes) for one in result.results]
    assert len(set(sets)) == len(sets) == 4
    one_word = counterfactuals(tiny, Example("food"), options=SearchOptions(results=3, candidates=40))
    check(one_word)
    assert len(one_word.results) == 3, "nothing else flips, so they share the word"
    assert {change.word.text for one in one_word.results for change in one.changes} == {"food"}
    assert all(one.alternatives >= 2 for one in one_word.results)


def test_a_class_can_be_chosen(tiny: str) -> None:
    [before] = predictions(tiny, [REVIEW])
    for target in range(3):
        label = before.labels[target]
        if target == before.index:
            with pytest.raises(UsageError, match="target: must be another class than the predicted one"):
                counterfactuals(tiny, REVIEW, label)
            continue
        result = counterfactuals(tiny, REVIEW, label, options=SearchOptions(results=2))
        check(result)
        assert result.results
        assert {one.prediction.index for one in result.results} == {target}
    with pytest.raises(UsageError, match="target: unknown name 'LABEL_9'"):
        counterfactuals(tiny, REVIEW, "LABEL_9")


def test_a_score_crosses_its_threshold_from_both_sides(tmp_path: Path) -> None:
    model = str(save_checkpoint("bert", tmp_path / "score", labels=1))
    [before] = predictions(model, [REVIEW])
    score = before.logits[0]
    above, below = (counterfactuals(model, REVIEW, threshold=score + shift) for shift in (0.05, -0.05))
    for result, sign in ((above, 1), (below, -1)):
        check(result)
        assert result.results
        assert result.threshold is not None
        assert all(sign * (one.prediction.logits[0] - result.threshold) > 0 for one in result.results)
    with pytest.raises(UsageError, match=r"threshold: must be a number for .*, which predicts a score"):
        counterfactuals(model, REVIEW)
    with pytest.raises(UsageError, match="threshold: must be a finite number, got nan"):
        counterfactuals(model, REVIEW, threshold=math.nan)
    with pytest.raises(UsageError, match="target: must not be given"):
        counterfactuals(model, REVIEW, "score", threshold=0.0)


def test_classes_have_no_threshold(tiny: str) -> None:
    with pytest.raises(UsageError, match="threshold: must not be given"):
        counterfactuals(tiny, REVIEW, threshold=0.5)


def test_what_cannot_flip_says_how_close_it_came(tmp_path: Path) -> None:
    model = str(save_checkpoint("bert", tmp_path / "score", labels=1))
    result = counterfactuals(model, REVIEW, threshold=1e6, options=SearchOptions(most_changes=2))
    assert not result.results
    assert result.is_smallest == all(one.complete for one in result.rounds)
    closest = result.closest
    assert closest is not None
    assert closest.prediction == predictions(model, [apply(REVIEW, closest.changes)])[0]
    with runtime.turn():
        singles, _ = _candidates(load_model(model), REVIEW, words_of(REVIEW), result.options)
    alone = [one.logits[0] for one in predictions(model, [apply(REVIEW, (change,)) for change in singles])]
    assert closest.prediction.logits[0] >= max(alone) - 1e-5
    assert str(result.rounds[0]) == f"None of {len(alone)} changes of one word flips the prediction."
    assert next(result.rows())["flips"] is False


def test_there_may_be_nothing_to_try(tiny: str) -> None:
    result = counterfactuals(tiny, Example("good!"), options=SearchOptions(sources=("delete",)))
    assert (result.results, result.closest, result.evaluations) == ((), None, 1)
    assert "There are no changes of one word to try." in result.statements
    assert result.as_csv().startswith("rank,flips,text,")
    with pytest.raises(UsageError, match="text: must have at least one word"):
        counterfactuals(tiny, Example("?!"))


def test_evaluations_are_the_texts_that_ran(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[int] = []
    loaded = load_model(tiny)
    logits = type(loaded).logits

    def counted(self, batch, embeds=None):  # type: ignore[no-untyped-def]
        rows.append(len(batch.ids))
        return logits(self, batch, embeds)

    monkeypatch.setattr(type(loaded), "logits", counted)
    loaded.memo.clear()
    result = counterfactuals(tiny, REVIEW, options=SearchOptions(words=3, results=8))
    assert result.evaluations == sum(rows)
    assert (result.words, result.words_tried, result.masked_evaluations) == (6, 3, 3)


def test_a_second_call_reads_the_cache_and_is_the_same(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = counterfactuals(tiny, REVIEW)
    monkeypatch.setattr(module, "search_flips", None)
    again = counterfactuals(tiny, REVIEW)
    assert again == first
    json.dumps(again.as_json(), allow_nan=False)
    keys = {
        module.counterfactuals_key(tiny, REVIEW, target, threshold, options)
        for target, threshold, options in (
            (None, None, SearchOptions()), ("LABEL_1", None, SearchOptions()), (None, 0.5, SearchOptions()),
            (None, None, SearchOptions(beam=3)), (None, None, SearchOptions(sources=("delete",))),
        )
    }  # fmt: skip
    assert len(keys) == 5


def test_the_same_search_twice_is_the_same(tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = counterfactuals(tiny, REVIEW)
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "other"))
    assert counterfactuals(tiny, REVIEW).results == first.results


def test_the_log_probability_is_that_of_the_masked_model(tiny: str) -> None:
    result = counterfactuals(tiny, REVIEW, options=SearchOptions(sources=("masked",)))
    with runtime.turn():
        masked = load_masked_model()
        shares = masked.probabilities(REVIEW, words_of(REVIEW))
    place = {word: at for at, word in enumerate(words_of(REVIEW))}
    changes = [change for one in result.results for change in one.changes]
    assert changes
    for change in changes:
        share = shares[place[change.word]][masked.words.index(change.replacement.lower())]
        assert change.log_probability == pytest.approx(math.log(share))


def test_both_texts_of_a_pair_are_changed(tiny: str) -> None:
    pair = Example("a premise", "it follows")
    result = counterfactuals(tiny, pair, options=SearchOptions(results=8))
    check(result)
    assert {change.word.segment for one in result.results for change in one.changes} == {0, 1}
    assert all(words_of(Example(text)) for one in result.results for text in one.example.as_plain().values() if text)
    assert {row["segment"] for row in result.rows()} == {0, 1}


def test_two_words_alike_can_be_deleted_both(tiny: str) -> None:
    """Deleting either gives the same text; deleting both must still be tried."""
    options = SearchOptions(sources=("delete",), results=50, beam=1000, branches=1000)
    example = Example("very very warm")
    with runtime.turn():
        loaded = load_model(tiny)
        never = Goal(0, 0.0, None, -math.inf)
        search = search_flips(loaded, example, never, options)
    assert [one.tried for one in search.rounds] == [3, 3, 0]
    assert search.evaluations == 4, "very warm, very very, warm, very"


def test_words_that_the_model_does_not_read_are_left_alone(tiny: str) -> None:
    loaded = load_model(tiny)
    long = Example("good food is here, " * 300)
    result = counterfactuals(tiny, long, options=SearchOptions(words=4, candidates=2, most_changes=2, results=2))
    read = max(token.end for token in loaded.encode(long).tokens)
    assert result.words == sum(word.end <= read for word in words_of(long))
    assert result.words_tried == 4
    check(result)
    assert all(change.word.end <= read for one in result.results for change in one.changes)


def test_a_long_text_is_read_around_each_word_by_the_masked_model() -> None:
    text = "The food was good. " * 60 + "The service was terrible."
    options = SearchOptions(words=3, candidates=3, most_changes=1, sources=("masked",))
    result = counterfactuals("bert-context", Example(text), options=options)
    check(result)
    assert any("which read the 126 tokens around each word" in note for note in result.notes)


@pytest.mark.parametrize("model", ["t5-context", "gpt2-context", "roberta-context", "reviews-minilm", "nli-minilm"])
def test_the_embedded_families(model: str) -> None:
    pair = "He ate." if "nli" in model else None
    result = counterfactuals(model, Example("The food was <b>cold</b> & slow.", pair))
    check(result)
    assert result.results
    marks = [mark for mark in result.example.text if mark in "<>/&."]
    for one in result.results:
        assert [mark for mark in one.example.text if mark in "<>/&."] == marks, "only words are changed"


def test_it_can_be_stopped(tiny: str) -> None:
    token = CancelToken()
    token.cancel()
    with cancellable(token), pytest.raises(Cancelled):
        counterfactuals(tiny, REVIEW)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"beam": 0}, "beam: must be a whole number of at least 1|beam: must be a whole number from 1"),
        ({"most_changes": 7}, "most_changes: must be a whole number from 1 to 6, got 7"),
        ({"sources": ("masked", "guess")}, "sources: unknown name 'guess'"),
        ({"sources": ()}, "sources: must be at least one of masked, nearest, delete"),
    ],
)
def test_options_are_checked(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        SearchOptions(**wrong)  # type: ignore[arg-type]


def test_margins_by_hand() -> None:
    logits = np.array([[2.0, 0.5, 1.0], [0.0, 3.0, 1.0]])
    assert Goal(0, 2.0, None, None).margins(logits).tolist() == [1.0, -3.0]
    assert Goal(0, 2.0, 2, None).margins(logits).tolist() == [1.0, 2.0]
    assert Goal(0, 2.0, None, 1.5).margins(logits[:, :1]).tolist() == [0.5, -1.5]
    assert Goal(0, 0.0, None, 1.5).margins(logits[:, :1]).tolist() == [-0.5, 1.5]
    assert Goal(1, 0.0, None, None).margin(Prediction(("a", "b"), (1.0, 0.5), (0.6, 0.4))) == -0.5


def test_fluent_changes_come_first() -> None:
    word, other = words_of(Example("warm film"))
    text = Example("x")
    likely, rare = (ChangedText((Change(word, "cold", "masked", log),), text, -1.0) for log in (-1.0, -5.0))
    mixed = ChangedText((Change(word, "cold", "masked", -0.1), Change(other, "", "delete")), text, -1.0)
    assert sorted([mixed, rare, likely], key=lambda one: one.fluency) == [likely, rare, mixed]


@pytest.mark.parametrize("goal", [Goal(0, 2.0, None, None), Goal(0, 2.0, 2, None), Goal(0, 2.0, None, 1.5)])
def test_slopes_are_differences_of_margins(goal: Goal) -> None:
    logits = np.array([2.0, 0.5, 1.0] if goal.threshold is None else [2.0])
    steps = logits + 1e-6 * np.eye(len(logits))
    measured = (goal.margins(steps) - goal.margins(logits[None])) / 1e-6
    np.testing.assert_allclose(goal.slopes(logits), measured, atol=1e-6)


def test_the_words_tried_of_many_hold_most_of_the_margin_to_first_order(tiny: str) -> None:
    """An oracle by differences: each word's embeddings a little shorter, in double precision."""
    loaded = load_model(tiny, "float64")
    words = words_of(REVIEW)
    [before] = predictions(tiny, [REVIEW])
    with runtime.turn():
        search = _Search(loaded, REVIEW, Goal(before.index, 0.0, None, None))
        chosen = search.most_important(words, 2)
        encoded = loaded.encode(REVIEW)
        batch = loaded.collate([encoded])
        whole = loaded.embed(batch)
        drops = []
        for word in words:
            inside = [at for at, token in enumerate(encoded.tokens) if overlaps(token, word)]
            shorter = whole.clone()
            shorter[0, inside] *= 1 - 1e-6
            with torch.inference_mode():
                logits = as_float64(torch.cat([loaded.logits(batch, whole), loaded.logits(batch, shorter)]))
            start, end = search.goal.margins(logits)
            drops.append(start - end)
    assert list(chosen) == sorted(words[at] for at in np.argsort(drops)[-2:])
    assert search.gradients == 1
