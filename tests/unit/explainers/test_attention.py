"""Methods that read attention: by hand, by loops, against rollout and relevancy as published, learned explainers."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from engine.errors import UsageError
from engine.explain import explain, key_of, method_key
from engine.explainers.attention import gradient_weighted, mass_limit, mean_logits, pooled_rows, propagate, rollout
from engine.models.loading import classifier_class
from engine.models.text_classifier import EncodedText
from engine.randomization.model_copy import ModelCopy
from engine.registry import all_explainers, explainer
from engine.request import Example, HeadScales, Request
from engine.result import Prediction, Token
from engine.scaffold.learned_explainer import save
from engine.task import Captured, Task, TaskItem
from tests.explaining import METHODS, checkpoint, classifier, fingerprint, forget, run, task_for
from tests.learned import for_model, made_up
from tests.linear import bag_of_embeddings
from tests.oracles.relevance import relevancy
from tests.tiny import FAMILIES, save_checkpoint
from tests.unit.vision.tiny_vit import ARCHITECTURES, blobs, values_of, vit, vit_folder

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
        def attention(self, item: TaskItem) -> Captured:
            return Captured(attention.log() if logits is None else logits, attention, scales)

    return Given(model, [TaskItem(encoded, Prediction(("a",), (0.0,), (1.0,)), 0, 0)])


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
        captured = type(model).logits_with_attention
        patch.setattr(type(model), "logits_with_attention", lambda *args: calls.append(1) or captured(*args))
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


RELEVANCY_TEXT = "the ending is warm"
LONGER = "the ending is warm and the plot never drags"
RELEVANCY_FIRST = torch.tensor([[[0.5, 0.5], [0.0, 1.0]]], dtype=torch.float64)
RELEVANCY_SECOND = torch.tensor([[[0.0, 2.0], [1.0, 0.0]]], dtype=torch.float64)


def test_only_what_speaks_for_the_class_counts_before_heads_are_averaged() -> None:
    attention = torch.tensor([[[[0.5, 0.5]], [[0.25, 0.75]]]])
    slope = torch.tensor([[[[2.0, -8.0]], [[4.0, 0.0]]]])
    assert gradient_weighted(attention, slope).tolist() == [[[1.0, 0.0]]]


def test_the_later_layer_multiplies_from_the_left() -> None:
    """(I + SECOND) (I + FIRST) = [[1, 2], [1, 1]] [[1.5, 0.5], [0, 2]] = [[1.5, 4.5], [1.5, 2.5]]."""
    rows = torch.eye(2, dtype=torch.float64)
    made = [propagate([RELEVANCY_FIRST, RELEVANCY_SECOND], row[None])[0].tolist() for row in rows]
    assert made == [[0.5, 4.5], [1.5, 1.5]]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_row_is_the_one_where_the_model_pools(family: str) -> None:
    model = classifier(family, 3)
    batch = model.collate([model.encode(Example(text)) for text in (RELEVANCY_TEXT, LONGER)])
    rows = pooled_rows(model.adapter, batch)
    for row, length in zip(rows.tolist(), batch.lengths.tolist(), strict=True):
        last = [float(place == length - 1) for place in range(len(row))]
        mean = [(place < length) / length for place in range(len(row))]
        first = [float(place == 0) for place in range(len(row))]
        assert row == pytest.approx({"gpt2": last, "t5": mean}.get(family, first))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_for_every_class(family: str) -> None:
    module, model = _plain(family), classifier(family, 3)
    maps = []
    for target in range(3):
        task = task_for(model, [RELEVANCY_TEXT, LONGER], target=target)
        for item, made in zip(task.items, run("attention_x_gradient", task), strict=True):
            expected = _expected(module, family, item.encoded.ids.tolist(), target)
            np.testing.assert_allclose(made.scores, expected, rtol=2e-5, atol=1e-6 * np.abs(expected).max())
            assert (made.scores >= 0).all()
            maps.append(made.scores)
    assert not np.allclose(maps[0], maps[2]), "it must depend on the class"


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_pictures(name: str) -> None:
    model = vit(name)
    module = _frozen(getattr(transformers, name), vit_folder(name))
    task = task_for(model, [blobs(0), blobs(1)], target=1)
    rows = list(range(len(model.adapter.heads)))
    for seed, made in enumerate(run("attention_x_gradient", task)):
        values = values_of(model, blobs(seed)).requires_grad_()
        expected = relevancy(module, lambda values=values: module(pixel_values=values).logits[0, 1], rows)
        assert max(expected) > 1e-3
        np.testing.assert_allclose(made.scores, expected, rtol=1e-5, atol=1e-9)


def _expected(module: Any, family: str, ids: list[int], target: int) -> np.ndarray:
    point = module.get_input_embeddings()(torch.tensor(ids)[None]).requires_grad_()
    rows = {"gpt2": [len(ids) - 1], "t5": list(range(len(ids)))}.get(family, [0])
    return np.array(relevancy(module, lambda: module(inputs_embeds=point).logits[0, target], rows))


def _plain(family: str) -> Any:
    return _frozen(classifier_class(classifier(family, 3).adapter), checkpoint(family, 3))


def _frozen(kind: Any, folder: Path) -> Any:
    """As transformers has it, in double precision, with the attention that gives its probabilities back."""
    return kind.from_pretrained(str(folder), attn_implementation="eager").double().eval().requires_grad_(False)


LEARNED_TEXT = "although the plot drags the ending is warm"


@pytest.fixture
def model(home: Path) -> str:
    return str(save_checkpoint("bert", home / "model"))


def kept(folder: Path, **told: object) -> str:
    return str(folder / save(made_up(**told), folder).name)


@pytest.mark.parametrize("family", [*FAMILIES, "vit"])
@pytest.mark.parametrize("normalization", ["sparsemax", "softmax", "entmax15", "none"])
def test_equal_weights_are_the_static_explainer(family: str, normalization: str, tmp_path: Path) -> None:
    task = task_for(vit(), [blobs()]) if family == "vit" else task_for(classifier(family), [LEARNED_TEXT])
    shape = tuple(task.attention(task.items[0]).logits.shape[:2])
    size = shape[0] * shape[1]
    file = kept(tmp_path, shape=shape, phi=[1 / size] * size, normalisation=normalization)
    (learned,), (static,) = run("smat", task, explainer=file), run("attention_logits", task)
    np.testing.assert_allclose(learned.scores, static.scores, atol=1e-12)


def test_one_head_alone_is_its_mean_logits(tmp_path: Path) -> None:
    task = task_for(classifier("bert"), [LEARNED_TEXT])
    phi = np.full(12, -5.0)
    phi[6] = 5
    (made,) = run("smat", task, explainer=kept(tmp_path, phi=phi))
    mean = task.attention(task.items[0]).logits[1, 2].mean(0)
    mean[[0, -1]] = -torch.inf
    np.testing.assert_allclose(made.scores, torch.softmax(mean, 0), atol=1e-12)
    assert made.check is not None
    assert made.check.ok


def test_a_model_of_another_shape_is_refused_naming_both(model: str, tmp_path: Path) -> None:
    file = kept(tmp_path, shape=(12, 6))
    words = r"was trained for 12 layers of 6 heads \(a-teacher\), but .* has 3 layers of 4 heads"
    with pytest.raises(UsageError, match=words):
        explain(Request(model, "smat", Example(LEARNED_TEXT), {"explainer": file}))
    with pytest.raises(UsageError, match=words):
        run("smat", task_for(classifier("bert"), [LEARNED_TEXT]), explainer=file)


def test_the_cache_tells_explainers_apart_by_what_they_hold(model: str) -> None:
    asked = Request(model, "smat", Example(LEARNED_TEXT))
    first = for_model(model, phi=np.linspace(-1, 1, 12))
    key, made = key_of(asked), explain(asked)
    assert made.provenance.params == {"explainer": f"made-up@{first.digest}"}
    assert key_of(Request(model, "smat", Example(LEARNED_TEXT), made.provenance.params)) == key
    for_model(model, phi=np.linspace(1, -1, 12))
    assert key_of(asked) != key
    again = explain(asked)
    assert not again.cached
    assert np.abs(again.scores - made.scores).max() > 1e-3
    with pytest.raises(UsageError, match="has changed"):
        explain(Request(model, "smat", Example(LEARNED_TEXT), made.provenance.params))


def test_keys_of_experiments_tell_them_apart_too(model: str) -> None:
    smat = explainer("smat")
    without = method_key(smat, {}, model)
    assert "there is no learned explainer" in str(without[1])
    told = []
    for scale in (1, 2):
        for_model(model, phi=np.linspace(-1, 1, 12) * scale)
        told.append(method_key(smat, {}, model))
    assert without != told[0] != told[1]
    assert method_key(explainer("gradient"), {}, model) == [explainer("gradient").version]


def test_the_note_says_which_explainer_and_what_it_is_worth(model: str) -> None:
    for_model(model)
    (note,) = explain(Request(model, "smat", Example(LEARNED_TEXT))).notes
    assert note.startswith("The learned explainer made-up, from 500 examples of reviews: it taught better than no expl")
    for_model(model, "of-another", revision="1" * 16, teacher="another-model")
    notes = explain(Request(model, "smat", Example(LEARNED_TEXT), {"explainer": "of-another"})).notes
    assert notes[1] == "It was trained for another-model, another model; its quality on this one is unknown."
    for_model(model, "earlier", revision="1" * 16)
    assert (
        "an earlier state of this model"
        in explain(Request(model, "smat", Example(LEARNED_TEXT), {"explainer": "earlier"})).notes[1]
    )


def test_a_head_that_is_off_does_not_count(model: str) -> None:
    phi = np.full(12, -5.0)
    phi[[1, 6]] = 0.5, 0.4
    for_model(model, phi=phi)
    off = HeadScales.off([(0, 1)])
    both, rest = (explain(Request(model, "smat", Example(LEARNED_TEXT), heads=heads)) for heads in (HeadScales(), off))
    assert np.abs(both.scores - rest.scores).max() > 1e-6
    phi[1] = -5
    for_model(model, "rest", phi=phi)
    alone = explain(Request(model, "smat", Example(LEARNED_TEXT), {"explainer": "rest"}, heads=off))
    np.testing.assert_allclose(rest.scores, alone.scores, atol=1e-9)


def test_on_random_weights_it_is_the_one_learned_on_the_real_ones() -> None:
    model = classifier("bert")
    before = fingerprint(model)
    real = task_for(model, [LEARNED_TEXT])
    (made,) = run("smat", real)
    twin = ModelCopy(model)
    with twin.randomized(tuple(twin.weights), 0) as random:
        (destroyed,) = run("smat", task_for(random, [LEARNED_TEXT]))
    assert destroyed.notes == made.notes
    assert np.abs(destroyed.scores - made.scores).max() > 1e-4
    twin.check_untouched()
    assert fingerprint(model) == before


def test_it_serves_texts_and_pictures() -> None:
    assert all("smat" in all_explainers(kind) for kind in ("text", "image"))
