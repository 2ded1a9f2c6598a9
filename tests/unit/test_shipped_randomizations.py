"""The randomizations that come with the project: there, small, current, their maps those that the numbers are of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from engine import shipped
from engine.experiments.run import finished, sample_of
from engine.randomization.chunks import ChunkMaps, ModelWork, find_chunk, stage_maps
from engine.randomization.plan import MODES
from engine.randomization.result import MEASURES
from engine.shipped.make import RANDOMIZATION_PLANS, round_floats
from engine.store import result_store
from tests.unit.test_shipped import forget_the_device

LARGEST_FILE = 300_000
METHOD = "gradient_x_input"
ROUNDED = 3e-4
"""Of a map's largest score: shipped maps have 12 binary digits."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty cache on the CPU, whatever the machine has."""
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path))
    monkeypatch.setenv("EXEGESIS_DEVICE", "cpu")
    forget_the_device()
    yield
    forget_the_device()


@pytest.mark.parametrize("kind", RANDOMIZATION_PLANS)
def test_a_shipped_randomization_is_found_whole_with_the_maps_that_its_numbers_are_of(kind: str) -> None:
    plan = RANDOMIZATION_PLANS[kind]
    found = finished(plan)
    assert found is not None, "run python -m engine.shipped.make"
    [one] = found.models
    assert one.complete
    assert not one.failed
    assert len(one.examples) == plan.examples
    listed = stage_maps(plan, one.model, sample_of(plan), one.examples[0])
    stages = [stage for stage in one.stages if stage.mode == MODES[0]]
    assert [each.stage for each in listed if each.stage is None or each.stage.mode == MODES[0]] == [None, *stages]
    first = listed[0].maps[METHOD]
    read = [not token.special for token in first.tokens]
    for each in (each for each in listed if each.stage in stages):
        assert set(each.maps) == set(plan.methods_with_baselines)
        rho = spearmanr(first.scores[read], each.maps[METHOD].scores[read]).statistic
        place = one.stages.index(each.stage), 0, one.methods.index(METHOD), MEASURES.index("spearman"), 0
        assert one.likeness[place] == pytest.approx(rho, abs=2e-3)
    assert result_store().stats().entries == 0, "they are looked up and not copied"


def test_they_are_small_enough_to_come_along() -> None:
    assert shipped.RANDOMIZATIONS.stat().st_size < LARGEST_FILE


def test_a_shipped_map_is_what_is_computed() -> None:
    plan = RANDOMIZATION_PLANS["text"]
    work = ModelWork(plan, plan.models[0], sample_of(plan))
    [chunk] = [one for one in work.chunks(((str(6),), 0), work.batches[0]) if one.method == METHOD]
    old = find_chunk(chunk)
    with shipped.ignore_entries():
        new = work.do([chunk])[chunk.key]
    assert isinstance(old, ChunkMaps)
    assert isinstance(new, ChunkMaps)
    for index, scores in new.scores.items():
        np.testing.assert_allclose(old.scores[index], scores, rtol=0, atol=ROUNDED * np.abs(scores).max())


def test_rounding_keeps_as_many_binary_digits_as_it_says() -> None:
    given = {"scores": np.array([1 / 3, -2e-9, 0.0, np.nan]), "likeness": np.array([1 / 3]), "why": np.array([-1, 2])}
    cut = round_floats(given)
    assert cut["scores"].tolist()[:3] == pytest.approx(given["scores"].tolist()[:3], rel=2**-12, abs=0)
    assert np.isnan(cut["scores"][3])
    assert cut["likeness"][0] == pytest.approx(1 / 3, rel=2**-24)
    assert (cut["likeness"][0] * 2**25).is_integer()
    assert cut["why"] is given["why"]
