"""Which outcomes are no findings: at chance, by construction, at a ceiling, with the same numbers as another claim."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from components.reproduction.state import read
from engine.explain import explain
from engine.models import catalog
from engine.reproduction.claims import FOLDER, Claim, declaration, load_declaration
from engine.reproduction.documents import topic_examination
from engine.reproduction.estimates import ExampleFindings
from engine.reproduction.papers import EMBEDDED, TOPICS
from engine.reproduction.report import (
    ERROR_RATE,
    ClaimNumber,
    ClaimOutcome,
    ModelSummary,
    correlation_p_value,
    report_from_plain,
    share_p_value,
)
from engine.reproduction.revise import least_means
from engine.reproduction.run import judge_claims, label_outcomes
from engine.reproduction.shipped import ShippedReport, default_query, document_file, shipped_report
from engine.reproduction.thesis import ThesisQuery
from engine.reproduction.wording import decisive_number, summary_sentence
from engine.request import Example, Request
from tests.project import ROOT
from tests.tiny import save_checkpoint
from tests.unit.reproduction.stand_ins import report_of

UNLEARNED = "not run: the model has not learned the task"
HOLDS = ClaimNumber("lime", 0.95, 0.93, 0.97, 0.92, 0.98, 100, "holds")


@pytest.mark.parametrize(("hits", "n", "classes"), [(33, 100, 3), (37, 100, 3), (42, 100, 3), (9, 16, 2), (3, 3, 2)])
def test_chance_is_told_by_the_exact_binomial_test(hits: int, n: int, classes: int) -> None:
    at_least = sum(math.comb(n, k) * (classes - 1) ** (n - k) for k in range(hits, n + 1)) / classes**n
    assert share_p_value(hits, n, classes) == pytest.approx(at_least)
    model = ModelSummary("m", "d", "", hits / n, n, classes=classes)
    assert (model.p_value, model.unlearned) == (pytest.approx(at_least), at_least > ERROR_RATE)
    assert not replace(model, accuracy=None).unlearned, "what is not known is held against no model"


def test_a_regression_has_learned_where_its_scores_correlate() -> None:
    random = np.random.default_rng(0)
    labels = random.normal(size=40)
    for share in (-0.5, 0.0, 0.2, 0.5):
        scores = share * labels + random.normal(size=40)
        expected = pearsonr(labels, scores, alternative="greater")
        assert correlation_p_value(float(expected.statistic), 40) == pytest.approx(expected.pvalue)
    assert (correlation_p_value(1.0, 40), correlation_p_value(1.0, 2)) == (0.0, 1.0)


def outcome(id: str, **models: float) -> ClaimOutcome:
    """Of a claim that held, on models that are so often right on 100 examples of three classes."""
    query = ThesisQuery(claims=(id,))
    data = EMBEDDED.tasks["mnli"].dataset
    known = [ModelSummary(name.replace("_", "-"), data, "", share, 100, classes=3) for name, share in models.items()]
    [one] = label_outcomes(query, [ClaimOutcome(id, "holds", ((HOLDS,),))], known)
    return one


def test_a_claim_is_not_run_where_one_of_its_models_is_at_chance() -> None:
    held = outcome("families-nli-bert-roberta", bert_nli=0.6, roberta_nli=0.42)
    assert (held.verdict, held.numbers) == ("holds", (HOLDS,))
    chance = outcome("families-nli-bert-roberta", bert_nli=0.6, roberta_nli=0.40, gpt2_nli=0.2)
    assert (chance.verdict, chance.numbers) == (UNLEARNED, ())
    assert chance.why == "roberta-nli is right on 40 of 100 examples (chance 1/3, p = 0.097)."


def test_claims_that_one_data_set_gives_the_same_numbers_are_counted_once() -> None:
    ids = ("nli-gradients-before-lime", "nli-lime-before-gradients")
    first, second = (
        tuple(one.verdict for one in label_outcomes(query, [ClaimOutcome(id, "holds", ((HOLDS,),)) for id in ids], []))
        for query in (ThesisQuery(claims=ids), ThesisQuery("full", claims=ids))
    )
    assert first == ("holds", "counted with another claim")
    assert second == ("holds", "holds"), "there each has a data set of its own"
    whole = label_outcomes(
        ThesisQuery(), [ClaimOutcome(one.id, "holds", ((HOLDS,),)) for one in declaration().claims], []
    )
    assert [one.id for one in whole if one.verdict == first[1]] == [ids[1]]


def test_what_a_causal_mask_makes_true_is_no_finding() -> None:
    id = "families-attention-gpt2-last"
    assert outcome(id).verdict == "true by construction"
    [one] = label_outcomes(ThesisQuery(claims=(id,)), [ClaimOutcome(id, "does not hold", ((HOLDS,),))], [])
    assert one.verdict == "does not hold", "then it is no construction"


def test_random_weights_do_the_same_as_is_said_of_the_causal_mask(tmp_path: Path, home: Path) -> None:
    text = Example("the plot drags and the ending is not funny")
    maps: dict[str, list[np.ndarray]] = {"attention_mean": [], "attention_rollout": []}
    for seed in range(3):
        model = str(save_checkpoint("gpt2", tmp_path / str(seed), seed=seed))
        for method, found in maps.items():
            made = explain(Request(model, method, text))
            found.append(made.scores[~np.array([token.special for token in made.tokens])])
    for found in maps.values():
        assert all(scores.argmin() == len(scores) - 1 for scores in found), "the last word is last"
        assert min(spearmanr(one, other).statistic for one in found for other in found) > 0.85


CEILING = {"bert": 1.0, "roberta": 0.99, "t5": 1.0}


def findings_of(shares: dict[str, float], metric: str, **more: dict[str, float]) -> ExampleFindings:
    """Overlaps of 0 and 1 in 100 examples; `more`: constants of other metrics. By part, LIME and the ensembles."""
    values: dict[Any, dict[int, float]] = {}
    for method in ("lime", "kernel_shap", "integrated_gradients", "ensemble_all"):
        for part, share in shares.items():
            values["marked", part, method, metric] = {i: float(i >= round(100 * (1 - share))) for i in range(100)}
            for other, own in more.items():
                values["marked", part, method, other] = dict.fromkeys(range(100), own[part])
    return ExampleFindings(values)


@pytest.mark.parametrize(("worst", "verdict"), [(0.99, "at a ceiling"), (0.98, "holds")])
def test_nothing_is_told_apart_where_all_that_is_compared_is_the_best(worst: float, verdict: str) -> None:
    query = ThesisQuery(claims=("families-shap-even",))
    judged = judge_claims(query, findings_of({**CEILING, "bert": worst}, "gt_overlap"))
    [one] = label_outcomes(query, judged, [])
    assert (one.verdict, judged[0].verdict) == (verdict, "holds")
    assert one.numbers == judged[0].numbers, "the numbers stay to be seen"


@pytest.mark.parametrize(("share", "verdict"), [(1.0, "at a ceiling"), (0.5, "holds")])
def test_ranks_are_at_a_ceiling_where_the_marked_words_are_the_top_ones(share: float, verdict: str) -> None:
    query = ThesisQuery(claims=("families-ensemble-gpt2-rank",))
    judged = judge_claims(query, findings_of({"gpt2": share}, "gt_overlap", mean_rank_pct={"gpt2": 0.05}))
    assert label_outcomes(query, judged, [])[0].verdict == verdict


def test_what_stored_sums_leave_possible_is_found() -> None:
    """a - b = 0 and (a + b + c) / 3 = 1 leave 1 for all; d - e = 0.2 leaves at least 0.2 and 0."""
    a, b, c, d, e = (("marked", name, "t5") for name in "abcde")
    sums = [({a: 1.0, b: -1.0}, 0.0), ({a: 1 / 3, b: 1 / 3, c: 1 / 3}, 1.0), ({d: 1.0, e: -1.0}, 0.2)]
    found = least_means(sums)
    assert [found[one] for one in (a, b, c, d, e)] == pytest.approx([1, 1, 1, 0.2, 0], abs=1e-4)


def test_only_findings_are_counted_as_such() -> None:
    report = report_of(ThesisQuery(), "bert-marked")
    verdicts = ("holds", "holds", "undecided", "true by construction", "at a ceiling", UNLEARNED, "not run",
                "counted with another claim")  # fmt: skip
    outcomes = tuple(ClaimOutcome(str(at), verdict) for at, verdict in enumerate(verdicts))  # type: ignore[arg-type]
    assert summary_sentence(replace(report, outcomes=outcomes)) == (
        "Of 7 claims: 2 hold, 1 undecided. Not counted as findings: 1 true by construction, 1 at a ceiling, "
        "1 not run (the model has not learned the task), 1 not run. 1 more is counted with another claim."
    )


def test_words_of_older_reports_and_links_are_read() -> None:
    plain = json.loads(json.dumps(report_of(ThesisQuery(), "bert-marked").as_plain()))
    older = json.loads(json.dumps(plain).replace('"undecided"', '"cannot be told"'))
    for one in older["outcomes"]:
        for entry in one["entries"]:
            for number in entry:
                del number["at_best"]
    assert report_from_plain(older) == report_from_plain(plain)
    state, said = read({"show": ["cannot be told", "holds"]})
    assert (state.show, said) == (("holds", "undecided"), [])


BEFORE = {
    "faithfulness": "875f63eaf0693f1bfc06218b85cab7758be8943352f423df2e8af260da74b4a3",
    "sanity": "d278a4cde498be36fce96985b7cc2b67b1288ce3b9a72929aa9e7313949047bb",
    "smat": "b5b208673a17d60f693da01b9c41ebc020f0cdef415c9862e3b808a7083ac9d1",
}
"""Of what was declared before the verdicts were known."""
ON_OTHER_MODELS = "075a1d7cedf0b02bf7841420f5590ba8aa432cc9c74b238da91a762bf745affb"
"""Of the sanity checks, before they were asked of models that need two words together."""
BEFORE_NEW_DATA = {
    "faithfulness": "4c239388c0b469cf2abaab3641304833288b85b54ddca72b5d505c603ce75507",
    "sanity": "4bf604f51492e240ba8ac672f1fe7f4eb5040ede060b2110fc4743e0ef5cded8",
    "smat": "adfed94acf01b20fe31dc97ac9e9d47123225f63e21c6d45c0186aeb83859e98",
}
"""Before models that had learned their task stood for others, and before SMaT's verdicts had an error rate."""
BEFORE_MORE = {
    "faithfulness": "45b5a17433fb8b63fc245a5ca855133b2b1ddde68211669e6bec655abe6f5ef1",
    "smat": "589635debb86c7efe8350b20294be2a5b7dafdd8215b01b09757a0e13cbdf340",
}
"""Before more examples, and before SMaT had a baseline that gets the held-out examples."""
BEFORE_MORE_SEEDS = "eb86ef8f4e754065c0c2f8bb7857c9441b8e6a93a441979a09529872ea2bfdb2"
"""Of SMaT, before scores had 15 seeds."""
WITHOUT_A_LEAST = "3098660459e09b0e4539060d5d06110501d1adb9aa689e1954a88d7f17f86a88"
"""Of SMaT, while any difference counted, however small."""
WITH_ONE_SIZE = "0632a845564952d06b8ae4e4fdeea0a733b972dd43db9e111f0b4d4bab292439"
"""Of SMaT, while pictures and scores had one train size."""
WITH_FIVE_SEEDS = "d4bcc97d321d124bc2cb8dd5af744255935c8d941b3d7289cf679766accb1e9d"
"""Of SMaT, while texts and pictures had five seeds."""
BEFORE_MORE_ATTACKS = "0252f4f26c5133c04938de539016d624e96128a0e4a8d9f1b04f74212ff6e711"
"""Of the sanity checks, before 100 examples were attacked."""


@pytest.mark.parametrize(("topic", "digest"), BEFORE.items(), ids=BEFORE)
def test_the_revision_moved_no_claim(topic: str, digest: str, tmp_path: Path) -> None:
    plain = json.loads((FOLDER / TOPICS[topic].declaration).read_text(encoding="utf-8"))
    if topic == "smat":
        plain["revised"], revision = plain["revised"].split(" Revised a sixth time on 2026-11-30")
        assert revision.endswith(f"Without this revision the digest is {WITH_ONE_SIZE}.")
        for term in (term for one in plain["claims"] if "normalisation-" in one["id"] for term in one["sum"]):
            assert (term["size"], term.update(size="middle")) == ("large", None)
        (tmp_path / "with_one_size.json").write_text(json.dumps(plain), encoding="utf-8")
        assert load_declaration(tmp_path / "with_one_size.json", topic).digest == WITH_ONE_SIZE
        plain["revised"], revision = plain["revised"].split(" Revised a fifth time on 2026-11-30")
        assert revision.endswith(f"Without this revision the digest is {WITHOUT_A_LEAST}.")
        assert plain["seeds"].pop("paper") == 5
        (tmp_path / "without_a_least.json").write_text(json.dumps(plain), encoding="utf-8")
        assert load_declaration(tmp_path / "without_a_least.json", topic).digest == WITHOUT_A_LEAST
        plain["revised"], revision = plain["revised"].split(" Revised a fourth time on 2026-11-29")
        assert revision.endswith(f"Without this revision the digest is {WITH_FIVE_SEEDS}.")
        (tmp_path / "with_five_seeds.json").write_text(json.dumps(plain), encoding="utf-8")
        assert load_declaration(tmp_path / "with_five_seeds.json", topic).digest == WITH_FIVE_SEEDS
        plain["revised"], revision = plain["revised"].split(" Revised once more on 2026-11-29")
        assert revision.endswith(f"Without this revision the digest is {BEFORE_MORE_SEEDS}.")
        plain["seeds"]["normalisations"] = 3
        (tmp_path / "before_more_seeds.json").write_text(json.dumps(plain), encoding="utf-8")
        assert load_declaration(tmp_path / "before_more_seeds.json", topic).digest == BEFORE_MORE_SEEDS
    if topic == "sanity":
        plain["revised"], revision = plain["revised"].split(" Revised on 2026-11-29")
        assert revision.endswith(f"Without this revision the digest is {BEFORE_MORE_ATTACKS}.")
        plain["settings"]["embedded"]["attack"]["examples"] = 16
        (tmp_path / "before_more_attacks.json").write_text(json.dumps(plain), encoding="utf-8")
        assert load_declaration(tmp_path / "before_more_attacks.json", topic).digest == BEFORE_MORE_ATTACKS
    if topic in BEFORE_MORE:
        plain = as_before_more(plain, topic)
        (tmp_path / "before_more.json").write_text(json.dumps(plain), encoding="utf-8")
        assert load_declaration(tmp_path / "before_more.json", topic).digest == BEFORE_MORE[topic]
    plain["revised"], revision = plain["revised"].split(" Revised on 2026-11-28")
    assert revision.endswith(f"Without this revision the digest is {BEFORE_NEW_DATA[topic]}.")
    if topic == "smat":
        plain["examples"] = {"embedded": 100, "full": 100}
    (tmp_path / "before_new_data.json").write_text(json.dumps(plain), encoding="utf-8")
    assert load_declaration(tmp_path / "before_new_data.json", topic).digest == BEFORE_NEW_DATA[topic]
    if topic == "sanity":
        plain = as_before_the_new_models(plain)
        (tmp_path / "other_models.json").write_text(json.dumps(plain), encoding="utf-8")
        assert load_declaration(tmp_path / "other_models.json", topic).digest == ON_OTHER_MODELS
    plain["revised"], revision = plain["revised"].split(" Revised on 2026-11-24")
    assert revision.endswith(f"Without this revision the digest is {digest}.")
    assert [one.pop("by_construction") for one in plain["claims"] if "by_construction" in one] or topic == "smat"
    if topic == "sanity":
        attack = plain["settings"]["embedded"]["attack"]["attack"]
        assert (attack.pop("quantity"), attack.pop("starts")) == ("mixed", 1), "as those attacks were made"
    (tmp_path / "before.json").write_text(json.dumps(plain), encoding="utf-8")
    assert load_declaration(tmp_path / "before.json", topic).digest == digest


def as_before_more(plain: dict[str, Any], topic: str) -> dict[str, Any]:
    """The declaration without its last revision: fewer examples, and only the paper's claims."""
    revised, revision = plain["revised"].split(" Revised again on 2026-11-28")
    assert revision.endswith(f"Without this revision the digest is {BEFORE_MORE[topic]}.")
    claims = [one for one in plain["claims"] if not one["section"].endswith("not in the paper")]
    examples = {"embedded": 100, "full": 500} if topic == "faithfulness" else plain["examples"]
    return {**plain, "revised": revised, "claims": claims, "examples": examples}


def as_before_the_new_models(plain: dict[str, Any]) -> dict[str, Any]:
    """The declaration of the sanity checks without its last revision: the task is called `marked` again."""
    before = json.loads(json.dumps(plain).replace('"context"', '"marked"'))
    before["revised"], revision = before["revised"].split(" Revised on 2026-11-27")
    assert revision.endswith(f"Without this revision the digest is {ON_OTHER_MODELS}.")
    return before


REPORTS = {topic: report for topic in TOPICS if (report := shipped_report(topic)) is not None}


@pytest.mark.parametrize(("topic", "shipped"), REPORTS.items(), ids=REPORTS)
def test_shipped_reports_have_no_verdict_on_a_model_at_chance(topic: str, shipped: ShippedReport) -> None:
    report = shipped.report
    used = [one for models in default_query(topic).models_of_claims(report.models).values() for one in models]
    assert not [one.name for one in used if one.p_value is None or one.p_value > ERROR_RATE]
    assert not [one.id for one in report.outcomes if one.verdict == UNLEARNED]
    lines = document_file(topic).read_text(encoding="utf-8").splitlines()
    head = " ".join(lines[: lines.index("| section | claim | verdict | rule | deciding number |")])
    assert "logit" in head
    assert "probability" in head
    assert summary_sentence(report) in head


@pytest.mark.parametrize("topic", REPORTS)
def test_the_deciding_number_has_the_verdict_of_its_claim(topic: str) -> None:
    claims = {claim.id: claim for claim in default_query(topic).selected_claims}
    decided = [one for one in REPORTS[topic].report.outcomes if one.verdict in ("holds", "does not hold")]
    assert decided
    assert all(decisive_number(claims[one.id], one).verdict == one.verdict for one in decided)


@pytest.mark.parametrize("topic", ["faithfulness", "sanity"])
def test_verdicts_on_other_trainings_are_counted_where_they_are_told(topic: str) -> None:
    claims = declaration(topic)
    examination = topic_examination(TOPICS[topic], claims.digest)
    assert examination is not None
    verdicts = {one.id: one.verdict for one in REPORTS[topic].report.outcomes}
    others, told = examination.trainings, examination.how
    judged = {
        claim.id
        for claim in claims.claims
        if claim.tasks in (("marked",), ("context",)) or (topic == "faithfulness" and _on_families(claim))
    }
    assert others.keys() == judged
    assert {len(own) for own in others.values()} == {2}
    same = [id for id, own in others.items() if set(own) == {verdicts[id]}]
    against = [id for id, own in others.items() if {"holds", "does not hold"} <= {verdicts[id], *own}]
    assert f"{len(same)} of the claims have the same verdict with all 3 trainings" in told
    assert all(f"`{id}`" in told for id in against)
    assert examination.overall.keys() == others.keys()
    counts = Counter(examination.overall.values())
    assert f"{counts['holds']} hold, {counts['does not hold']} do not, and {counts['undecided']} are undecided" in told
    assert all(examination.overall[id] == "undecided" for id in against)
    assert told in document_file(topic).read_text(encoding="utf-8")
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"{len(same)} of the {len(others)} claims on" in readme
    assert (
        f"{counts['holds']} hold, {counts['does not hold']} do not, and {counts['undecided']} are undecided." in readme
    )


def _on_families(claim: Claim) -> bool:
    models = {model for contrast in claim.contrasts for term in contrast.terms for model in term.models}
    return bool(models) and models <= {"t5", "bert", "roberta", "gpt2"}


def test_counts_of_the_readme_are_those_of_the_shipped_reports() -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert REPORTS.keys() == TOPICS.keys()
    for shipped in REPORTS.values():
        assert summary_sentence(shipped.report).rstrip(".") in readme


def test_accuracies_of_the_shipped_reports_are_those_of_the_models_here(home: Path) -> None:
    """One of them, by its logits alone."""
    from engine.data.datasets import load
    from engine.experiments.sample import draw_sample
    from engine.predictions import predictions

    [model] = [one for one in REPORTS["sanity"].report.models if one.name == "t5-mini-nli"]
    data, places = load(model.data, None), draw_sample("text", model.data, None, 50, 0).indices
    predicted = predictions("t5-mini-nli", [data[place].example for place in places])
    names = [data.label_names[data[place].label] for place in places]
    right = [
        prediction.labels[int(np.argmax(prediction.logits))] == name
        for prediction, name in zip(predicted, names, strict=True)
    ]
    assert (model.n, model.accuracy) == (50, sum(right) / 50)
    assert model.revision == catalog.revision("t5-mini-nli")
