"""Activation patching against a double loop, a circuit that is known, and a linear model; attribution patching too."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.errors import Cancelled, ExegesisError, UsageError
from engine.inside import patching
from engine.inside.patching import (
    KL,
    LOGIT_DIFFERENCE,
    MEAN,
    METRICS,
    NOISE,
    PROBABILITY,
    PatchQuery,
    PatchRuns,
    map_of,
    map_rows,
    map_to_json,
    patch_map,
    patch_preview,
    preview_of,
)
from engine.inside.sites import ATTENTION, HEADS, MLP, PARTS, RESIDUAL, SITES, BlockParts
from engine.models.loading import load_model
from engine.progress import CancelToken, cancellable, reporting
from engine.request import Example, Prompt
from tests.fetched import STORED, needs_smollm2
from tests.tiny import CAUSAL_FAMILIES, FAMILIES, save_causal, save_checkpoint
from tests.unit.inside.circuits import linear_transformer, save_induction_model

CLEAN, OTHER, SWAPPED = "the film is warm", "the plot is warm", "the warm is film"
CIRCUIT = ("x a b c d a", "x c b a d a")
"""In the corrupted text, `a` precedes `d` and not `b`."""

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture(scope="module", params=[*FAMILIES, *CAUSAL_FAMILIES])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    save: Any = save_checkpoint if request.param in FAMILIES else save_causal
    return save(request.param, tmp_path_factory.mktemp(request.param))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def induction(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_induction_model(tmp_path_factory.mktemp("induction")))


def one_by_one(query: PatchQuery, site: str) -> np.ndarray:
    """The restored share of each place: a pass a place with a hook of its own, in plain PyTorch."""
    runs = PatchRuns(query)
    module, parts, heads = runs.model.module, PARTS[str(runs.model.module.config.model_type)], 4
    path = {ATTENTION: parts.attention, MLP: parts.mlp, HEADS: parts.projection}
    blocks = list(runs.model.blocks)
    modules = blocks if site == RESIDUAL else [block.get_submodule(path[site]) for block in blocks]
    values: dict[int, torch.Tensor] = {}

    def tensor_of(given: Any) -> torch.Tensor:
        return given[0] if isinstance(given, tuple) else given

    def record(at: int) -> Any:
        if site == HEADS:
            return modules[at].register_forward_pre_hook(lambda _, args: values.__setitem__(at, args[0].clone()))
        return modules[at].register_forward_hook(lambda _, args, out: values.__setitem__(at, tensor_of(out).clone()))

    hooks = [record(at) for at in range(len(modules))]
    with torch.no_grad():
        runs.outputs("clean")
        for hook in hooks:
            hook.remove()
        shares = np.zeros((len(modules), heads if site == HEADS else len(runs.clean)))
        for at, place in np.ndindex(shares.shape):

            def put(given: torch.Tensor, at: int = at, place: int = place) -> None:
                if site == HEADS:
                    size = given.shape[-1] // heads
                    given[0, :, place * size : (place + 1) * size] = values[at][0, :, place * size : (place + 1) * size]
                else:
                    given[0, place] = values[at][0, place]

            if site == HEADS:
                hook = modules[at].register_forward_pre_hook(lambda _, args, put=put: put(args[0]))
            else:
                hook = modules[at].register_forward_hook(lambda _, args, out, put=put: put(tensor_of(out)))
            shares[at, place] = runs.restored(runs.metric(runs.outputs("corrupted")).numpy())[0]
            hook.remove()
    assert all(not child._forward_hooks for child in module.modules()), "the test leaves no hook"
    return shares


def test_each_family_and_site_against_a_double_loop(folder: Path) -> None:
    before = {name: value.clone() for name, value in load_model(str(folder)).module.state_dict().items()}
    for site in SITES:
        query = PatchQuery(str(folder), Example(CLEAN), SWAPPED, site=site)
        result = patch_map(query)
        shares = result.shares[1:] if site == RESIDUAL else result.shares
        np.testing.assert_allclose(shares, one_by_one(query, site), atol=2e-4, rtol=2e-4)
        assert result.check.ok, result.check
        assert np.ptp(result.shares) > 0.01, "some places matter more than others"
    module = load_model(str(folder)).module
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("corruption", ["text", NOISE, MEAN])
def test_the_embedding_restored_at_all_corrupted_positions_restores_all(
    tmp_path_factory: pytest.TempPathFactory, metric: str, corruption: str
) -> None:
    """Only one token differs, so its embedding alone brings back everything and that of another token nothing."""
    folder = save_causal("llama", tmp_path_factory.mktemp("llama"))
    tokens = load_model(str(folder)).encode(Example(CLEAN)).tokens
    other = load_model(str(folder)).encode(Example(OTHER)).tokens
    [place] = [at for at, (one, two) in enumerate(zip(tokens, other, strict=True)) if one.text != two.text]
    query = PatchQuery(str(folder), Example(CLEAN), OTHER, corruption, (place,), metric=metric)
    result = patch_map(query)
    np.testing.assert_allclose(result.shares[0], np.eye(len(tokens))[place], atol=1e-4)
    np.testing.assert_allclose(result.shares[-1], np.eye(len(tokens))[-1], atol=1e-4)
    assert result.check.ok


def test_metrics_by_hand(induction: str) -> None:
    """Logits of the output coordinates: 1 for the copied letter before the final norm, whose gain is sqrt(26 / 4)."""
    clean, corrupted = CIRCUIT
    query = PatchQuery(induction, Example(clean), corrupted)
    preview = patch_preview(query)
    gain = np.sqrt(26 / 4)
    assert (preview.target, preview.contrast) == ("b", "d")
    np.testing.assert_allclose([preview.clean, preview.corrupted], [gain, -gain], rtol=1e-5)
    high, low = np.exp(gain) / (np.exp(gain) + 5), 1 / (np.exp(gain) + 5)
    probability = patch_preview(dataclasses.replace(query, metric=PROBABILITY))
    np.testing.assert_allclose([probability.clean, probability.corrupted], [high, low], rtol=1e-5)
    divergence = patch_preview(dataclasses.replace(query, metric=KL))
    np.testing.assert_allclose(divergence.clean, 0, atol=1e-6)
    np.testing.assert_allclose(divergence.corrupted, (high - low) * gain, rtol=1e-5)
    assert preview.predicted[0] == "b"
    assert preview.corrupted_predicted[0] == "d"


def test_the_induction_circuit_is_found_exactly(induction: str) -> None:
    """Both heads of the circuit restore everything, and no other head anything. One of the two changed positions
    alone leaves two matches or none, each with a difference of 0: half of the way."""
    query = PatchQuery(induction, Example(CIRCUIT[0]), CIRCUIT[1])
    maps = {site: patch_map(dataclasses.replace(query, site=site)) for site in SITES}
    np.testing.assert_allclose(maps[HEADS].shares, [[1, 0], [0, 1]], atol=1e-5)
    expected = {
        RESIDUAL: {(0, 1): 0.5, (0, 3): 0.5, (1, 2): 0.5, (1, 4): 0.5, (2, 5): 1},
        ATTENTION: {(0, 2): 0.5, (0, 4): 0.5, (1, 5): 1},
        MLP: {},
    }
    for site, places in expected.items():
        whole = np.zeros_like(maps[site].shares)
        for place, share in places.items():
            whole[place] = share
        np.testing.assert_allclose(maps[site].shares, whole, atol=1e-5, err_msg=site)
        assert maps[site].check.ok


def test_attribution_is_exact_on_a_linear_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Places of the same depth share the whole difference between them, and the first order is all that there is."""
    model = linear_transformer()
    monkeypatch.setitem(PARTS, "linear", BlockParts("projection", "projection", "mlp"))
    monkeypatch.setattr(patching, "load_text_model", lambda *_: model)
    query = PatchQuery("linear", Example("the plot is warm"), "a ending is funny", dtype="float64")
    for site in SITES:
        runs = PatchRuns(dataclasses.replace(query, site=site))
        result = map_of(runs, preview_of(runs), f"linear {site}")
        np.testing.assert_allclose(result.shares, result.preview.effects[site], atol=1e-10)
        assert result.check.value < 1e-12
        assert result.correlation == pytest.approx(1)
        if site == RESIDUAL:
            np.testing.assert_allclose(result.shares.sum(1), 1, atol=1e-10)


def test_attribution_is_the_slope_of_the_interpolated_activation(tmp_path: Path) -> None:
    """The derivative when one activation starts to move from the corrupted to the clean one."""
    folder = str(save_causal("gpt2-lm", tmp_path / "gpt2"))  # Llama's norms work in single precision
    query = PatchQuery(folder, Example(CLEAN), SWAPPED, dtype="float64", site=MLP)
    runs, effect = PatchRuns(query), patch_preview(query).effects[MLP]
    step, layer, place = 1e-6, 1, 2
    recorded: list[torch.Tensor] = []
    module: Any = runs.model.blocks[layer].get_submodule("mlp.c_proj")
    hook = module.register_forward_hook(lambda _, args, out: recorded.append(out.clone()))
    with torch.no_grad():
        runs.outputs("clean")
        hook.remove()

        def move(_: Any, args: Any, out: torch.Tensor) -> None:
            out[0, place] += step * (recorded[0][0, place] - out[0, place])

        hook = module.register_forward_hook(move)
        moved = runs.restored(runs.metric(runs.outputs("corrupted")).numpy())[0]
        hook.remove()
    assert moved / step == pytest.approx(effect[layer, place], rel=1e-3)


def test_results_are_cached_and_told_apart(induction: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query = PatchQuery(induction, Example(CIRCUIT[0]), CIRCUIT[1], site=HEADS)
    first = patch_map(query)
    monkeypatch.setattr(patching, "PatchRuns", None)
    again = patch_map(query)
    np.testing.assert_array_equal(first.shares, again.shares)
    assert map_to_json(again) == map_to_json(first)
    rows = list(map_rows(again.preview, HEADS, again))
    assert [(row["layer"], row["head"], round(row["restored_share"], 4)) for row in rows][:2] == [
        (0, 0, 1.0),
        (0, 1, 0.0),
    ]
    with pytest.raises(TypeError):
        patch_map(dataclasses.replace(query, metric=KL))


def test_a_pair_is_corrupted_in_its_second_text(tmp_path: Path) -> None:
    """Only one token differs, so its embedding alone brings back everything."""
    folder = str(save_checkpoint("bert", tmp_path))
    query = PatchQuery(folder, Example(CLEAN, OTHER), corrupted_pair=CLEAN)
    result = patch_map(query)
    tokens = zip(result.preview.tokens, result.preview.corrupted_tokens, strict=True)
    [place] = [at for at, (one, other) in enumerate(tokens) if one.text != other.text]
    assert result.preview.tokens[place].segment == 1
    np.testing.assert_allclose(result.shares[0], np.eye(len(result.preview.tokens))[place], atol=1e-4)
    np.testing.assert_allclose(result.shares[1:], one_by_one(query, RESIDUAL), atol=2e-4, rtol=2e-4)
    plain = map_to_json(result)
    assert [plain[name] for name in ("text", "text_pair", "corrupted_text", "corrupted_text_pair")] == [
        CLEAN, OTHER, CLEAN, CLEAN,
    ]  # fmt: skip
    swapped = patch_preview(PatchQuery(folder, Example(CLEAN, OTHER), OTHER, corrupted_pair=CLEAN))
    assert swapped.corrupted != result.preview.corrupted
    with pytest.raises(UsageError, match="each text of the pair must have as many tokens"):
        patch_preview(PatchQuery(folder, Example("the film is warm", "the plot"), "the film", corrupted_pair=CLEAN))


def test_a_stopped_map_goes_on_at_the_layer_where_it_stopped(induction: str) -> None:
    query, token = PatchQuery(induction, Example(CIRCUIT[0]), CIRCUIT[1]), CancelToken()

    def stop(done: int, total: int, label: str) -> None:
        if done == 7:  # nothing, and the six places of the embedding
            token.cancel()

    with cancellable(token), reporting(stop), pytest.raises(Cancelled):
        patch_map(query)
    assert not patching.is_patched(query)
    steps: list[tuple[int, int]] = []
    with reporting(lambda done, total, _: steps.append((done, total))):
        result = patch_map(query)
    assert steps == [(7, 19), (13, 19), (13, 19), (19, 19)]
    np.testing.assert_allclose(result.shares[1:], one_by_one(query, RESIDUAL), atol=1e-5)
    assert result.check.ok


@needs_smollm2
def test_the_heads_of_the_indirect_object_lie_in_the_later_half() -> None:
    """Wang et al. (2023), Interpretability in the wild, figure 3: heads that write the name are in late layers."""
    clean, corrupted = (f"When Mary and John went to the store, {name} gave a drink to" for name in ("John", "Mary"))
    prompt = Prompt(clean, target=" Mary", contrast=" John")
    result = patch_map(PatchQuery(str(STORED), prompt, corrupted, site=HEADS))
    largest = abs(result.shares).ravel().argsort()[::-1][:10] // result.shares.shape[1]
    assert min(largest) >= len(result.shares) / 2
    assert result.shares.max() > 0.5
    assert result.check.ok


def test_a_prompt_names_target_and_contrast(induction: str) -> None:
    preview = patch_preview(PatchQuery(induction, Prompt(CIRCUIT[0], target="d", contrast="c"), CIRCUIT[1]))
    assert (preview.target, preview.contrast, preview.query.metric) == ("d", "c", LOGIT_DIFFERENCE)
    assert preview.clean == pytest.approx(0, abs=1e-5)
    assert preview.corrupted > 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"corrupted": None}, "corrupted: is missing"),
        ({"corrupted_pair": "b"}, "corrupted_pair: needs a clean second text"),
        ({"corruption": NOISE}, "tokens: is empty"),
        ({"site": "embedding"}, "site: unknown name"),
        ({"metric": "accuracy"}, "metric: unknown name"),
        ({"noise": 0.0}, "noise: must be a number from 0.1 to 20"),
        ({"seed": -1}, "seed: must be a whole number"),
    ],
)
def test_queries_that_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        PatchQuery(**{"model": "m", "example": Example("a"), "corrupted": "b", **changes})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"corrupted": "x c b a d"}, "as many tokens as the clean text, 6, got 5"),
        ({"example": Example("x a b c d a b c d"), "corrupted": "x a b c d a b c b"}, "has 1 tokens more than"),
        ({"corrupted": CIRCUIT[0]}, "must change the metric, but both runs have"),
        ({"corruption": NOISE, "tokens": (6,)}, "positions from 0 to 5"),
        ({"target": "z"}, "target"),
        ({"contrast": "b"}, "contrast: must differ from the target"),
    ],
)
def test_runs_that_are_refused(induction: str, changes: dict[str, Any], words: str) -> None:
    query = dataclasses.replace(PatchQuery(induction, Example(CIRCUIT[0]), CIRCUIT[1]), **changes)
    with pytest.raises(ExegesisError, match=words):
        patch_preview(query)
