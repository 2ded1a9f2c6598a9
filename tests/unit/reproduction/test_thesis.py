"""What the thesis's experiments are told, and randomizations and attacks from the job to the report, in few steps."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

import engine.attacks.attack
import engine.randomization.chunks
from engine import jobs
from engine.attacks.experiment import attack_examples
from engine.attacks.experiment_result import METRICS
from engine.attacks.plan import METHODS, OBJECTIVES
from engine.errors import UsageError
from engine.randomization.experiment import randomize
from engine.randomization.plan import MODES, THESIS_METHODS
from engine.reproduction import claims, experiments
from engine.reproduction.claims import Declaration, declaration
from engine.reproduction.experiments import GRADIENTS, RANDOMIZED
from engine.reproduction.papers import ATTACKS, EMBEDDED, MEASURES
from engine.reproduction.run import cached_report, query_of, reproduce
from engine.reproduction.thesis import ThesisQuery, split_topics
from tests.unit.reproduction.stand_ins import take_as_learned, without_models

STEPS = 2
CLAIMS = ("families-random-gpt2", "families-attack-unconstrained-gpt2")
CONTEXT = "reviews-marked:context=true"
SANITY = ThesisQuery(topic="sanity")


def test_measures_are_those_of_both_engines() -> None:
    assert (set(GRADIENTS) <= set(METHODS), ATTACKS, experiments.MODES) == (True, OBJECTIVES, MODES)
    assert set(RANDOMIZED) == {*THESIS_METHODS, "gradient_l2"} - {"gradient"}, (
        "the L2 norm stands for the thesis's Gradients"
    )
    ours = {id for id, one in MEASURES.items() if one.source == "attack"}
    assert ours < {f"{objective}_{id}" for objective in OBJECTIVES for id in METRICS}


def test_every_experiment_is_told_what_was_declared() -> None:
    plans = {one.name: one.plan for one in SANITY.experiments()}
    assert list(plans) == [
        "context, T5 sizes, randomization", "nli, T5 sizes, randomization", "context, T5 sizes, attack",
        "context, architectures, randomization", "context, architectures, attack", "nli, architectures, attack",
    ]  # fmt: skip
    random, attack = plans["context, T5 sizes, randomization"], plans["nli, architectures, attack"]
    assert (random.examples, random.seeds, random.modes) == (50, 3, MODES)
    assert (attack.examples, attack.attack["steps"], attack.attack["alpha"]) == (100, 100, 1.0)
    assert attack.dataset == "nli-generated:sentences=1"


def test_the_full_scale_is_that_of_the_thesis() -> None:
    full = ThesisQuery("full", topic="sanity")
    random, attack = (full.request(source, EMBEDDED.data[0]) for source in ("randomization", "attack"))
    assert (random.examples, random.settings) == (50, {"seeds": 1})
    assert (attack.examples, attack.settings) == (16, {"attack": {"steps": 500}})


def test_fewer_examples_are_fewer_of_each() -> None:
    counts = {
        given: [
            ThesisQuery(examples=given, topic="sanity").request(source, EMBEDDED.data[0]).examples
            for source in ("randomization", "attack")
        ]
        for given in (2, 25, 100)
    }
    assert counts == {2: [2, 4], 25: [25, 50], 100: [100, 200]}


def test_one_command_asks_both_topics() -> None:
    both = split_topics(ThesisQuery(examples=100))
    assert [one.topic for one in both] == ["faithfulness", "sanity"]
    assert [one.count for one in both] == [100, 50], "of randomizations at most as many as declared"
    assert both[0].command() == "exegesis reproduce thesis --scale embedded --examples 100 --seed 0"
    assert both[1].command() == "exegesis reproduce thesis --topic sanity --scale embedded --examples 50 --seed 0"
    [one] = split_topics(ThesisQuery(examples=100, claims=("attack-rank",)))
    assert (one.topic, one.count) == ("sanity", 100)
    for given in (both[1], one):
        assert query_of("reproduce", given.as_plain()) == given
    with pytest.raises(UsageError, match=r"claims: unknown name 'attack-rnk'. Did you mean 'attack-rank'"):
        split_topics(ThesisQuery(claims=("attack-rnk",)))
    with pytest.raises(UsageError, match="topic: unknown name 'all'"):
        ThesisQuery(topic="all").check()


def test_real_data_have_claims_models_and_examples_of_their_own(tmp_path: Path) -> None:
    [query] = split_topics(ThesisQuery("data", folder=str(tmp_path)))
    query.check()
    assert (query.topic, query.command()) == ("data", "exegesis reproduce thesis --scale data --examples 250 --seed 0")
    experiments = query.experiments()
    assert [(one.name, one.request.examples) for one in experiments] == [
        ("sst2-marked, minilm", 250), ("nli, minilm", 250), ("movies, minilm", 60),
    ]  # fmt: skip
    [nli] = [one.plan for one in experiments if one.plan is not None]
    assert (nli.models, nli.dataset, nli.marks) == (("nli-minilm",), "snli-sick", "read")
    assert [one.config.command().partition(" --out")[0] for one in query.pending_fine_tunings()] == [
        f"exegesis train --base minilm --dataset {tmp_path}/data/sst2-marked",
        "exegesis train --base minilm --dataset movies:words=100",
    ]
    with pytest.raises(UsageError, match="scale: must be embedded or full for these claims, got 'data'"):
        ThesisQuery("data").check()
    with pytest.raises(UsageError, match="scale: must be data for these claims, got 'full'"):
        ThesisQuery("full", topic="data").check()


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """As declared, but one seed and two steps; what is random has learned enough."""
    take_as_learned(monkeypatch)

    def shorter(topic: str) -> Declaration:
        settings = {"embedded": {"randomization": {"seeds": 1}, "attack": {"attack": {"steps": STEPS}}}}
        return dataclasses.replace(declaration(topic), settings=settings)

    monkeypatch.setattr(claims, "declaration", shorter)


@pytest.mark.usefixtures("home", "short")
def test_a_run_finds_what_both_engines_find(small: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    places = {name: small[name] for name in ("gpt2-context", CONTEXT)}
    asked = ThesisQuery(examples=3, claims=CLAIMS, places=places, topic="sanity")
    job = jobs.run_now(jobs.create("reproduce", asked.as_plain()))
    assert (job.state, job.error, job.title) == ("done", "", "Reproduce the thesis at embedded scale, sanity")
    report = cached_report(asked)
    assert report is not None
    assert report.command.startswith("exegesis reproduce thesis --topic sanity --scale embedded --examples 3 --seed 0 ")
    assert [one.source for one in report.experiments] == ["randomization", "attack"]
    [model] = report.models
    assert (model.name, model.n, model.classes) == ("gpt2-context", 3, 2), "how often it is right"
    random, attack = report.outcomes
    given: Any = (places["gpt2-context"],), places[CONTEXT]
    [one] = randomize(*given, RANDOMIZED, examples=3, seeds=1).models
    last = next(at for at, stage in enumerate(one.stages) if len(stage.parts) == one.blocks)
    by_hand = one.likeness[last, 0, one.methods.index("attention_mean"), 0].mean()
    assert random.numbers[0].name == "cascading_end, attention_mean"
    assert random.numbers[0].value == pytest.approx(by_hand)
    moved = attack_examples(*given, GRADIENTS, examples=3, attack={"steps": STEPS})
    wanted = ("probability_distance", "unconstrained")
    own = [row.value for row in moved.rows if (row.key.metric, row.key.objective) == wanted]
    assert attack.numbers[0].value == pytest.approx(sum(own) / len(own))
    without_models(monkeypatch)
    for module in (engine.attacks.attack, engine.randomization.chunks):
        monkeypatch.setattr(module, "load_classifier", lambda *asked: pytest.fail("nothing is left to run"))
    assert reproduce(asked) == report
