"""The whole embedded reproduction on tiny stand-ins: as a job, from the cache, with models missing, as a report."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import jobs
from engine.errors import UsageError
from engine.evaluation.plan import EVALUATE, EvaluationPlan
from engine.experiments.run import carry_out
from engine.reproduction.claims import declaration
from engine.reproduction.documents import markdown
from engine.reproduction.estimates import widened_interval
from engine.reproduction.papers import EMBEDDED
from engine.reproduction.report import DUPLICATE, FINDINGS, NON_FINDINGS, VERDICTS, Reproduction, report_from_plain
from engine.reproduction.run import cached_report, reproduce
from engine.reproduction.thesis import ThesisQuery
from engine.reproduction.wording import decision_text
from tests.unit.reproduction.stand_ins import take_as_learned, without_models

EXAMPLES = 3


@pytest.fixture(scope="module")
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EXEGESIS_HOME", str(tmp_path_factory.mktemp("home")))
        take_as_learned(patch)
        yield


@pytest.fixture(scope="module")
def query(small: dict[str, str]) -> ThesisQuery:
    return ThesisQuery(examples=EXAMPLES, places=small)


@pytest.fixture(scope="module")
def report(own_home: None, query: ThesisQuery) -> Reproduction:
    job = jobs.run_now(jobs.create("reproduce", query.as_plain()))
    assert (job.state, job.error) == ("done", "")
    assert job.title == "Reproduce the thesis at embedded scale"
    made = cached_report(query)
    assert made is not None
    return made


@pytest.mark.slow(reason="a whole reproduction, on stand-ins")
def test_every_declared_claim_has_a_verdict_and_numbers(report: Reproduction) -> None:
    assert [one.id for one in report.outcomes] == [claim.id for claim in declaration().claims]
    assert sum(report.counts.values()) == len(report.outcomes)
    assert report.counts["holds"] == 0, "so few examples show nothing"
    assert [one.id for one in report.outcomes if one.verdict == DUPLICATE] == ["nli-lime-before-gradients"]
    for one in report.outcomes:
        if one.verdict == DUPLICATE:
            continue
        assert one.numbers, one.why
        assert bool(one.on_bound or one.settled_by) == (one.verdict == "undecided")
        assert one.settled_by is None or one.settled_by > EXAMPLES
        for number in one.numbers:
            assert number.wide_low <= number.low < number.high <= number.wide_high
            assert number.low <= number.value <= number.high


@pytest.mark.slow(reason="a whole reproduction, on stand-ins")
def test_a_number_is_what_the_evaluation_says(report: Reproduction, query: ThesisQuery) -> None:
    [outcome] = [one for one in report.outcomes if one.id == "families-attention-gpt2-last"]
    model = query.places["gpt2-marked"]
    plan = EvaluationPlan(
        (model,), query.places["reviews-marked"], ("attention_rollout",), ("mean_rank_pct",), EXAMPLES
    )
    rows = [row.value for row in carry_out(plan).rows if row.of.method == "attention_rollout"]
    number = outcome.numbers[1]
    assert (number.name, number.n) == ("attention_rollout", EXAMPLES)
    assert number.value == pytest.approx(np.mean(rows))
    found_by_it = widened_interval(np.array(rows), 0, 0.05)
    assert number.low <= found_by_it[0]
    assert number.high >= found_by_it[1], "of so few examples there is room for others"


@pytest.mark.slow(reason="a whole reproduction, on stand-ins")
def test_tasks_with_one_data_set_are_counted_once(report: Reproduction) -> None:
    [outcome] = [one for one in report.outcomes if one.id == "nli-faithful"]
    assert len(outcome.entries) == 2 * 3 * 4, "two metrics, three methods against four; one data set for two tasks"
    assert all(number.name.startswith("nli, ") for number in outcome.numbers)


@pytest.mark.slow(reason="a whole reproduction, on stand-ins")
def test_a_second_run_runs_no_model_and_finds_the_same(
    report: Reproduction, query: ThesisQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_models(monkeypatch)
    assert reproduce(query) == report
    assert report_from_plain(json.loads(json.dumps(report.as_plain()))) == report


@pytest.mark.slow(reason="a whole reproduction, on stand-ins")
def test_the_plans_of_the_report_open_from_the_cache(report: Reproduction, monkeypatch: pytest.MonkeyPatch) -> None:
    without_models(monkeypatch)
    for experiment in report.experiments:
        assert (carry_out(EVALUATE.plan_of(experiment.plan)).requested_rows, experiment.why) == (0, "")
    assert [one.name for one in report.experiments] == [
        "marked, T5 sizes", "nli, T5 sizes", "marked, architectures", "nli, architectures",
    ]  # fmt: skip


@pytest.mark.slow(reason="a whole reproduction, on stand-ins")
def test_the_report_names_its_command_and_holds_every_number(report: Reproduction, query: ThesisQuery) -> None:
    text = markdown(report, query)
    first, *rest = text.splitlines()
    command = rf"exegesis reproduce thesis --scale embedded --examples {EXAMPLES} --seed 0 --places places\.json"
    assert re.fullmatch(
        rf"`{command}`, seed 0, Exegesis \S+ torch \S+ transformers \S+ numpy \S+ claims [0-9a-f]+", first
    )
    assert first.endswith(declaration().digest)
    assert "/" not in first, "no folder of this machine"
    assert f"`places.json` names folders for: {', '.join(sorted(query.places))}." in rest
    assert any(line.startswith("One data set stands in for both MultiNLI and e-SNLI") for line in rest)
    assert declaration().revised in text
    for claim, one in zip(declaration().claims, report.outcomes, strict=True):
        assert f"### {claim.title}: {one.verdict}" in rest
        assert f'<a id="{claim.id}"></a>' in rest
        assert f"| [{claim.title}](#{claim.id}) | {one.verdict} |" in text, "in the overview"
        assert decision_text(claim, one, EMBEDDED) in text
    rows = [line for line in rest if re.fullmatch(r"\|.*\| (yes|no|open) \|", line)]
    assert len(rows) == sum(len(one.numbers) for one in report.outcomes)
    assert markdown(report, query) == text


@pytest.mark.slow(reason="a whole reproduction, on stand-ins")
def test_claims_of_models_that_are_not_there_are_not_run_and_say_so(
    report: Reproduction, query: ThesisQuery, tmp_path: Path
) -> None:
    without = ThesisQuery(examples=EXAMPLES, places={**query.places, "gpt2-marked": str(tmp_path / "nowhere")})
    made = reproduce(without)
    lost = {one.id for one in made.outcomes if "gpt2-marked" in one.why}
    needing = {
        claim.id
        for claim in declaration().claims
        for contrast in claim.contrasts
        for term in contrast.terms
        if "gpt2" in term.models and term.task == "marked"
    }
    assert lost == needing != set()
    assert all("gpt2-marked: model: no folder" in one.why for one in made.outcomes if one.id in lost)
    [model] = [one for one in made.models if one.name == "gpt2-marked"]
    assert "no folder" in model.why
    assert f"{made.counts['not run']} not run" in markdown(made, ThesisQuery())
    assert all(one.verdict == "not run" for one in made.outcomes if one.id in lost)


def test_a_data_set_that_cannot_be_read_leaves_its_claims_out(
    query: ThesisQuery, own_home: None, tmp_path: Path
) -> None:
    places = {**query.places, EMBEDDED.tasks["mnli"].dataset: str(tmp_path / "none.jsonl")}
    some = ThesisQuery(examples=EXAMPLES, places=places, claims=("nli-harder", "families-attention-gpt2-last"))
    job = jobs.run_now(jobs.create("reproduce", some.as_plain()))
    assert (job.state, job.error) == ("done", "")
    made = cached_report(some)
    assert made is not None
    assert [one.verdict == "not run" for one in made.outcomes] == [True, False]
    assert "none.jsonl" in made.outcomes[0].why


def test_only_what_the_chosen_claims_need_is_evaluated(query: ThesisQuery) -> None:
    some = ThesisQuery(examples=EXAMPLES, places=query.places, claims=("families-gpt2-close",))
    [only] = some.experiments()
    assert [player.name for player in only.roles] == ["bert-marked", "roberta-marked", "t5-marked", "gpt2-marked"]
    whole = {one.name: one for one in query.experiments()}
    assert only.request.metrics == whole[only.name].request.metrics, "so that its work is found by a run of all claims"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"scale": "huge"}, "scale: unknown name 'huge'"),
        ({"claims": ["nothing"]}, "claims: unknown name 'nothing'"),
        ({"claims": "marked-best"}, "claims of a reproduce job: must be a list"),
        ({"places": ["x"]}, "places of a reproduce job: must be an object"),
        ({"examples": 1}, "examples: must be a whole number of at least 2, got 1"),
        ({"seed": -1}, "seed: must be a whole number of at least 0, got -1"),
        ({"size": 1}, "spec of a reproduce job: may have claims, examples"),
    ],
)
def test_what_no_job_can_be_made_of_is_refused(spec: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        jobs.create("reproduce", spec)


def test_verdicts_have_words_of_their_own() -> None:
    assert FINDINGS == ("holds", "does not hold", "undecided")
    assert len(set(VERDICTS)) == len(VERDICTS) == len(FINDINGS) + len(NON_FINDINGS)
