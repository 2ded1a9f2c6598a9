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
from engine.reproduction.rehearsal import PUBLISHED_EXAMPLES, rehearsal_of, rehearse, rehearse_students
from engine.reproduction.stand_ins import GENERATED, SHAPES, random_module
from engine.reproduction.thesis import ThesisQuery
from engine.scaffold.plan import SETTINGS
from engine.scaffold.presets import PRESETS
from tests.unit.reproduction.stand_ins import shrink_published_bases, without_models

PARAMETERS = {
    "google/t5-efficient-tiny": 15.58, "google/t5-efficient-mini": 31.23, "google/t5-efficient-small": 60.52,
    "google/t5-efficient-base": 222.93, "google-t5/t5-base": 222.90, "google-bert/bert-base-uncased": 109.48,
    "FacebookAI/roberta-base": 124.65, "openai-community/gpt2": 124.44, "google/electra-small-discriminator": 13.48,
    "google/vit-base-patch16-224-in21k": 86.39, "FacebookAI/xlm-roberta-base": 278.04,
}  # fmt: skip
"""Millions of parameters of the published bodies, T5 with its decoder: from their cards and papers."""
CLAIM = "families-attention-gpt2-last"


def test_it_has_every_base_of_the_full_scale() -> None:
    assert set(SHAPES) == {*FULL.bases.values(), *(one.base for one in PRESETS.values())}
    assert set(PUBLISHED_EXAMPLES) == {*(data.dataset for data in FULL.data), *PRESETS}
    assert set(GENERATED) == {"sst2", "multinli", "esnli", *PRESETS}


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


@pytest.mark.usefixtures("tiny")
def test_teachers_and_students_of_smat_are_counted_by_their_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = {one.name: one for one in rehearse_students(tmp_path)}
    assert len(parts) == len(PRESETS) * (1 + len(SETTINGS))
    sizes = json.loads((tmp_path / "rehearsal/models/imdb-electra-small/card.json").read_text())["sizes"]
    assert parts["teacher of imdb"].times == ceil(25_000 / 16) * 10 / ceil(sizes["train"] / 16)
    # At the full scale 30 passes over 500, 1,000 and 2,000 examples in batches of 32, five seeds.
    assert parts["student of imdb, smat"].times == 5 * 30 * sum(ceil(size / 32) for size in (500, 1000, 2000))
    more = 5 * 30 * sum(ceil((size + 200) / 32) for size in (500, 1000, 2000))
    assert parts["student of imdb, none_held_out"].times == more
    assert parts["student of cifar100, smat"].times == 5 * 30 * sum(ceil(size / 16) for size in (2250, 4500, 9000))
    assert min(one.seconds for one in parts.values()) > 0
    assert tuple(parts.values()) == rehearse_students(tmp_path), "done once"
