"""Attention methods: which way the product goes, who may attend to whom, what each row and column means."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from engine.errors import UsageError
from engine.explainers.attention import mass_limit, mean_logits, rollout
from engine.models.text_classifier import EncodedText
from engine.result import Prediction, Token
from engine.task import Captured, Item, Task
from tests.explaining import METHODS, classifier, forget, run, task_for
from tests.linear import bag_of_embeddings
from tests.tiny import FAMILIES

TEXT = "the ending is warm and funny"
FIRST = [[0.9, 0.1, 0.0], [0.5, 0.0, 0.5], [0.2, 0.2, 0.6]]
SECOND = [[0.0, 1.0, 0.0], [0.3, 0.3, 0.4], [0.0, 0.5, 0.5]]
# A_2 A_1 by hand: row q is the mix of A_1's rows by the weights of A_2's row q.
PRODUCT = [
    [0.5, 0.0, 0.5],
    [0.3 * 0.9 + 0.3 * 0.5 + 0.4 * 0.2, 0.3 * 0.1 + 0.4 * 0.2, 0.3 * 0.5 + 0.4 * 0.6],
    [0.5 * 0.5 + 0.5 * 0.2, 0.5 * 0.2, 0.5 * 0.5 + 0.5 * 0.6],
]
ROLLOUT = [(0.5 + 0.5 + 0.35) / 3, (0.0 + 0.11 + 0.1) / 3, (0.5 + 0.39 + 0.55) / 3]


def layers() -> torch.Tensor:
    return torch.tensor([FIRST, SECOND], dtype=torch.float64)


def reading(
    attention: torch.Tensor,
    logits: torch.Tensor | None = None,
    causal: bool = False,
    scales: torch.Tensor | None = None,
) -> Task:
    """A task whose attention `[layer head query key]` is given; no token is special but the first."""
    n = attention.shape[-1]
    tokens = tuple(Token("", 0, 0, -1 if i == 0 else 0, i == 0) for i in range(n))
    encoded = EncodedText(np.arange(n), np.zeros(n, dtype=np.int64), tokens, 0)
    model = bag_of_embeddings()
    model.adapter = dataclasses.replace(model.adapter, causal=causal, reading="last" if causal else "module")

    class Given(Task):
        def attention(self, item: Item) -> Captured:
            return Captured(attention.log() if logits is None else logits, attention, scales)

    return Given(model, [Item(encoded, Prediction(("a",), (0.0,), (1.0,)), 0, 0)])


def test_rollout_of_an_asymmetric_pair_of_layers_by_hand() -> None:
    np.testing.assert_allclose(rollout(layers(), 0.0), PRODUCT, atol=1e-12)
    (made,) = run("attention_rollout", reading(layers()[:, None]))
    np.testing.assert_allclose(made.scores, ROLLOUT, atol=1e-12)


def scaled(first: list[float], second: list[float]) -> Task:
    """Two layers of two heads each, FIRST and SECOND in both, with these scales."""
    both = torch.stack([layers(), layers()])
    return reading(both, scales=torch.tensor([first, second]))


def test_a_mean_over_heads_takes_each_by_its_scale_by_hand() -> None:
    (alone,) = run("attention_rollout", scaled([1, 0], [0, 2]))  # FIRST, then SECOND, as if there were no other head
    np.testing.assert_allclose(alone.scores, ROLLOUT, atol=1e-12)
    (mean,) = run("attention_mean", scaled([1, 0], [0, 1]))
    np.testing.assert_allclose(mean.scores, (np.mean(FIRST, 0) + np.mean(SECOND, 0)) / 2, atol=1e-12)
    (last,) = run("attention_last_layer", scaled([1, 1], [0.5, 1.5]), query="cls")
    np.testing.assert_allclose(last.scores, 0.25 * np.array(FIRST[0]) + 0.75 * np.array(SECOND[0]), atol=1e-12)


def test_a_layer_whose_heads_are_all_off_moves_nothing() -> None:
    (made,) = run("attention_rollout", scaled([0, 0], [1, 0]))
    np.testing.assert_allclose(made.scores, np.mean(FIRST, 0), atol=1e-12)
    (last,) = run("attention_last_layer", scaled([1, 1], [0, 0]), query="cls")
    np.testing.assert_allclose(last.scores, [1, 0, 0])


def test_logits_are_mixed_by_the_scales_of_their_heads() -> None:
    logits = torch.tensor([FIRST, SECOND], dtype=torch.float64)[None]
    for scales, means in (([0.0, 1.0], SECOND), ([1.0, 0.0], FIRST), ([0.0, 0.0], np.zeros((3, 3)))):
        (made,) = run("attention_logits", reading(logits.sigmoid(), logits, scales=torch.tensor([scales])))
        raised = np.exp(np.mean(means, 0)[1:])  # the first is special
        np.testing.assert_allclose(made.scores, [0, *(raised / raised.sum())], atol=1e-12)


def test_the_hand_made_example_tells_every_wrong_product_apart() -> None:
    first, second = layers()
    wrong = {
        "reversed": first @ second,
        "transposed": (second @ first).T,
        "layers transposed": second.T @ first.T,
        "reversed and transposed": first.T @ second.T,
        "first alone": first,
        "second alone": second,
    }
    for name, product in wrong.items():
        assert np.abs(product.mean(0).numpy() - ROLLOUT).max() > 0.02, name
    columns_for_rows = (second @ first).mean(1).numpy()
    assert np.abs(columns_for_rows - ROLLOUT).max() > 0.02


def test_rollout_averages_heads_first() -> None:
    spread = 0.05 * torch.tensor([1.0, -1.0, 0.0], dtype=torch.float64)
    heads = torch.stack([layers() + spread, layers() - spread], dim=1)
    (made,) = run("attention_rollout", reading(heads))
    np.testing.assert_allclose(made.scores, ROLLOUT, atol=1e-12)


def test_residual_is_the_share_of_the_identity() -> None:
    identity = torch.eye(3, dtype=torch.float64)
    half = (0.5 * layers()[1] + 0.5 * identity) @ (0.5 * layers()[0] + 0.5 * identity)
    np.testing.assert_allclose(rollout(layers(), 0.5), half, atol=1e-12)
    (made,) = run("attention_rollout", reading(layers()[:, None]), residual=0.5)
    np.testing.assert_allclose(made.scores, half.mean(0), atol=1e-12)
    (only,) = run("attention_rollout", reading(layers()[:, None]), residual=1)
    np.testing.assert_allclose(only.scores, [1 / 3] * 3, atol=1e-12)


def test_start_layer_leaves_out_the_layers_below() -> None:
    (made,) = run("attention_rollout", reading(layers()[:, None]), start_layer=1)
    np.testing.assert_allclose(made.scores, np.mean(SECOND, axis=0), atol=1e-12)


@pytest.mark.parametrize(
    ("method", "params", "argument"),
    [
        ("attention_rollout", {"start_layer": 3}, "attention_rollout.start_layer"),
        ("attention_head", {"layer": 3}, "attention_head.layer"),
        ("attention_head", {"head": 4}, "attention_head.head"),
    ],
)
def test_a_layer_or_head_that_the_model_lacks(method: str, params: dict[str, int], argument: str) -> None:
    last = 3 if "head" in params else 2
    with pytest.raises(UsageError, match=rf"{argument}: must be from 0 to {last} for this model, got {last + 1}"):
        run(method, task_for(classifier("bert"), [TEXT]), **params)


def test_causal_logits_count_only_the_queries_that_may_attend() -> None:
    """Future logits are huge: any of them in the mean would show."""
    logits = torch.tensor([[1.0, 9e9, 9e9], [2.0, 4.0, 9e9], [6.0, 8.0, 5.0]], dtype=torch.float64)[None, None]
    np.testing.assert_allclose(mean_logits(logits, causal=True)[0, 0], [(1 + 2 + 6) / 3, (4 + 8) / 2, 5])
    np.testing.assert_allclose(mean_logits(logits[..., :1], causal=False)[0, 0], [3])
    (made,) = run("attention_logits", reading(logits.sigmoid(), logits, causal=True))
    weights = np.exp([6.0, 5.0])
    np.testing.assert_allclose(made.scores, [0, *(weights / weights.sum())], atol=1e-12)


def test_logits_are_averaged_over_heads_before_the_softmax_and_special_tokens_left_out() -> None:
    logits = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for method, kept in (("attention_logits", logits), ("attention_logits_last", logits[1:])):
        mean = kept.mean((0, 1, 2)).numpy()[1:]
        (made,) = run(method, reading(logits.sigmoid(), logits))
        np.testing.assert_allclose(made.scores, [0, *(np.exp(mean) / np.exp(mean).sum())], atol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_query_of_the_sentence_vector(family: str) -> None:
    """`cls` is the row that the head reads: the first, GPT-2's last; T5 reads the mean of all."""
    model = classifier(family)
    task = task_for(model, [TEXT])
    probabilities = task.attention(task.items[0])[1]
    row = {"gpt2": probabilities[2, 1, -1], "t5": probabilities[2, 1].mean(0)}.get(family, probabilities[2, 1, 0])
    (made,) = run("attention_head", task, layer=2, head=1, query="cls")
    np.testing.assert_allclose(made.scores, row, atol=1e-12)
    (last,) = run("attention_last_layer", task, query="cls")
    heads = probabilities[2].mean(0)
    expected = {"gpt2": heads[-1], "t5": heads.mean(0)}.get(family, heads[0])
    np.testing.assert_allclose(last.scores, expected, atol=1e-12)


def test_methods_share_one_captured_pass() -> None:
    model = classifier("bert")
    forget(model)
    calls = []
    task = task_for(model, [TEXT])
    with pytest.MonkeyPatch.context() as patch:
        captured = type(model).captured
        patch.setattr(type(model), "captured", lambda *args: calls.append(1) or captured(*args))
        for method in ("attention_mean", "attention_logits", "attention_rollout", "attention_head"):
            run(method, task)
    assert len(calls) == 1


def test_only_a_few_texts_are_remembered() -> None:
    model = classifier("bert")
    run("attention_mean", task_for(model, ["good", "film", "food", "view"]))
    assert len(model.memo["attention"]) == 2


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("method", [m for m in METHODS if m.startswith("attention") and m != "attention_x_gradient"])
def test_the_limit_of_the_check_follows_the_precision(method: str, dtype: str) -> None:
    (made,) = run(method, task_for(classifier("bert", dtype=dtype), [TEXT]))
    assert made.check is not None
    assert made.check.ok
    assert made.check.limit == mass_limit(getattr(torch, dtype))


def test_half_precision_is_allowed_its_own_rounding_and_no_more() -> None:
    assert mass_limit(torch.float32) == mass_limit(torch.float64) == 1e-4
    assert 0.5 * torch.finfo(torch.bfloat16).eps < mass_limit(torch.bfloat16) < 0.02
    assert 0.5 * torch.finfo(torch.float16).eps < mass_limit(torch.float16) < 0.002
