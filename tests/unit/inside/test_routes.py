"""Information flow routes against loops over single terms, and on a circuit that is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.errors import ExegesisError, UsageError
from engine.inside import routes
from engine.inside.routes import (
    RoutesQuery,
    head_importance,
    information_routes,
    prune_edges,
    routes_to_json,
)
from engine.inside.sites import PARTS
from engine.models.loading import load_model
from engine.request import Example
from tests.tiny import CAUSAL_FAMILIES, FAMILIES, save_causal, save_checkpoint
from tests.unit.inside.circuits import save_induction_model

TEXT = "the film is warm"
GEMMA = {"gemma2", "gemma3"}

pytestmark = pytest.mark.usefixtures("home")


def proximities(terms: dict[Any, np.ndarray], total: np.ndarray) -> dict[Any, float]:
    """Equation 3 of Ferrando and Voita (2024), as shares."""
    raw = {name: max(0.0, np.abs(total).sum() - np.abs(total - term).sum()) for name, term in terms.items()}
    return {name: value / sum(raw.values()) for name, value in raw.items()}


@pytest.mark.parametrize("family", sorted({*FAMILIES, *CAUSAL_FAMILIES} - GEMMA))
def test_edges_of_each_family_against_single_terms(family: str, tmp_path: Path) -> None:
    """The terms of one layer and position, from the weights and the recorded attention one head and key at a time."""
    save: Any = save_checkpoint if family in FAMILIES else save_causal
    folder = str(save(family, tmp_path / family))
    result = information_routes(RoutesQuery(folder, Example(TEXT), dtype="float64"))
    assert result.check.ok, result.check
    model = load_model(folder, "float64")
    batch = model.collate([model.encode(Example(TEXT))])
    layer, heads, place = 1, 4, len(result.tokens) - 1
    block, parts = model.blocks[layer], PARTS[str(model.module.config.model_type)]
    projection: Any = block.get_submodule(parts.projection)
    inputs: dict[str, torch.Tensor] = {}
    hooks = [
        block.register_forward_pre_hook(lambda _, args: inputs.__setitem__("before", args[0])),
        block.register_forward_hook(
            lambda _, args, out: inputs.__setitem__("after", out[0] if isinstance(out, tuple) else out)
        ),
        projection.register_forward_hook(lambda _, args, out: inputs.__setitem__("added", out)),
    ]
    with torch.no_grad():
        _, recorder = model.logits_with_attention(batch)
    for hook in hooks:
        hook.remove()
    weight = projection.weight if isinstance(projection, torch.nn.Linear) else projection.weight.T
    size = weight.shape[1] // heads
    terms: dict[Any, np.ndarray] = {"stays": inputs["before"][0, place].numpy()}
    for head in range(heads):
        for key in range(len(result.tokens)):
            moved = recorder.probabilities[layer][0, head, place, key] * recorder.values[layer][0, head, key]
            terms[head, key] = (weight[:, head * size : (head + 1) * size] @ moved).numpy()
    total = (inputs["before"] + inputs["added"])[0, place].numpy()
    if family == "gpt-neox":  # attention and MLP read the same stream and are added together
        total = inputs["after"][0, place].numpy()
        terms["mlp"] = total - (inputs["before"] + inputs["added"])[0, place].numpy()
    shares = proximities(terms, total)
    for head in range(heads):
        expected = sum(shares[head, key] for key in range(len(result.tokens)))
        assert result.heads[layer, head, place] == pytest.approx(expected, abs=1e-5)
    source = 1
    expected = sum(shares[head, source] for head in range(heads))
    assert result.edges[layer, place, source] == pytest.approx(expected, abs=1e-5)
    np.testing.assert_allclose(result.edges.sum(-1), 1)
    assert ((result.mlp >= 0) & (result.mlp <= 1)).all()


def test_the_induction_circuit_is_found_exactly(tmp_path: Path) -> None:
    """Parts of the stream have no coordinate in common, so that shares are those of their L1 norms."""
    folder = str(save_induction_model(tmp_path / "induction"))
    result = information_routes(RoutesQuery(folder, Example("x a b c d a")))
    assert result.predicted == "b"
    pruned = prune_edges(result.flow, 0.1, 100)
    edges = {(edge.layer, edge.source, edge.target): round(edge.weight, 4) for edge in pruned.edges}
    assert edges == {
        (1, 5, 5): 0.75, (1, 2, 5): 0.25, (0, 5, 5): 0.6667, (0, 4, 5): 0.3333, (0, 2, 2): 0.6667, (0, 1, 2): 0.3333,
    }  # fmt: skip
    assert pruned.carried == pytest.approx(1, abs=1e-5)
    assert pruned.left_out == 0
    np.testing.assert_allclose(result.head_shares, [[1 / 3, 0], [0, 1 / 4]], atol=1e-5)
    np.testing.assert_allclose(result.mlp, 0, atol=1e-6)
    flows = {(edge.layer, edge.source, edge.target): edge.flow for edge in pruned.edges}
    assert flows[0, 1, 2] == pytest.approx(0.25 / 3, abs=1e-5)
    assert {(edge.layer, edge.source) for edge in prune_edges(result.flow, 0.3, 100).edges} == {(1, 5), (0, 5), (0, 4)}
    assert prune_edges(result.flow, 0.1, 2).left_out == 4
    assert [edge.weight for edge in prune_edges(result.flow, 0.7, 100).edges] == [pytest.approx(0.75, abs=1e-5)]


def test_pruning_needs_a_share(tmp_path: Path) -> None:
    result = information_routes(RoutesQuery(str(save_induction_model(tmp_path / "m")), Example("x a")))
    with pytest.raises(UsageError, match="threshold: must be a number from 0 to 1, got 2"):
        prune_edges(result.flow, 2, 10)


@pytest.mark.parametrize("family", sorted(GEMMA))
def test_a_normalized_attention_output_is_refused(family: str, tmp_path: Path) -> None:
    with pytest.raises(ExegesisError, match="normalize the attention output"):
        information_routes(RoutesQuery(str(save_causal(family, tmp_path / family)), Example(TEXT)))


def test_head_importance_is_the_mean_over_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(save_induction_model(tmp_path / "induction"))
    rows = ["x a b c d a", "x a b a", "x c"]
    data = tmp_path / "letters.csv"
    data.write_text("text\n" + "\n".join([*rows, "x a b c d e a b c"]) + "\n")
    result = head_importance(folder, str(data), examples=10)
    each = [information_routes(RoutesQuery(folder, Example(row))).head_shares for row in rows]
    assert result.examples in (3, 4)
    if result.examples == 4:  # the model reads the last tokens of a prompt that is too long
        each.append(information_routes(RoutesQuery(folder, Example("x a b c d e a b c"))).head_shares)
    np.testing.assert_allclose(result.mean, np.mean(each, 0))
    np.testing.assert_allclose(result.error, np.std(each, 0, ddof=1) / np.sqrt(len(each)))
    with pytest.raises(UsageError, match="examples: must be a whole number from 1 to 1,000"):
        head_importance(folder, str(data), examples=0)


def test_cached_routes_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = RoutesQuery(str(save_checkpoint("bert", tmp_path / "bert")), Example(TEXT))
    first = information_routes(query)
    monkeypatch.setattr(routes, "load_text_model", None)
    assert routes_to_json(information_routes(query), 0.05) == routes_to_json(first, 0.05)
