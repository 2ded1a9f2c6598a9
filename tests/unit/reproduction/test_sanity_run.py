"""Randomizations and attacks from the job to the report, on a tiny stand-in and in few steps."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

import engine.attacks.attack
import engine.randomization.work
from engine import jobs
from engine.attacks.experiment import attack_examples
from engine.randomization.experiment import randomize
from engine.reproduction import asked as asking
from engine.reproduction.asked import Asked
from engine.reproduction.claims import Declared, declared
from engine.reproduction.run import kept, reproduce
from engine.reproduction.sources import GRADIENTS, RANDOMIZED
from tests.unit.reproduction.standing_in import take_as_learned, without_models

pytestmark = pytest.mark.usefixtures("home")

STEPS = 2
CLAIMS = ("families-random-gpt2", "families-attack-unconstrained-gpt2")


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """As declared, but one seed and two steps; what is random has learned enough."""
    take_as_learned(monkeypatch)

    def shorter(file: Path) -> Declared:
        settings = {"embedded": {"randomization": {"seeds": 1}, "attack": {"attack": {"steps": STEPS}}}}
        return dataclasses.replace(declared(file), settings=settings)

    monkeypatch.setattr(asking, "declared", shorter)


def test_a_run_finds_what_both_engines_find(
    small: dict[str, str], short: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {name: small[name] for name in ("gpt2-marked", "reviews-marked")}
    asked = Asked(examples=3, claims=CLAIMS, places=places, topic="sanity")
    job = jobs.run_now(jobs.create("reproduce", asked.as_plain()))
    assert (job.state, job.error, job.title) == ("done", "", "Reproduce the thesis at embedded scale, sanity")
    found = kept(asked)
    assert found is not None
    assert found.command.startswith("exegesis reproduce thesis --topic sanity --scale embedded --examples 3 --seed 0 ")
    assert [one.source for one in found.experiments] == ["randomization", "attack"]
    [model] = found.models
    assert (model.name, model.n, model.classes) == ("gpt2-marked", 3, 2), "how often it is right"
    random, attack = found.outcomes
    given: Any = (places["gpt2-marked"],), places["reviews-marked"]
    [one] = randomize(*given, RANDOMIZED, examples=3, seeds=1).models
    last = next(at for at, stage in enumerate(one.stages) if len(stage.parts) == one.blocks)
    by_hand = one.likeness[last, 0, one.methods.index("attention_mean"), 0].mean()
    assert random.numbers[0].name == "cascading_end, attention_mean"
    assert random.numbers[0].value == pytest.approx(by_hand)
    moved = attack_examples(*given, GRADIENTS, examples=3, attack={"steps": STEPS})
    wanted = ("probability_distance", "unconstrained")
    own = [row.value for row in moved.rows if (row.of.metric, row.of.objective) == wanted]
    assert attack.numbers[0].value == pytest.approx(sum(own) / len(own))
    without_models(monkeypatch)
    for module in (engine.attacks.attack, engine.randomization.work):
        monkeypatch.setattr(module, "load_classifier", lambda *asked: pytest.fail("nothing is left to run"))
    assert reproduce(asked) == found
