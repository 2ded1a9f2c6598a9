"""A whole evaluation on small data: its numbers one at a time, its company, what it shares, what it skips."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

import engine.evaluation.experiment as experiment
import engine.evaluation.measurement as explanations
import engine.experiments.sample as samples
from engine.errors import Cancelled, ExegesisError
from engine.evaluation.experiment import evaluate
from engine.evaluation.result import Evaluation
from engine.explain import explain
from engine.metrics.catalog import METRICS
from engine.metrics.plausibility import ALL, NOTHING
from engine.metrics.ranking import count_of_percent, rank_features
from engine.metrics.results import MetricRow
from engine.models.text_classifier import EncodedText
from engine.progress import CancelToken
from engine.registry import ENSEMBLE_MEMBERS
from engine.request import Example, Request
from tests.explaining import checkpoint, classifier
from tests.oracles.curves import masked_probability
from tests.oracles.plausibility import entropy_of_shares
from tests.unit.evaluation.making import REVIEWS, TRANSLATIONS, written

pytestmark = pytest.mark.usefixtures("home")

METHODS = ("gradient_x_input", "gradient_l2")


@pytest.fixture
def reviews(tmp_path: Path) -> str:
    return written(tmp_path / "reviews.jsonl", REVIEWS)


@pytest.fixture
def translations(tmp_path: Path) -> str:
    return written(tmp_path / "translations.jsonl", TRANSLATIONS)


def model(labels: int = 2) -> str:
    return str(checkpoint("bert", labels))


def of(found: Evaluation, metric: str, method: str, example: int | None = None) -> list[MetricRow]:
    return [
        row for row in found.rows
        if (row.of.metric, row.of.method) == (metric, method) and example in (None, row.example)
    ]  # fmt: skip


def test_every_number_is_that_of_one_example_at_a_time(reviews: str) -> None:
    found, loaded = evaluate([model()], reviews, METHODS[:1]), classifier("bert", 2, "float32")
    for index, review in enumerate(REVIEWS):
        made = explain(Request(model(), METHODS[0], Example(str(review["text"]))))
        encoded, target, scores = loaded.encode(Example(str(review["text"]))), made.provenance.target, made.scores
        order = [int(encoded.features[at]) for at in rank_features(scores[made.features], (0, *encoded.ids.tolist()))]

        def m(gone: list[int], encoded: EncodedText = encoded, target: int = target) -> float:
            return masked_probability(loaded.module, encoded.ids.tolist(), set(gone), loaded.mask_id, target)

        counts = [count_of_percent(percent, len(order)) for percent in (5, 10, 20, 50)]
        falls = [m([]) - m(order[:count]) for count in counts], [m([]) - m(order[count:]) for count in counts]
        for id, fall in zip(("comprehensiveness", "sufficiency"), falls, strict=True):
            [row] = of(found, id, METHODS[0], index)
            assert row.value == pytest.approx(np.mean(fall), abs=1e-5)
        halves = {row.of.percent: row.value for row in of(found, "with_top", METHODS[0], index)}
        assert halves[50] == pytest.approx(m(order[count_of_percent(50, len(order)) :]), abs=1e-5)
        assert sorted(halves) == [0, 5, *range(10, 101, 10)]
        [entropy] = of(found, "complexity", METHODS[0], index)
        assert entropy.value == pytest.approx(entropy_of_shares(scores[made.features].tolist()))
        for auc in of(found, "plausibility_auc", METHODS[0], index):
            spans = review["rationale"]
            tokens = [made.tokens[at] for at in made.features]
            marks = [any(t.start < end and start < t.end for start, end in spans) for t in tokens]  # type: ignore[attr-defined]
            assert auc.value == pytest.approx(roc_auc_score(marks, scores[made.features]))


def test_what_has_no_value_is_skipped_with_its_reason_and_counted(reviews: str) -> None:
    found = evaluate([model()], reviews, METHODS)
    by_name = {(score.metric, score.method): score for score in found.scores}
    for method in (*METHODS, "random"):
        auc = by_name["plausibility_auc", method]
        assert (auc.n, auc.skipped) == (4, {NOTHING: 1, ALL: 1})
        assert by_name["comprehensiveness", method].n == 6
    assert by_name["mean_rank", "random"].better == "low"
    assert by_name["rank_spearman", METHODS[0]].better == "neither"
    assert {skip.example for skip in found.skips} == {3, 4}


def test_random_and_the_members_of_ensembles_come_along(reviews: str) -> None:
    found = evaluate([model()], reviews, ["gradient", "ensemble_top3"], ["evaluations"], examples=1)
    assert found.plan.methods_with_baselines == (
        "gradient",
        "ensemble_top3",
        *ENSEMBLE_MEMBERS["ensemble_top3"],
        "random",
    )
    assert [score.method for score in found.scores] == list(found.plan.methods_with_baselines)


def test_f1_takes_as_many_units_as_are_usually_marked(reviews: str) -> None:
    found = evaluate([model()], reviews, METHODS[:1], ["token_f1"], unit="word")
    share = np.mean([2 / 8, 2 / 10, 2 / 10, 1 / 3])
    for index, marked in ((0, {1, 2}), (5, {2})):
        made = explain(Request(model(), METHODS[0], Example(str(REVIEWS[index]["text"]))))
        words = explanations.ranked_units(made, Example(str(REVIEWS[index]["text"])), "word")[0]
        top = set(np.argsort(-words)[: max(1, round(share * len(words)))].tolist())
        [row] = of(found, "token_f1", METHODS[0], index)
        assert row.value == pytest.approx(2 * len(top & marked) / (len(top) + len(marked)))


def test_rows_are_shared_and_nothing_is_run_twice(reviews: str) -> None:
    first = evaluate([model()], reviews, METHODS)
    assert first.requested_rows == 2 * 6 * 3 * 2 * 12, "by two operators"
    assert 0 < first.evaluated_rows < 0.75 * first.requested_rows
    again = evaluate([model()], reviews, METHODS)
    assert (again.requested_rows, again.evaluated_rows) == (0, 0)
    assert again.rows == first.rows
    assert again.scores == first.scores
    more = evaluate([model()], reviews, [*METHODS, "occlusion"])
    assert more.requested_rows == 2 * 6 * 2 * 12
    assert {row for row in more.rows if row.of.method in METHODS and not row.of.against} >= {
        row for row in first.rows if row.of.method in METHODS and not row.of.against
    }


def test_the_means_alone_need_fewer_rows_than_the_curves(reviews: str) -> None:
    means = evaluate([model()], reviews, METHODS[:1], ["comprehensiveness", "sufficiency"], second_removal="none")
    assert means.requested_rows == 6 * 2 * 2 * len((0, 5, 10, 20, 50, 100))
    whole = evaluate([model()], reviews, METHODS[:1])
    for row in means.rows:
        [same] = of(whole, row.of.metric, row.of.method, row.example)
        assert row.value == pytest.approx(same.value, abs=1e-6)


def test_translations_are_judged_by_their_errors_each_text_and_each_pair_of_languages_apart(translations: str) -> None:
    found = evaluate([model(1)], translations, METHODS[:1])
    by_name = {score.metric: score for score in found.scores if score.method == "random"}
    first, second = by_name["plausibility_auc_first"], by_name["plausibility_auc_second"]
    assert (first.n, first.skipped) == (2, {NOTHING: 1, f"{NOTHING} in the first text": 1})
    assert (second.n, second.skipped) == (3, {NOTHING: 1})
    for index, review in ((1, TRANSLATIONS[1]), (3, TRANSLATIONS[3])):
        made = explain(Request(model(1), METHODS[0], Example(str(review["text"]), str(review["text_pair"]))))
        mine = [at for at in made.features if made.tokens[at].segment == 0]
        [(start, end)] = review["rationale"]  # type: ignore[misc]
        marks = [made.tokens[at].start < end and start < made.tokens[at].end for at in mine]
        [row] = of(found, "plausibility_auc_first", METHODS[0], index)
        assert row.value == pytest.approx(roc_auc_score(marks, made.scores[mine]))
    apart = found.by(lambda one: str(one.extra["pair"]))
    assert list(apart) == ["en-de", "et-en"]
    counts = {
        name: next(s.n for s in one.scores if s.metric == "plausibility_auc_second") for name, one in apart.items()
    }
    assert counts == {"en-de": 2, "et-en": 1}
    assert {one.right for one in found.facts} == {None}, "a score is not right or wrong"


def test_every_metric_has_a_value_or_a_reason_for_every_method_and_example(translations: str) -> None:
    found = evaluate([model(1)], translations, ["gradient_l2"], list(METRICS), samples=1)
    seen = {(one.of.metric, one.of.method, one.example) for one in (*found.rows, *found.skips)}
    for id, metric in METRICS.items():
        methods = ["gradient_l2"] if metric.needs == "others" else ["gradient_l2", "random"]
        assert {one for one in seen if one[0] == id} == {
            (id, method, place) for method in methods for place in range(4)
        }
    assert {score.metric for score in found.scores if score.n} == set(METRICS)


def test_agreement_is_that_of_scipy(reviews: str) -> None:
    found = evaluate([model()], reviews, METHODS, ["rank_spearman"])
    rhos = []
    for review in REVIEWS:
        made = [explain(Request(model(), method, Example(str(review["text"])))) for method in METHODS]
        rhos.append(stats.spearmanr(*(one.scores[one.features] for one in made)).statistic)
    [score] = [one for one in found.scores if (one.method, one.against) == METHODS]
    assert score.value == pytest.approx(np.mean(rhos))


def test_facts_say_what_slices_need(reviews: str) -> None:
    found = evaluate([model()], reviews, METHODS[:1], ["complexity"])
    assert [one.example for one in found.facts] == list(range(6))
    for one, review in zip(found.facts, REVIEWS, strict=True):
        made = explain(Request(model(), METHODS[0], Example(str(review["text"]))))
        assert (one.label, one.predicted) == (str(review["label"]), made.prediction.label)
        assert one.right == (made.prediction.index == review["label"])
        assert one.length == len(made.features)
    right = found.slice(lambda one: bool(one.right))
    wrong = found.slice(lambda one: not one.right)
    assert {row.example for row in right.rows} | {row.example for row in wrong.rows} == set(range(6))
    assert not found.slice(lambda one: False).scores


def failing(monkeypatch: pytest.MonkeyPatch, bad: str, method: str) -> None:
    real: Callable[..., Any] = explanations.explain_many

    def explain_many(requests: list[Request]) -> Any:
        if any(r.method == method and r.example.as_plain().get("text") == bad for r in requests):
            raise ExegesisError("model bert: its logits are not\nfinite numbers.")
        return real(requests)

    monkeypatch.setattr(explanations, "explain_many", explain_many)


def test_an_example_that_fails_is_skipped_and_the_others_are_as_they_were(
    reviews: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        failing(patch, str(REVIEWS[1]["text"]), METHODS[1])
        found = evaluate([model()], reviews, METHODS)
    whole = evaluate([model()], reviews, METHODS)
    lost = [row for row in whole.rows if row not in set(found.rows)]
    assert {row.example for row in lost if row.of.metric != "token_f1"} == {1}
    assert all(METHODS[1] in (row.of.method, row.of.against) for row in lost)
    assert {skip.reason for skip in found.skips if skip.example == 1} == {
        "model bert: its logits are not finite numbers."
    }
    assert {skip.of.metric for skip in found.skips if skip.example == 1} == set(found.plan.metrics)


def test_what_cannot_be_predicted_is_tried_by_one_method_and_a_broken_model_by_no_more_examples(
    reviews: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def explain_many(requests: list[Request]) -> Any:
        tried.extend(request.method for request in requests)
        raise ExegesisError("model bert: its weights are damaged.")

    monkeypatch.setattr(explanations, "explain_many", explain_many)
    monkeypatch.setattr(experiment, "load_classifier", lambda *model: explain_many([]))
    monkeypatch.setattr(samples, "GROUP_SIZE", 2)
    found = evaluate([model()], reviews, METHODS)
    assert set(tried) == {"random"}
    assert len(tried) == 4, "two examples together, and each alone"
    assert not found.rows
    assert {score.skipped.get("model bert: its weights are damaged.") for score in found.scores} == {6}


def test_sensitivity_only_where_it_is_asked_for(reviews: str) -> None:
    found = evaluate([model()], reviews, ["gradient", *METHODS], ["sensitivity"], examples=2, samples=2)
    by_method = {score.method: score for score in found.scores}
    assert by_method["gradient"].skipped == {"all scores are zero": 2}
    assert by_method[METHODS[0]].n == 2
    assert "sensitivity" not in evaluate([model()], reviews, METHODS[:1], examples=1).plan.metrics


def test_several_models_are_told_apart(reviews: str) -> None:
    other = str(checkpoint("roberta"))
    found = evaluate([model(), other], reviews, ["random"], ["complexity", "comprehensiveness"], examples=3, seed=5)
    assert {(score.model, score.metric) for score in found.scores} == {
        (name, metric) for name in (model(), other) for metric in ("complexity", "comprehensiveness")
    }
    assert len({row.example for row in found.rows}) == 3
    same = evaluate([model()], reviews, ["random"], ["complexity"], examples=3, seed=5)
    assert {row.example for row in same.rows} == {row.example for row in found.rows}, "the seed draws them"


def test_short_texts_are_worked_on_first_and_facts_stand_in_the_data_sets_order(reviews: str) -> None:
    found = evaluate([model()], reviews, ["random"], ["complexity"])
    lengths = [len(str(REVIEWS[row.example]["text"])) for row in found.rows]
    assert lengths == sorted(lengths)
    assert [one.example for one in found.facts] == list(range(6))


def test_progress_is_told_and_work_is_stopped(reviews: str) -> None:
    seen: list[tuple[int, int]] = []
    evaluate([model()], reviews, ["random"], report=lambda done, total, label: seen.append((done, total)))
    assert seen[0] == (0, 6)
    assert seen[-1] == (6, 6)
    token = CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        evaluate([model()], reviews, ["random"], seed=1, cancel=token)
