"""Whole checks: the issue's own model, a slow loop, what is resumed, what is left out, and the usual cache."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import engine.randomization.chunks as work_module
from engine.data.sources import load_source
from engine.errors import Cancelled
from engine.experiments.run import finished, sample_of
from engine.explain import explain, key_of
from engine.predictions import predictions
from engine.progress import CancelToken
from engine.randomization.chunks import stage_maps
from engine.randomization.curves import curves_of
from engine.randomization.experiment import randomize
from engine.randomization.model_copy import reinitialize, weights_of
from engine.randomization.result import FLAT_BEFORE, MEASURES, TIED, ModelRandomization
from engine.request import Example, Request
from engine.store import result_store
from tests.counted import counted
from tests.explaining import checkpoint, classifier
from tests.explaining import fingerprint as bits_of
from tests.oracles.randomization import slow_check
from tests.unit.randomization.making import TEXTS, reads_first_block, reviews, serve

pytestmark = pytest.mark.usefixtures("home")

RHO = MEASURES.index("spearman")


def rho(found: ModelRandomization, method: str) -> dict[tuple[str, str], np.ndarray]:
    """By mode and block, of each example at the first seed."""
    of = found.likeness[:, 0, found.methods.index(method), RHO]
    return {(stage.mode, stage.block): of[at] for at, stage in enumerate(found.stages)}


def test_a_head_that_reads_the_first_block_alone_gives_rho_1_for_all_later_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, reads_first_block())
    methods = ("gradient_l2", "gradient_x_input", "integrated_gradients", "attention_x_gradient", "attention_head")
    few = {"integrated_gradients": {"n_steps": 5}}
    [found] = randomize([str(checkpoint("bert"))], reviews(tmp_path), methods, seeds=1, params=few).models
    longer = [len(TEXTS[index].split()) > 3 for index in found.examples]  # two words keep their order by chance
    for method in methods:
        for (mode, block), values in rho(found, method).items():
            assert (values == 1).all() if block != "1" else (values[longer] < 1).all(), (method, mode, block)
    last = [at for at, stage in enumerate(found.stages) if stage.block == "1"]
    assert np.array_equal(found.after[0, 0], found.before)
    assert (found.after[last] != found.before).all()


def test_the_numbers_are_those_of_a_slow_plain_loop(tmp_path: Path) -> None:
    folder, model = str(checkpoint("roberta")), classifier("roberta", dtype="float32")
    [found] = randomize(
        [folder], reviews(tmp_path), ["gradient_x_input"], examples=3, seeds=2, seed=3, head=True, embeddings=True
    ).models
    parts = weights_of(model)
    fresh = {(part, seed): reinitialize(model, part, parts[part], seed) for part in parts for seed in (3, 4)}
    assert [stage.block for stage in found.stages if stage.mode == "cascading"] == ["head", "3", "2", "1", "embeddings"]
    texts = [TEXTS[index] for index in found.examples]
    for draw, seed in enumerate(found.seeds):
        weights = [
            {name: value for part in stage.parts for name, value in fresh[part, seed].items()} for stage in found.stages
        ]
        expected, likely = slow_check(model, texts, weights)
        assert found.likeness[:, draw, 0, RHO] == pytest.approx(expected, abs=1e-6)
        assert found.after[:, draw] == pytest.approx(likely, abs=1e-5)


def test_what_was_cancelled_goes_on_where_it_was_and_the_model_is_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_module, "CHUNK_SIZE", 2)
    folder, data, token = str(checkpoint("gpt2")), reviews(tmp_path), CancelToken()
    model = classifier("gpt2", dtype="float32")
    before = bits_of(model)
    made = counted(monkeypatch, work_module, "predict_encoded", lambda model, inputs: len(inputs))

    def stop(done: int, total: int, label: str) -> None:
        if done == 10:
            token.cancel()

    with pytest.raises(Cancelled):
        randomize([folder], data, ["gradient_l2"], stop, token, seeds=1)
    assert bits_of(model) == before
    half = len(made)
    whole = randomize([folder], data, ["gradient_l2"], seeds=1)
    assert half >= 10
    settings, batches, methods = 1 + 5, 3, 3
    assert len(made) == settings * batches * methods, "each chunk was computed once"
    assert bits_of(model) == before
    again = finished(whole.plan)
    assert again is not None
    assert list(again.rows) == list(whole.rows)
    assert len(made) == settings * batches * methods


def test_the_usual_cache_never_holds_what_a_randomized_model_says(tmp_path: Path) -> None:
    folder = str(checkpoint("electra"))
    asked = Request(folder, "gradient_x_input", Example(TEXTS[0]))
    plain = explain(asked)
    with_it = randomize(
        [folder], reviews(tmp_path), ["gradient_x_input", "ensemble_top3"], examples=2, seeds=1, modes=("cascading",)
    )
    assert not result_store().contains(key_of(Request(folder, "lime", Example(TEXTS[0]))))
    again = explain(asked)
    assert again.cached
    assert np.array_equal(again.scores, plain.scores)
    stages = stage_maps(with_it.plan, folder, sample_of(with_it.plan), 0)
    assert [one.stage.block if one.stage else "" for one in stages] == ["", "3", "2", "1"]
    assert stages[0].maps["gradient_x_input"].scores == pytest.approx(plain.scores, abs=1e-6)
    assert stages[0].prediction.index == plain.prediction.index
    assert stages[2].maps["gradient_x_input"].notes == ("Randomized model: blocks 2 to 3 randomized, seed 0.",)
    assert {one.provenance.target for stage in stages for one in stage.maps.values()} == {plain.prediction.index}


def test_maps_without_an_order_are_left_out_and_counted_and_chance_is_drawn_anew(tmp_path: Path) -> None:
    [found] = randomize([str(checkpoint("bert"))], reviews(tmp_path), ["gradient", "attention_mean"], seeds=2).models
    curves = {(one.mode, one.method, one.metric): one for one in curves_of(found)}
    flat = curves["cascading", "gradient", "spearman"].points[0]
    assert (flat.value, flat.n, flat.skipped) == (None, 0, {FLAT_BEFORE: 2 * len(TEXTS)})
    chance = found.likeness[:, :, found.methods.index("random"), RHO]
    assert abs(np.nanmean(chance)) < 0.3
    assert np.nanstd(chance) > 0.1
    assert curves["cascading", "", "probability"].start == pytest.approx(found.before.mean())


def test_of_a_prompt_the_probability_is_of_its_answer_and_the_change_of_the_predicted_token() -> None:
    [found] = randomize(["tiny-llama"], "facts", ["gradient_x_input"], examples=12, seeds=1, head=True).models
    source = load_source("text", "facts")
    given = [source.read(index) for index in found.examples]
    assert found.notes == (TIED,)
    own = predictions("tiny-llama", [one.input for one in given])
    assert {one.index for one in own} == {0, 1}
    assert list(found.targets) == [one.label for one in given]
    assert found.before == pytest.approx([one.probabilities[0] for one in own])
    # With two classes, the other one is predicted where the probability of the answer crosses one half.
    np.testing.assert_array_equal(found.changed, (found.after > 0.5) != (found.before > 0.5))
