"""Explanations of a next token: closed forms on a linear language model, exact Shapley values, Captum, every method."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from captum.attr import IntegratedGradients
from torch import Tensor, nn

from engine.attacks.attack import attack_many
from engine.attacks.plan import AttackRequest
from engine.behavior.subjects import text_subject
from engine.errors import ExegesisError
from engine.explain import explain, explain_many
from engine.models.causal import CausalModel
from engine.models.loading import load_model
from engine.params import Plain
from engine.predictions import predictions
from engine.removal import coalition_values
from engine.request import Example, HeadScales, Prompt, Request
from engine.result import OTHERS, explained_class
from tests.explaining import METHODS, run, task_for
from tests.linear import ADAPTER, SPECIAL, WIDTH, WORDS, word_tokenizer
from tests.tiny import save_causal

PROMPT = "the ending is warm and"
WIDE = torch.float64


class SumOfEmbeddings(nn.Module):
    """A language model without blocks: the logits are those of the sum of the embeddings up to the last position."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        size = len(SPECIAL) + len(WORDS)
        self.embedding = nn.Embedding.from_pretrained(torch.randn(size, WIDTH, generator=generator, dtype=WIDE))
        self.backbone = Cumulative()
        self.head = nn.Linear(WIDTH, size, bias=False)
        self.head.weight.data = torch.randn(size, WIDTH, generator=generator, dtype=WIDE)
        self.blocks = nn.ModuleList()
        self.config = SimpleNamespace(hidden_size=WIDTH, num_hidden_layers=1, num_attention_heads=1)


class Cumulative(nn.Module):
    def forward(self, inputs_embeds: Tensor, attention_mask: Tensor | None = None, use_cache: bool = False) -> Any:
        if attention_mask is not None:  # the last position sees no hidden one
            inputs_embeds = inputs_embeds * (attention_mask[:, 0, -1, :, None] == 0)
        return SimpleNamespace(last_hidden_state=inputs_embeds.cumsum(1))


@pytest.fixture(scope="module")
def linear() -> CausalModel:
    adapter = replace(ADAPTER, backbone="backbone", reading="last", causal=True)
    module = SumOfEmbeddings().eval().requires_grad_(False)
    tokenizer = word_tokenizer()
    return CausalModel("linear", "0", module, tokenizer, adapter, (), False, WIDE, torch.device("cpu"))


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_causal("llama", tmp_path_factory.mktemp("llama")))


def slopes(model: CausalModel, prompt: Prompt) -> np.ndarray:
    """Of the linear model: what each embedding adds to the logit of the target, minus that of the contrast."""
    module: Any = model.module
    direction = module.head.weight[model.token_id(str(prompt.target))]
    if prompt.contrast is not None:
        direction = direction - module.head.weight[model.token_id(prompt.contrast)]
    return (module.embedding.weight[model.encode(prompt).ids] @ direction).numpy()


@pytest.mark.parametrize("contrast", [None, "drags"])
@pytest.mark.parametrize("method", ["gradient_x_input", "integrated_gradients"])
def test_what_each_token_adds_to_the_logit(linear: CausalModel, method: str, contrast: str | None) -> None:
    """The logit, or the difference of two, is linear: both methods are exact from the zero baseline."""
    prompt = Prompt(PROMPT, target="funny", contrast=contrast)
    params = {"baseline": "zero"} if method == "integrated_gradients" else {}
    [attribution] = run(method, task := task_for(linear, [prompt]), **params)
    [item], added = task.items, slopes(linear, prompt)
    features = item.encoded.features
    np.testing.assert_allclose(attribution.scores[features], added[features], atol=1e-9)
    assert item.prediction.logits[item.target] == pytest.approx(added.sum(), abs=1e-9)


def test_occlusion_by_the_closed_form(linear: CausalModel) -> None:
    """m is the logistic function of the difference: without a token, of the difference without what it adds."""
    prompt = Prompt(PROMPT, target="funny", contrast="drags")
    [attribution] = run("occlusion", task := task_for(linear, [prompt]), removal="zero")
    added, features = slopes(linear, prompt), task.items[0].encoded.features
    whole = added.sum()
    expected = [logistic(whole) - logistic(whole - added[at]) for at in features]
    np.testing.assert_allclose(attribution.scores[features], expected, atol=1e-9)


@pytest.mark.parametrize("prompt", [Prompt(PROMPT, target="funny", contrast="drags"), Prompt(PROMPT)])
def test_kernel_shap_is_the_mean_over_all_orders(linear: CausalModel, prompt: Prompt) -> None:
    [attribution] = run("kernel_shap", task := task_for(linear, [prompt]), removal="zero")
    item = task.items[0]
    features = item.encoded.features.tolist()

    def value(kept: frozenset[int]) -> float:
        keep = np.array([[at in kept or at not in features for at in range(len(item.encoded))]])
        return float(coalition_values(linear, [item.encoded], [item.target], np.zeros(1, int), keep, "zero")[0])

    totals = dict.fromkeys(features, 0.0)
    for order in itertools.permutations(features):
        for place, at in enumerate(order):
            totals[at] += value(frozenset(order[: place + 1])) - value(frozenset(order[:place]))
    expected = [totals[at] / math.factorial(len(features)) for at in features]
    np.testing.assert_allclose(attribution.scores[features], expected, atol=1e-8)


def logistic(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def test_captum_integrates_the_same_difference(llama: str) -> None:
    model = load_model(llama, "float64")
    assert isinstance(model, CausalModel)
    labels = model.encode(Prompt("the film is a quiet triumph")).labels
    prompt = Prompt("the film is a quiet triumph", target=labels[2], contrast=labels[0])
    encoded = model.encode(prompt)
    target, contrast = (model.token_id(str(one)) for one in (prompt.target, prompt.contrast))
    ids = torch.from_numpy(encoded.ids)[None]

    def difference(embeds: Tensor) -> Tensor:
        logits = model.module(inputs_embeds=embeds).logits[:, -1]
        return logits[:, target] - logits[:, contrast]

    embed: Any = model.module.get_input_embeddings()  # type: ignore[operator]
    # From the embedding of the end token: from zero, an RMSNorm's gradient is about 1,000 times that at the prompt.
    theirs = IntegratedGradients(difference).attribute(
        embed(ids), embed(torch.full_like(ids, model.pad_id)), n_steps=400, method="gausslegendre",
        internal_batch_size=64,
    )  # fmt: skip
    [mine] = run("integrated_gradients", task_for(model, [prompt]), baseline="pad")
    assert mine.check is not None
    assert mine.check.ok
    np.testing.assert_allclose(mine.scores, theirs.sum(-1)[0].detach().numpy(), atol=2e-3)
    assert np.abs(mine.scores).max() > 0.1


@pytest.mark.parametrize("method", [method for method in METHODS if method not in ("smat", "empirical")])
def test_every_method_explains_prompts_of_both_kinds(llama: str, method: str) -> None:
    """In one batch as alone: prompts with and without a contrast share passes."""
    model = load_model(llama, "float64")
    labels = model.encode(Prompt("good food")).labels  # type: ignore[attr-defined]
    prompts = [
        Prompt("good food, bad"),
        Prompt("the ending is", target=labels[1], contrast=labels[0]),
        Prompt("lovely", chat=True),
    ]
    together = run(method, task_for(model, prompts))
    for prompt, attribution in zip(prompts, together, strict=True):
        [alone] = run(method, task_for(model, [prompt]))
        np.testing.assert_allclose(attribution.scores, alone.scores, atol=1e-6)
        assert np.isfinite(attribution.scores).all()
        special = model.encode(prompt).special
        assert (~special).sum() > 0


@pytest.fixture
def requests(llama: str, home: object) -> list[Request]:
    labels = load_model(llama).encode(Example("good food")).labels  # type: ignore[attr-defined]
    prompts = [
        Example("good food"),
        Prompt("good food", target=labels[4]),
        Prompt("good food", target=labels[4], contrast=labels[0]),
        Prompt("good food", target=labels[0], contrast=labels[4]),
    ]
    return [Request(llama, "integrated_gradients", prompt) for prompt in prompts]


def test_the_target_is_part_of_the_request(llama: str, requests: list[Request]) -> None:
    plain, named, forth, back = explain_many(requests)
    assert [one.provenance.target_label for one in (plain, named, forth, back)] == [
        plain.prediction.labels[at] for at in (0, 4, 4, 0)
    ]
    assert plain.prediction.labels == named.prediction.labels
    assert plain.prediction.labels[-1] == OTHERS
    np.testing.assert_allclose(named.scores - plain.scores, forth.scores, atol=2e-2)
    np.testing.assert_allclose(forth.scores, -back.scores, atol=1e-6)
    again = explain_many(requests)
    assert all(one.cached for one in again)
    assert [one.prediction for one in again] == [one.prediction for one in (plain, named, forth, back)]
    label = explain(replace(requests[0], target=plain.prediction.labels[4]))
    np.testing.assert_allclose(label.scores, named.scores, atol=1e-9)


def test_scaled_heads_are_explained_with_the_classes_of_the_model(requests: list[Request]) -> None:
    off = HeadScales.off((layer, head) for layer in range(3) for head in range(4))
    for request in requests[:3]:
        [plain, scaled] = explain_many([request, replace(request, heads=off)])
        assert scaled.prediction.labels == plain.prediction.labels
        assert np.abs(scaled.scores - plain.scores).max() > 1e-3


def test_a_long_prompt_says_that_its_start_was_cut_off(llama: str, home: object) -> None:
    explanation = explain(Request(llama, "random", Prompt(" ".join(["good food"] * 60))))
    assert any("tokens were cut off from its start" in note for note in explanation.notes)


def test_an_unknown_token_is_refused(llama: str, home: object) -> None:
    with pytest.raises(
        ExegesisError, match=r"target: must be one token of .*, got 'zebra crossing', which is \d+ tokens"
    ):
        explain(Request(llama, "random", Prompt("good", target="zebra crossing")))


@pytest.mark.parametrize(
    "prompt", [Prompt(PROMPT), Prompt(PROMPT, target=" a"), Prompt(PROMPT, target=" a", contrast="J")]
)
def test_without_a_change_the_predicted_class_is_the_same_whichever_is_explained(llama: str, prompt: Prompt) -> None:
    """Also where all other tokens together are the most probable, and where the contrast is."""
    [prediction] = predictions(llama, [prompt])
    if prompt.contrast is None:
        assert prediction.confidence == max(prediction.probabilities[:-1]) < prediction.probabilities[-1]
    if prompt.target is not None:
        assert prediction.index != explained_class(prompt, prediction)
    model = load_model(llama)
    subject = text_subject(model, prompt)
    assert not subject.class_changes(subject.probabilities([[]])).any()
    attack: dict[str, Plain] = {"objective": "unconstrained", "steps": 2, "epsilon": 1e-6}
    [result] = attack_many([AttackRequest(llama, "gradient_x_input", prompt, attack)])
    assert result.trajectory.class_kept.all()
    assert not result.failed


def test_an_attack_says_that_a_prompt_lost_its_start(llama: str) -> None:
    prompt = Prompt(" ".join([PROMPT] * 100))
    [result] = attack_many([AttackRequest(llama, "gradient_x_input", prompt, {"steps": 1})])
    assert any(note.endswith("were cut off from its start.") for note in result.notes)
