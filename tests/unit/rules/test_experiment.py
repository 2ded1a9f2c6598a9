"""Rules on data sets: edits against a plain loop, a constructed model by hand, the cache, the job and the command."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import jobs, runtime
from engine.errors import ExegesisError, UsageError
from engine.experiments.run import carry_out, finished, rows_of
from engine.experiments.sample import training_half
from engine.explain import explain
from engine.input_kinds import load_classifier
from engine.predictions import predictions
from engine.removal import coalition_probabilities, token_masks
from engine.request import Example, Picture, Request
from engine.result import Prediction
from engine.rules import texts
from engine.rules.experiment import rows, sample, to_json
from engine.rules.language import parse_rule
from engine.rules.plan import RulesPlan
from engine.rules.result import ModelRules, score_rule
from engine.substitution import words_of
from engine.vision.picture import read_view
from engine.vision.regions import other_regions, touched_patches
from tests.explaining import checkpoint
from tests.unit.evaluation.making import written
from tests.unit.vision.tiny_vit import save_vit

NEGATIVE = re.compile(r"\b(not|never)\b")
REVIEWS: list[dict[str, object]] = [
    {"text": "the acting is not good and never warm", "label": 0},
    {"text": "not a quiet triumph", "label": 0},
    {"text": "the plot is not bad at all", "label": 1},
    {"text": "a quiet triumph and the acting is warm", "label": 1},
    {"text": "lovely view of the plot", "label": 1},
    {"text": "the plot drags and the food is bad", "label": 0},
]
RULE = '"not" or "never" -> LABEL_0'


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that holds nothing yet."""
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "home"))


@pytest.fixture
def data(tmp_path: Path) -> str:
    return written(tmp_path / "reviews.jsonl", REVIEWS)


@pytest.fixture(scope="module")
def bert() -> str:
    return str(checkpoint("bert"))


@pytest.fixture(scope="module")
def vit(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_vit(tmp_path_factory.mktemp("model") / "vit"))


def plan(model: str, data: str, *rules: str, **more: Any) -> RulesPlan:
    return RulesPlan(**{"models": (model,), "dataset": data, "rules": rules or (RULE,), "methods": ("gradient_l2",),
                        "examples": 6, **more})  # fmt: skip


def one_model(asked: RulesPlan) -> ModelRules:
    [found] = carry_out(asked).models
    assert isinstance(found, ModelRules)
    return found


def constructed(model: str, examples: Sequence[Example], dtype: str) -> list[Prediction]:
    """Class 0 at 0.9 with "not" unless "bad" is there, at 0.6 with "never", else at 0.2."""
    made = []
    for one in examples:
        words = [word.text for word in words_of(one)]
        share = 0.2
        if "never" in words:
            share = 0.6
        if "not" in words and "bad" not in words:
            share = 0.9
        made.append(
            Prediction(("LABEL_0", "LABEL_1"), (float(np.log(share)), float(np.log(1 - share))), (share, 1 - share))
        )
    return made


def test_six_examples_of_a_constructed_model_by_hand(bert: str, data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "predictions", constructed)
    [rule] = one_model(plan(bert, data)).rules
    by_place = {one.example: one for one in rule.examples}
    assert [by_place[at].holds for at in range(6)] == [True, True, True, False, False, False]
    assert [by_place[at].as_claimed for at in range(6)] == [True, True, False, False, False, False]
    assert [by_place[at].removed for at in range(6)] == [0.2, 0.2, 0.2, None, None, None]
    assert [by_place[at].removed_changed for at in range(3)] == [True, True, False]
    assert by_place[0].words == "not never"
    assert [by_place[at].random for at in (0, 1)] == [pytest.approx(0.9)] * 2
    # Without "bad", "not" counts: in some of the draws.
    assert 0.2 - 1e-9 <= (by_place[2].random or 0) <= 0.9 + 1e-9
    assert all(by_place[at].inserted in (0.9, 0.6, 0.2) and by_place[at].neutral == 0.2 for at in (3, 4, 5))
    assert rule.neutral_word == "the"
    scores = score_rule(rule)
    assert (scores.share.value, scores.base, scores.changed.value) == (
        pytest.approx(2 / 3),
        pytest.approx(1 / 3),
        pytest.approx(2 / 3),
    )


@pytest.mark.parametrize("removal", ["delete", "mask"])
def test_edits_are_those_of_a_plain_loop(bert: str, data: str, removal: str) -> None:
    [rule] = one_model(plan(bert, data, removal=removal)).rules
    assert any(one.removed != one.probability for one in rule.examples if one.holds)
    for one in rule.examples:
        text = str(REVIEWS[one.example]["text"])
        assert one.holds is bool(NEGATIVE.search(text))
        [whole] = predictions(bert, [Example(text)])
        assert one.probability == pytest.approx(whole.probabilities[0], abs=1e-6)
        if one.holds:
            changed = NEGATIVE.sub("[MASK]", text) if removal == "mask" else " ".join(NEGATIVE.sub("", text).split())
            [without] = predictions(bert, [Example(changed)])
            assert one.removed == pytest.approx(without.probabilities[0], abs=1e-6)
            assert one.removed_changed is (without.index != whole.index)


def test_replacing_draws_other_words_by_the_seed(bert: str, data: str) -> None:
    results = [one_model(plan(bert, data, removal="replace", seed=seed)).rules[0] for seed in (0, 0, 1)]
    assert results[0] == results[1]
    held = [{one.example: one.removed for one in own.examples if one.holds} for own in results]
    assert held[0] != held[2]


def test_replacing_never_draws_the_word_itself(bert: str, data: str) -> None:
    example = Example("I did not like it.")
    words = words_of(example)
    with runtime.turn():
        removal = texts.load_removal(plan(bert, data, removal="replace"))
        made = [removal.apply(example, words, np.random.default_rng(seed)) for seed in range(60)]
    assert all(one is not None for one in made)
    drawn = [[word.text.lower() for word in words_of(one)] for one in made if one is not None]
    own = [word.text.lower() for word in words]
    assert all(new != old for each in drawn for new, old in zip(each, own, strict=True))


def test_a_text_without_a_word_is_left_out_of_the_insertions(bert: str, tmp_path: Path) -> None:
    rows_given = [*REVIEWS, {"text": "!!!", "label": 1}]
    file = written(tmp_path / "wordless.jsonl", rows_given)
    [rule] = one_model(plan(bert, file, examples=7)).rules
    [one] = [one for one in rule.examples if one.example == 6]
    assert (one.inserted, one.neutral) == (None, None)
    assert "1 example without a word, left out of the insertions." in rule.notes


def test_inserted_words_make_the_rule_true_and_neutral_words_stand_in_the_same_place() -> None:
    example = Example("one two three four five six.", "seven eight")
    words = words_of(example)
    for condition in (
        '"not"',
        '"not good" and "never"',
        'starts with "not"',
        'ends with "not"',
        'first third "not"',
        'last third "not good"',
    ):
        own = parse_rule(f"{condition} -> x").condition
        phrases = texts.inserted_phrases(own, {})
        assert phrases
        for seed in range(8):
            made = texts._insertions(example, own, phrases, ["the"], np.random.default_rng(seed))
            assert made.inserted is not None
            assert made.neutral is not None
            assert own.matches(words_of(made.inserted)) is not None
            neutral = [word.text for word in words_of(made.neutral)]
            assert [word for word in neutral if word != "the"] == [word.text for word in words]
            inserted = [word.text for word in words_of(made.inserted)]
            assert [at for at, word in enumerate(neutral) if word == "the"] == [
                at for at, word in enumerate(inserted) if word in ("not", "good", "never")
            ]


COUNTS = Counter({"the": 9, "bad": 3, "never": 2, "badly": 1, "film": 4, "don't": 1})
"""Of the words of examples."""


@pytest.mark.parametrize(
    ("condition", "inserted"),
    [
        ("negation", [[("never", "don't")]]),
        ("/^bad/", [[("bad", "badly")]]),
        ('negation before "good"', [[("never good", "don't good")]]),
        ('"good" before /^bad/', [[("good bad", "good badly")]]),
        ('"a" and not negation', [[("a",)]]),
        ('"a" or negation', [[("a",)], [("never", "don't")]]),
        ("starts with negation", [[("never", "don't")]]),
        ('"a" or not "b"', [[("a",)]]),
        ('not "a"', []),
        ("/^zz/", []),
        ('"a" and /^zz/', []),
        ('not "a" and not "b"', []),
    ],
)
def test_the_words_that_make_a_condition_true(condition: str, inserted: list[list[tuple[str, ...]]]) -> None:
    made = texts.inserted_phrases(parse_rule(f"{condition} -> x").condition, COUNTS)
    assert [[own for own, _ in phrases] for phrases in made] == inserted


@pytest.mark.parametrize("condition", ["negation", "/^bad/", 'negation before "good"', '"a" and not negation'])
def test_random_words_stand_where_a_pattern_or_negation_was_inserted(condition: str) -> None:
    example = Example("one two three four five six.")
    own = parse_rule(f"{condition} -> x").condition
    phrases, others = texts.inserted_phrases(own, COUNTS), texts.other_words(own, COUNTS)
    assert "the" in others
    seen = set()
    for seed in range(12):
        made = texts._insertions(example, own, phrases, others, np.random.default_rng(seed))
        assert made.inserted is not None
        assert made.neutral is not None
        assert own.matches(words_of(made.inserted)) is not None
        assert own.matches(words_of(made.neutral)) is None
        with_words, with_others = ([word.text for word in words_of(one)] for one in (made.inserted, made.neutral))
        given = [word.text for word in words_of(example)]
        places = [at for at, word in enumerate(with_words) if word not in given]
        assert places == [at for at, word in enumerate(with_others) if word not in given]
        assert {with_others[at] for at in places} <= set(others)
        seen |= {with_words[at] for at in places}
    assert len(seen) > 1 or condition.startswith('"a"'), "words are drawn"


def test_a_text_that_stays_false_is_left_out_of_the_insertions() -> None:
    own = parse_rule('"a" and not negation -> x').condition
    made = texts._insertions(
        Example("I never saw it."), own, texts.inserted_phrases(own, COUNTS), ["the"], np.random.default_rng(0)
    )
    assert (made.inserted, made.neutral) == (None, None)


def test_a_negation_that_no_example_has_is_not_and_what_cannot_be_inserted_is_said() -> None:
    [[(own, _)]] = texts.inserted_phrases(parse_rule("negation -> x").condition, {"film": 2})
    assert own == ("not",)
    missing, unmatched = (parse_rule(f"{one} -> x").condition for one in ('not "a"', "/^zz/"))
    assert "missing words cannot be inserted" in texts.why_not_inserted(missing)
    assert "No word of the examples matches" in texts.why_not_inserted(unmatched)


def test_inserted_negations_raise_what_the_model_says_of_them(
    bert: str, data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The constructed model says 0.9 for "not" without "bad", 0.6 for "never", and 0.2 for any other text."""
    monkeypatch.setattr(texts, "predictions", constructed)
    negation, unmatched = one_model(plan(bert, data, "negation -> LABEL_0", "/^zz/ -> LABEL_0")).rules
    scores = score_rule(negation)
    rest = sorted((one for one in negation.examples if not one.holds), key=lambda one: one.example)
    assert negation.neutral_word == ""
    assert [one.example for one in rest] == [3, 4, 5]
    assert all(one.inserted in (0.9, 0.6) for one in rest[:2])
    assert rest[2].inserted in (0.2, 0.6), "it has the word bad"
    assert {one.neutral for one in rest} == {0.2}
    assert scores.rise.value == pytest.approx(np.mean([one.inserted - 0.2 for one in rest if one.inserted is not None]))
    assert any(note.startswith("No word of the examples matches") for note in unmatched.notes)
    assert score_rule(unmatched).inserted.n == 0


def test_attribution_words_are_means_over_all_places_of_the_training_half(bert: str, data: str) -> None:
    asked = plan(bert, data, seed=1)
    read, failed = texts.read_predicted(asked, sample(asked))
    assert not failed
    half = training_half([one.index for one in read], 1)
    assert len(half) == 3
    scores: dict[str, list[float]] = {}
    for index in half:
        example = Example(str(REVIEWS[index]["text"]))
        made = explain(Request(bert, "gradient_l2", example, target=0, seed=1))
        for word in example.text.split():
            start = 0
            scores.setdefault(word, [])
        for word in words_of(example):
            start = sum(
                s
                for t, s in zip(made.tokens, made.scores, strict=True)
                if not t.special and word.start <= t.start < word.end
            )
            scores[word.text].append(float(start))
    counts = {word: sum(word in str(REVIEWS[at]["text"]).split() for at in half) for word in scores}
    expected = {word: np.mean(own) for word, own in scores.items() if counts[word] >= texts.FEWEST_OCCURRENCES}
    found = texts.attribution_words(asked, "gradient_l2", 0, read)
    assert dict(found) == pytest.approx(expected)
    assert [score for _, score in found] == pytest.approx(sorted(expected.values(), reverse=True))


def test_the_best_word_is_chosen_in_the_training_half_only(
    bert: str, data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts, "predictions", constructed)
    asked = plan(bert, data)
    read, _ = texts.read_predicted(asked, sample(asked))
    rule = texts.measure_text_rule(asked, parse_rule(RULE), 0, read)
    examples = tuple(replace(one, held_out=one.example not in (0, 3, 4)) for one in rule.examples)
    found = texts.with_attribution(
        replace(rule, examples=examples), {"one": [("triumph", 1.0), ("plot", 0.9)], "two": [("good", 0.1)]}, read
    )
    # In training, only example 0 has the class: "good" stands in it alone.
    assert (found.method, found.word) == ("two", "good")
    assert [one.example for one in found.examples if one.attribution_holds] == [0]
    none = texts.with_attribution(replace(rule, examples=examples), {"one": []}, read)
    assert none.method == ""
    assert "No attribution method names a word" in none.notes[-1]


def test_the_result_comes_back_from_the_cache_without_a_model(
    bert: str, data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = plan(bert, data, RULE, "negation -> 0")
    found = carry_out(asked)
    monkeypatch.setattr("engine.predictions.load_classifier", None)
    again = finished(asked)
    assert again is not None
    assert again.models == found.models
    assert to_json(again) == to_json(found)
    json.dumps(to_json(found), allow_nan=False)


def test_a_job_leaves_what_opens_and_a_rule_more_computes_only_itself(bert: str, data: str) -> None:
    asked = plan(bert, data)
    ended = jobs.run_now(jobs.create("rules", asked.as_plain()))
    assert (ended.state, ended.failed, ended.total) == ("done", 0, 3)
    assert finished(asked) is not None
    more = jobs.create("rules", replace(asked, rules=(RULE, "negation -> 0")).as_plain())
    assert jobs.run_now(more).computed == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rules": ()}, "rules: must be 1 to 4 different rules"),
        ({"rules": ("good -> 0",)}, "rules: character 1"),
        ({"rules": ('"a" -> fine',)}, "rules: the class after -> must be one of LABEL_0, LABEL_1"),
        ({"rules": ("object -> any",)}, "reads texts, got the rule 'object -> any'"),
        ({"removal": "blur"}, "removal: unknown name 'blur'"),
        ({"rules": tuple(f'"{name}" -> 0' for name in "abcde")}, "rules: must be 1 to 4 different rules"),
    ],
)
def test_what_cannot_be_tested_is_refused(bert: str, data: str, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ExegesisError) as error:
        carry_out(replace(plan(bert, data), **change))
    assert message in str(error.value)


def test_a_model_of_scores_is_refused(tmp_path: Path, data: str) -> None:
    from tests.tiny import save_checkpoint

    model = str(save_checkpoint("bert", tmp_path / "scores", labels=1))
    with pytest.raises(UsageError, match="predicts a score"):
        carry_out(plan(model, data, '"a" -> 0'))


def test_rows_hold_each_value_and_name_the_attribution_method(bert: str, data: str) -> None:
    asked = plan(bert, data)
    found = carry_out(asked)
    table = list(rows_of(found))
    assert table == list(rows(found.models[0]))
    values = {(row["example"], row["metric"]): row["value"] for row in table}
    for one in found.models[0].rules[0].examples:
        assert values[one.example, "holds"] == one.holds
        assert values.get((one.example, "removed")) == one.removed
    assert {row["method"] for row in table if row["metric"] != "attribution"} == {""}


def test_regions_elsewhere_have_the_same_shape_and_share_no_patch() -> None:
    region = np.zeros((4, 5), dtype=bool)
    region[1, 1:3] = True
    others = other_regions(region, np.random.default_rng(0))
    assert len(others) == 5
    for other in others:
        assert not (other & region).any()
        rows_of_it, columns = np.nonzero(other)
        assert rows_of_it[0] == rows_of_it[1]
        assert columns[1] == columns[0] + 1
    cross = np.zeros((3, 3), dtype=bool)
    cross[1, :2], cross[0, 1] = True, True
    assert all(
        int(one.sum()) == 3 and not (one & cross).any() for one in other_regions(cross, np.random.default_rng(0))
    )
    most = np.ones((2, 2), dtype=bool)
    most[0, 0] = False
    assert other_regions(most, np.random.default_rng(0)) == ()


def test_an_object_is_every_patch_that_it_touches() -> None:
    mask = np.zeros((4, 6), dtype=bool)
    mask[0, 0] = mask[3, 3] = True
    assert touched_patches(mask, (2, 2)).tolist() == [[True, False, False], [False, True, False]]


def test_pictures_without_a_region_are_those_of_a_plain_loop(vit: str) -> None:
    asked = plan(vit, "scenes:count=4", "object -> any", "patch 2 2 -> dog", methods=("gradient_l2",), removal="zero")
    found = one_model(asked)
    source, view = sample(asked).source, read_view(vit)
    model = load_classifier("image", vit, "float32", runtime.device())
    for one in found.rules[0].examples:
        example = source.read(one.example)
        assert isinstance(example.input, Picture)
        region = touched_patches(view.transform_mask(example.example.mask), view.patch)  # type: ignore[union-attr, arg-type]
        encoded = model.encode(example.input)
        shares = [
            coalition_probabilities(
                model,
                [encoded],
                np.zeros(1, dtype=int),
                token_masks(encoded, kept.reshape(1, -1), len(encoded)),
                "zero",
            )[0]
            for kept in (np.ones_like(region), ~region, region)
        ]
        predicted = int(shares[0].argmax())
        assert (one.predicted, one.holds) == (predicted, True)
        assert [one.probability, one.removed, one.inserted] == pytest.approx(
            [own[predicted] for own in shares], abs=1e-6
        )
        assert one.removed_changed is (int(shares[1].argmax()) != predicted)
    second = found.rules[1]
    assert second.label == "dog"
    assert all(one.holds is (one.predicted == 1) for one in second.examples)
    with pytest.raises(UsageError, match="patch must be within 3 rows and 3 columns"):
        carry_out(replace(asked, rules=("patch 4 1 -> any",)))
