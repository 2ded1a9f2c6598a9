"""The rehearsal of the full scale: models of the published sizes, and all of it on tiny ones."""

from __future__ import annotations

import json
from math import ceil
from pathlib import Path

import pytest
import torch
import transformers

from engine.errors import UsageError
from engine.reproduction.papers import FULL
from engine.reproduction.rehearsal import PUBLISHED_TEXTS, SHAPES, random_module, rehearsal_of, rehearse
from engine.reproduction.thesis import ThesisQuery
from tests.unit.reproduction.stand_ins import shrink_published_bases, without_models

PARAMETERS = {
    "google/t5-efficient-tiny": 15.58, "google/t5-efficient-mini": 31.23, "google/t5-efficient-small": 60.52,
    "google/t5-efficient-base": 222.93, "google-t5/t5-base": 222.90, "google-bert/bert-base-uncased": 109.48,
    "FacebookAI/roberta-base": 124.65, "openai-community/gpt2": 124.44,
}  # fmt: skip
"""Millions of parameters of the published models, T5 with its decoder: from their cards and papers."""
CLAIM = "families-attention-gpt2-last"


def test_it_has_every_base_of_the_full_scale() -> None:
    assert set(SHAPES) == set(FULL.bases.values())
    assert set(PUBLISHED_TEXTS) == {data.dataset for data in FULL.data}


@pytest.mark.parametrize("base", SHAPES)
def test_a_base_has_as_many_parameters_as_the_published_one(base: str) -> None:
    family, differences = SHAPES[base]
    with torch.device("meta"):
        whole = transformers.AutoModel.from_config(transformers.AutoConfig.for_model(family, **differences))
        own = random_module(base)
    assert sum(one.numel() for one in whole.parameters()) / 1e6 == pytest.approx(PARAMETERS[base], abs=0.03)
    config = own.config.to_dict()
    assert {name: config[name] for name in differences} == dict(differences)


def test_other_scales_are_not_rehearsed() -> None:
    with pytest.raises(UsageError, match="--rehearse: applies to --scale full only, got embedded"):
        rehearsal_of(ThesisQuery())


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    shrink_published_bases(monkeypatch)


@pytest.mark.usefixtures("tiny")
def test_each_part_is_done_once_and_told_with_its_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = ThesisQuery("full", claims=(CLAIM,), folder=str(tmp_path))
    training, experiment = rehearse(query)
    assert training.name == "fine-tuning gpt2-sst2-marked"
    taught = json.loads((tmp_path / "rehearsal/models/gpt2-sst2-marked/card.json").read_text())["sizes"]["train"]
    assert training.times == ceil(67_349 / 16) * 10 / ceil(taught / 16), "ten epochs of SST-2 against one of these"
    assert (experiment.name, experiment.times) == ("evaluate gpt2-sst2-marked", 500 / 2)
    assert min(training.seconds, experiment.seconds) > 0
    assert experiment.memory > 2**20
    assert experiment.hours == experiment.seconds * 250 / 3600
    without_models(monkeypatch)
    assert rehearse(query) == (training, experiment)


@pytest.mark.usefixtures("tiny")
def test_attacks_take_few_steps_and_are_counted_by_them(tmp_path: Path) -> None:
    query = ThesisQuery("full", claims=("families-attack-unconstrained-gpt2",), folder=str(tmp_path), topic="sanity")
    *_, attack = rehearse(query)
    assert (attack.name, attack.times) == ("attack gpt2-sst2-marked", 16 / 2 * 500 / 2)
