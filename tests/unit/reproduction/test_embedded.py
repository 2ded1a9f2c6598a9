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
from engine.evaluation.evaluate import carry_out
from engine.evaluation.plan import Plan
from engine.jobs.evaluating import plan_of
from engine.reproduction.asked import Asked, experiments
from engine.reproduction.claims import declared
from engine.reproduction.intervals import widened
from engine.reproduction.outcome import Reproduction, from_plain
from engine.reproduction.run import kept, reproduce
from engine.reproduction.scales import EMBEDDED
from engine.reproduction.verdicts import FINDINGS, LABELS, TWIN, VERDICTS
from engine.reproduction.words import decides
from engine.reproduction.writing import markdown
from tests.unit.reproduction.standing_in import take_as_learned, without_models

EXAMPLES = 3


@pytest.fixture(scope="module")
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EXEGESIS_HOME", str(tmp_path_factory.mktemp("home")))
        take_as_learned(patch)
        yield


@pytest.fixture(scope="module")
def asked(small: dict[str, str]) -> Asked:
    return Asked(examples=EXAMPLES, places=small)


@pytest.fixture(scope="module")
def found(own_home: None, asked: Asked) -> Reproduction:
    job = jobs.run_now(jobs.create("reproduce", asked.as_plain()))
    assert (job.state, job.error) == ("done", "")
    assert job.title == "Reproduce the thesis at embedded scale"
    made = kept(asked)
    assert made is not None
    return made


@pytest.mark.slow(reason="a whole reproduction, on stand-ins")
def test_every_declared_claim_has_a_verdict_and_numbers(found: Reproduction) -> None:
    assert [one.id for one in found.outcomes] == [claim.id for claim in declared().claims]
    assert sum(found.counts.values()) == len(found.outcomes)
    assert found.counts["holds"] == 0, "so few examples show nothing"
    assert [one.id for one in found.outcomes if one.verdict == TWIN] == ["nli-lime-before-gradients"]
    for one in found.outcomes:
        if one.verdict == TWIN:
            continue
        assert one.numbers, one.why
        assert bool(one.on_bound or one.settled_by) == (one.verdict == "undecided")
        assert one.settled_by is None or one.settled_by > EXAMPLES
        for number in one.numbers:
            assert number.wide_low <= number.low < number.high <= number.wide_high
            assert number.low <= number.value <= number.high


@pytest.mark.slow(reason="a whole reproduction, on stand-ins")
def test_a_number_is_what_the_evaluation_says(found: Reproduction, asked: Asked) -> None:
    [outcome] = [one for one in found.outcomes if one.id == "families-attention-gpt2-last"]
    model = asked.places["gpt2-marked"]
    plan = Plan((model,), asked.places["reviews-marked"], ("attention_rollout",), ("mean_rank_pct",), EXAMPLES)
    rows = [row.value for row in carry_out(plan).rows if row.of.method == "attention_rollout"]
    number = outcome.numbers[1]
    assert (number.name, number.n) == ("attention_rollout", EXAMPLES)
    assert number.value == pytest.approx(np.mean(rows))
    found_by_it = widened(np.array(rows), 0, 0.05)
    assert number.low <= found_by_it[0]
    assert number.high >= found_by_it[1], "of so few examples there is room for others"


@pytest.mark.slow(reason="a whole reproduction, on stand-ins")
def test_tasks_with_one_data_set_are_counted_once(found: Reproduction) -> None:
    [outcome] = [one for one in found.outcomes if one.id == "nli-faithful"]
    assert len(outcome.entries) == 2 * 3 * 4, "two metrics, three methods against four; one data set for two tasks"
    assert all(number.name.startswith("nli, ") for number in outcome.numbers)


@pytest.mark.slow(reason="a whole reproduction, on stand-ins")
def test_a_second_run_runs_no_model_and_finds_the_same(
    found: Reproduction, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_models(monkeypatch)
    assert reproduce(asked) == found
    assert from_plain(json.loads(json.dumps(found.as_plain()))) == found


@pytest.mark.slow(reason="a whole reproduction, on stand-ins")
def test_the_plans_of_the_report_open_from_the_cache(found: Reproduction, monkeypatch: pytest.MonkeyPatch) -> None:
    without_models(monkeypatch)
    for experiment in found.experiments:
        assert (carry_out(plan_of(experiment.plan)).asked, experiment.why) == (0, "")
    assert [one.name for one in found.experiments] == [
        "marked, T5 sizes", "nli, T5 sizes", "marked, architectures", "nli, architectures",
    ]  # fmt: skip


@pytest.mark.slow(reason="a whole reproduction, on stand-ins")
def test_the_report_names_its_command_and_holds_every_number(found: Reproduction, asked: Asked) -> None:
    text = markdown(found, declared())
    first, *rest = text.splitlines()
    command = rf"exegesis reproduce thesis --scale embedded --examples {EXAMPLES} --seed 0 --places places\.json"
    assert re.fullmatch(
        rf"`{command}`, seed 0, Exegesis \S+ torch \S+ transformers \S+ numpy \S+ claims [0-9a-f]+", first
    )
    assert first.endswith(declared().digest)
    assert "/" not in first, "no folder of this machine"
    assert f"`places.json` names folders for: {', '.join(sorted(asked.places))}." in rest
    assert any(line.startswith("MultiNLI and e-SNLI are stood for by one data set") for line in rest)
    assert declared().revised in text
    for claim, one in zip(declared().claims, found.outcomes, strict=True):
        assert f"### {claim.title}: {one.verdict}" in rest
        assert f'<a id="{claim.id}"></a>' in rest
        assert f"| [{claim.title}](#{claim.id}) | {one.verdict} |" in text, "in the overview"
        assert decides(claim, one, EMBEDDED) in text
    rows = [line for line in rest if re.fullmatch(r"\|.*\| (yes|no|open) \|", line)]
    assert len(rows) == sum(len(one.numbers) for one in found.outcomes)
    assert markdown(found, declared()) == text


@pytest.mark.slow(reason="a whole reproduction, on stand-ins")
def test_claims_of_models_that_are_not_there_are_not_run_and_say_so(
    found: Reproduction, asked: Asked, tmp_path: Path
) -> None:
    without = Asked(examples=EXAMPLES, places={**asked.places, "gpt2-marked": str(tmp_path / "nowhere")})
    made = reproduce(without)
    lost = {one.id for one in made.outcomes if "gpt2-marked" in one.why}
    needing = {
        claim.id
        for claim in declared().claims
        for contrast in claim.contrasts
        for term in contrast.terms
        if "gpt2" in term.models and term.task == "marked"
    }
    assert lost == needing != set()
    assert all("gpt2-marked: model: no folder" in one.why for one in made.outcomes if one.id in lost)
    [model] = [one for one in made.models if one.name == "gpt2-marked"]
    assert "no folder" in model.why
    assert f"{made.counts['not run']} not run" in markdown(made, declared())
    assert all(one.verdict == "not run" for one in made.outcomes if one.id in lost)


def test_a_data_set_that_cannot_be_read_leaves_its_claims_out(asked: Asked, own_home: None, tmp_path: Path) -> None:
    places = {**asked.places, "nli": str(tmp_path / "none.jsonl")}
    some = Asked(examples=EXAMPLES, places=places, claims=("nli-harder", "families-attention-gpt2-last"))
    job = jobs.run_now(jobs.create("reproduce", some.as_plain()))
    assert (job.state, job.error) == ("done", "")
    made = kept(some)
    assert made is not None
    assert [one.verdict == "not run" for one in made.outcomes] == [True, False]
    assert "none.jsonl" in made.outcomes[0].why


def test_only_what_the_chosen_claims_need_is_evaluated(asked: Asked) -> None:
    some = Asked(examples=EXAMPLES, places=asked.places, claims=("families-gpt2-close",))
    [only] = experiments(some)
    assert [player.name for player in only.players] == ["bert-marked", "roberta-marked", "t5-marked", "gpt2-marked"]
    whole = {one.name: one for one in experiments(asked)}
    assert only.metrics == whole[only.name].metrics, "so that its work is found by a run of all claims"


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
    assert len(set(VERDICTS)) == len(VERDICTS) == len(FINDINGS) + len(LABELS)
