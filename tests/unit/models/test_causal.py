"""Causal language models: the mask-safe gate for every family, the classes of a prompt, and bad input."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from engine.errors import ExegesisError, UsageError
from engine.explain import predict_encoded
from engine.format import visible_token
from engine.heads.scaling import scaled_model
from engine.models import catalog
from engine.models.causal import CANDIDATES, CausalModel, EncodedPrompt
from engine.models.inspection import inspect_model
from engine.models.loading import load_model
from engine.models.summary import model_size, summarize_model
from engine.randomization.model_copy import ModelCopy
from engine.removal import removed
from engine.request import Example, HeadScales, Prompt, read_example
from engine.result import OTHERS, Prediction, explained_class, predicted_name
from engine.substitution import Edit, edited, with_fixed_classes, words_of
from tests.explaining import run, task_for
from tests.tiny import CAUSAL_FAMILIES, save_causal

TEXTS = (
    "the film is a quiet triumph",
    "good",
    "although the plot drags, the ending is warm and funny and never falters",
    "the price is not worth it",
)
PROMPTS = [Prompt(text) for text in TEXTS]


@pytest.fixture(scope="module", params=CAUSAL_FAMILIES)
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_causal(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def model(family: Path) -> CausalModel:
    return loaded(family)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> CausalModel:
    return loaded(save_causal("llama", tmp_path_factory.mktemp("llama")))


def loaded(folder: Path, dtype: str = "float32") -> CausalModel:
    model = load_model(str(folder), dtype)
    assert isinstance(model, CausalModel)
    return model


def plain_logits(folder: Path) -> Callable[..., torch.Tensor]:
    """Logits of the next token by the untouched checkpoint, of one prompt at a time, with eager attention."""
    module: Any = transformers.AutoModelForCausalLM.from_pretrained(str(folder), attn_implementation="eager").eval()

    def compute(ids: Any, **inputs: Any) -> torch.Tensor:
        with torch.no_grad():
            return module(input_ids=torch.tensor([list(ids)]), **inputs).logits[0, -1]

    return compute


def test_a_padded_batch_equals_single_prompts(model: CausalModel, family: Path) -> None:
    encoded = [model.encode(prompt) for prompt in PROMPTS]
    plain, batch = plain_logits(family), model.collate(encoded)
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(family))
    expected = torch.stack([plain(tokenizer(text)["input_ids"]) for text in TEXTS])
    assert not batch.whole
    embeds = model.embed(batch).clone().requires_grad_()
    torch.testing.assert_close(model.next_logits(batch, embeds), expected, atol=1e-5, rtol=1e-5)
    (gradient,) = torch.autograd.grad(model.logits(batch, embeds).sum(), embeds)
    assert gradient[~batch.visible].abs().max() == 0, "a padded position must not matter"
    with torch.no_grad():
        captured, recorder = model.logits_with_attention(batch)
        torch.testing.assert_close(captured, model.logits(batch), atol=1e-5, rtol=1e-5)
        for alone, row in zip(encoded, captured, strict=True):
            torch.testing.assert_close(model.logits(model.collate([alone]))[0], row, atol=1e-5, rtol=1e-5)
    assert len(recorder.probabilities) == len(model.blocks) == 3
    for attention in recorder.probabilities:
        assert attention.shape[:2] == (len(PROMPTS), 4)
        torch.testing.assert_close(attention.sum(-1), torch.ones(attention.shape[:3]))
        assert attention.triu(1).abs().max() == 0, "nobody attends to the future"


@pytest.mark.parametrize("operator", ["delete", "hide", "mask"])
def test_removal_is_what_the_checkpoint_does_with_such_a_prompt(
    model: CausalModel, family: Path, operator: str
) -> None:
    """Removed in a padded batch, against the checkpoint: without the tokens, with a mask, with the token in place."""
    plain, encoded = plain_logits(family), [model.encode(PROMPTS[2]), model.encode(PROMPTS[0])]
    batch = model.collate(encoded)
    keep = torch.ones_like(batch.visible)
    gone = [2, 3, len(encoded[0]) - 4]
    keep[0, gone] = keep[1, 1] = False
    with torch.no_grad():
        found = model.next_logits(*removed(model, batch, keep, operator))
    for row, one in enumerate(encoded):
        stays = keep[row, : len(one)].numpy()
        if operator == "delete":
            expected = plain(one.ids[stays])
        elif operator == "hide":
            places = torch.arange(len(one))[None]
            expected = plain(one.ids, attention_mask=torch.from_numpy(stays)[None].long(), position_ids=places)
        else:
            expected = plain(np.where(stays, one.ids, model.mask_id))
        torch.testing.assert_close(found[row], expected, atol=1e-5, rtol=1e-5)


def test_half_precision_agrees_with_single(family: Path, model: CausalModel) -> None:
    half = loaded(family, "bfloat16")
    encoded = [half.encode(Prompt(prompt.text, target=model.encode(prompt).labels[0])) for prompt in PROMPTS]
    with torch.no_grad():
        batched = half.logits(half.collate(encoded))
        single = [half.logits(half.collate([one]))[0] for one in encoded]
        full = model.next_logits(model.collate([model.encode(prompt) for prompt in PROMPTS]))
    assert batched.dtype == torch.float32, "the sum over all other tokens needs more than bfloat16 holds"
    torch.testing.assert_close(batched, torch.stack(single), atol=0.25, rtol=0.1)
    assert (half.next_logits(half.collate(encoded)).float() - full).abs().mean() < 0.1 * full.abs().mean()


def test_the_classes_hold_exactly_the_probabilities_of_the_vocabulary(model: CausalModel) -> None:
    encoded = [model.encode(prompt) for prompt in PROMPTS]
    with torch.no_grad():
        full = torch.softmax(model.next_logits(model.collate(encoded)).double(), dim=-1).numpy()
    for one, row, prediction in zip(encoded, full, predict_encoded(model, encoded), strict=True):
        assert prediction.labels == one.labels
        assert len(set(one.labels)) == CANDIDATES + 1
        assert one.labels[-1] == OTHERS
        np.testing.assert_allclose(prediction.probabilities[:-1], row[one.candidates], atol=1e-6)
        assert prediction.probabilities[-1] == pytest.approx(1 - row[one.candidates].sum(), abs=1e-6)
        assert row[one.candidates].tolist() == sorted(row, reverse=True)[:CANDIDATES]
        assert one.labels[:-1] == model.token_labels(one.candidates.tolist())
        assert prediction.label == model.token_text(int(row.argmax())), "many tokens together are no prediction"


def test_a_contrast_is_the_difference_of_two_logits_in_any_batch(model: CausalModel) -> None:
    first = model.encode(PROMPTS[0])
    target, contrast = first.labels[3], first.labels[1]
    [pair, alone] = [model.encode(Prompt(TEXTS[0], target=target, contrast=contrast)), model.encode(PROMPTS[1])]
    with torch.no_grad():
        [full, _] = model.next_logits(model.collate([first, alone]))
        mixed, apart = model.logits(model.collate([pair, alone])), model.logits(model.collate([pair]))
    difference = full[model.token_id(target)] - full[model.token_id(contrast)]
    torch.testing.assert_close(apart[0], torch.stack([difference, torch.zeros(())]), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(mixed[0, :2], apart[0], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(mixed[1:], model.logits(model.collate([alone])), atol=1e-5, rtol=1e-5)
    assert torch.softmax(mixed[0].double(), 0)[2:].max() == 0, "classes that a prompt lacks have no probability"
    [prediction] = predict_encoded(model, [pair])
    assert prediction.labels == (target, contrast)
    assert prediction.probabilities[0] == pytest.approx(float(torch.sigmoid(difference.double())), abs=1e-6)
    assert (
        model.target_index(None, prediction, pair)
        == 0
        == explained_class(Prompt("", target=target, contrast=contrast), prediction)
    )
    with pytest.raises(UsageError, match=r"is the contrast, .*Swap the two"):
        model.target_index(contrast, prediction, pair)


def test_an_unlikely_target_takes_the_last_place(llama: CausalModel) -> None:
    likely = llama.encode(PROMPTS[0])
    rare = next(i for i in range(len(llama.tokenizer)) if i not in likely.candidates)
    named = llama.encode(Prompt(TEXTS[0], target=llama.token_text(rare)))
    assert named.labels[:-2] == likely.labels[:-2]
    assert named.labels[-2:] == (llama.token_text(rare), OTHERS)
    [prediction] = predict_encoded(llama, [named])
    assert llama.target_index(None, prediction, named) == named.target == CANDIDATES - 1
    assert prediction.index == 0


def test_labels_are_never_shared(llama: CausalModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama, "token_text", {1: "a", 2: "a", 3: OTHERS, 4: "b"}.__getitem__)
    assert llama.token_labels([1, 2, 3, 4]) == ("a", "a (2)", f"{OTHERS} (3)", "b")
    assert llama.token_labels([1, 2], first=1) == ("a (1)", "a"), "the target has its text"


def test_every_token_is_named_by_its_text(model: CausalModel) -> None:
    texts = [model.token_text(token) for token in range(len(model.tokenizer))]
    unique = [token for token, text in enumerate(texts) if texts.count(text) == 1]
    assert len(unique) > 0.9 * len(texts)
    assert [model.token_id(texts[token]) for token in unique] == unique
    assert model.token_text(len(model.tokenizer) + 3) == f"token {len(model.tokenizer) + 3}"
    spaced = [(text, token) for text, token in zip(texts, range(len(texts)), strict=True) if text.startswith(" ")]
    text, token = next(pair for pair in spaced if pair[0][1:] not in texts and pair[0].strip() and pair[1] in unique)
    assert model.token_id(text[1:]) == token, "where no token is the text itself, its leading space may be left out"
    prompt = Prompt("good", target=text[1:])
    [prediction] = predict_encoded(model, [model.encode(prompt)])
    assert prediction.labels[explained_class(prompt, prediction)] == text
    assert (prediction.of_two_tokens, prediction.class_word) == (False, "token")
    assert predicted_name(prediction) == visible_token(prediction.label)


def test_probabilities_of_two_tokens_name_both(llama: CausalModel) -> None:
    first, second = llama.labels_of(llama.encode(Prompt("good")))[:2]
    [prediction] = predict_encoded(llama, [llama.encode(Prompt("good", target=first, contrast=second))])
    assert predicted_name(prediction) == f"{visible_token(first)} rather than {visible_token(second)}"
    [swapped] = predict_encoded(llama, [llama.encode(Prompt("good", target=second, contrast=first))])
    assert predicted_name(swapped) == predicted_name(prediction), "the predicted one stands first"
    assert swapped.class_word == "token"
    assert predicted_name(Prediction(("no", "yes"), (0.1, 0.3), (0.45, 0.55))) == "yes"


def test_copies_with_other_weights_or_heads_keep_the_candidates(model: CausalModel) -> None:
    before = model.encode(PROMPTS[0])
    model.memo.clear()
    with ModelCopy(model).randomized(["3", "2", "1"], seed=1) as randomized:
        assert randomized.module is not model.module
        assert randomized.encode(PROMPTS[0]).labels == before.labels
        with torch.no_grad():
            changed = randomized.logits(randomized.collate([before]))
    off = HeadScales.off((layer, head) for layer in range(3) for head in range(4))
    with scaled_model(model, off) as scaled:
        assert scaled.encode(PROMPTS[0]).labels == before.labels
        with torch.no_grad():
            unheard = scaled.logits(scaled.collate([before]))
    with torch.no_grad():
        plain = model.logits(model.collate([before]))
    assert min((changed - plain).abs().max(), (unheard - plain).abs().max()) > 0.1


def test_heads_are_scaled_before_the_output_projection(llama: CausalModel) -> None:
    """Twice the output of a head is twice its columns of the projection."""
    encoded = llama.encode(PROMPTS[0])
    with torch.no_grad():
        with scaled_model(llama, HeadScales.from_mapping({(1, 2): 2})) as scaled:
            found = scaled.logits(scaled.collate([encoded]))
        weight = llama.blocks[1].self_attn.o_proj.weight  # type: ignore[union-attr]
        weight[:, 12:18] *= 2  # type: ignore[index]
        try:
            expected = llama.logits(llama.collate([encoded]))
        finally:
            weight[:, 12:18] /= 2  # type: ignore[index]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_lrp_conserves_the_logit_or_says_that_it_cannot(family: Path) -> None:
    model = loaded(family, "float64")
    first = model.encode(PROMPTS[0])
    task = task_for(model, [PROMPTS[0], PROMPTS[2], Prompt(TEXTS[3], target=first.labels[0], contrast=first.labels[1])])
    if model.adapter.lrp is None:
        with pytest.raises(ExegesisError, match=r"attn_lrp: its rules do not cover Gemma 2 models: there is none"):
            run("attn_lrp", task)
        return
    for attribution, item in zip(run("attn_lrp", task), task.items, strict=True):
        parts = attribution.extras["relevance"]
        assert parts["logit"] == pytest.approx(item.prediction.logits[item.target])
        assert attribution.check is not None
        assert attribution.check.value < 1e-6
        assert np.abs(attribution.scores).max() > 1e-3


def test_edits_have_the_classes_of_the_prompt(llama: CausalModel) -> None:
    for example in (Example(TEXTS[0]), Prompt(TEXTS[0], target=" the"), Prompt(TEXTS[0], chat=True)):
        fixed = with_fixed_classes(llama.id, example)
        changed = edited(fixed, [Edit(words_of(example)[1], "plot")])
        assert (changed.text, changed.of) == ("the plot is a quiet triumph", TEXTS[0])  # type: ignore[attr-defined]
        assert llama.encode(changed).labels == llama.encode(example).labels
        assert read_example(changed.as_plain()) == read_example(vars(changed)) == changed
        assert changed.as_plain() != edited(Prompt(TEXTS[0]), []).as_plain()
    free = edited(Prompt(TEXTS[0]), [Edit(words_of(PROMPTS[0])[1], "plot")])
    assert llama.encode(free).labels != llama.encode(PROMPTS[0]).labels


def test_a_chat_template_is_special_and_the_text_keeps_its_places(llama: CausalModel) -> None:
    text = "  user: good food\n"
    encoded = llama.encode(Prompt(text, chat=True))
    read = [token for token in encoded.tokens if not token.special]
    assert "".join(text[token.start : token.end] for token in read) == text.replace(" ", "").strip()
    whole = llama.tokenizer.apply_chat_template(
        [{"role": "user", "content": text}], add_generation_prompt=True, return_dict=False
    )
    assert encoded.ids.tolist() == whole
    specials = [token.text for token in encoded.tokens if token.special]
    assert specials.count("<|im_start|>") == 2
    assert encoded.features.tolist() == list(range(int(encoded.features[0]), int(encoded.features[-1]) + 1))


def test_a_long_prompt_loses_its_first_tokens(llama: CausalModel) -> None:
    text = " ".join(["good food, bad service"] * 40)
    for chat in (False, True):
        encoded = llama.encode(Prompt(text, chat=chat))
        assert len(encoded) == llama.max_length == 64
        last = max(token.end for token in encoded.tokens if not token.special)
        assert (last, encoded.truncated > 0) == (len(text), True)
        assert encoded.cut_before == min(token.start for token in encoded.tokens if not token.special) > 0
    with pytest.raises(UsageError, match=r"the chat template of .* alone has \d+ tokens, but at most 5 are read"):
        llama.encode(Prompt("good", chat=True), max_length=5)


@pytest.mark.parametrize(
    ("prompt", "wrong"),
    [
        (Prompt(""), r"text: nothing to explain"),
        (Prompt(" ", chat=True), r"text: nothing to explain"),
        (
            Prompt("good", target=" harbour view"),
            r"target: must be one token .* which is \d+ tokens \(.*Name the first",
        ),
        (Prompt("good", contrast="\N{SNOWMAN}\N{SNOWMAN}"), r"contrast: must be one token .* put those before it"),
        (Example("good", "bad"), r"text_pair: a prompt is one text"),
    ],
)
def test_bad_prompts(llama: CausalModel, prompt: Example, wrong: str) -> None:
    with pytest.raises(UsageError, match=wrong):
        llama.encode(prompt)


def test_a_contrast_to_the_most_probable_token_itself(llama: CausalModel) -> None:
    with pytest.raises(UsageError, match=r"contrast: .* is the target itself, the most probable next token"):
        llama.encode(Prompt(TEXTS[0], contrast=llama.encode(PROMPTS[0]).labels[0]))
    with pytest.raises(UsageError, match=r"contrast: must differ from the target"):
        Prompt(TEXTS[0], target=" a", contrast=" a")


@pytest.mark.parametrize(
    ("template", "wrong"),
    [
        ("", r"has no chat template\. Explain the prompt as it is"),
        ("{{ messages.__class__.__base__.__subclasses__() }}", r"its chat template fails \(SecurityError"),
        ("{{ raise_exception('no users') }}", r"its chat template fails \(TemplateError: 'no users'"),
        ("{{ messages[0].content | upper }}", r"its chat template changes the text"),
        ("{{ messages[0].content", r"its chat template fails \(TemplateSyntaxError"),
    ],
)
def test_chat_templates_that_cannot_be_used(llama: CausalModel, template: str, wrong: str) -> None:
    """One that would run code is refused by the sandbox in which transformers renders."""
    before = llama.tokenizer.chat_template
    llama.tokenizer.chat_template = template
    try:
        with pytest.raises((UsageError, ExegesisError), match=wrong):
            llama.encode(Prompt("good food", chat=True))
    finally:
        llama.tokenizer.chat_template = before


def test_an_unknown_architecture_lists_the_known_ones(llama: CausalModel, tmp_path: Path) -> None:
    folder = shutil.copytree(llama.id, tmp_path / "opt")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps({**config, "architectures": ["OPTForCausalLM"], "model_type": "opt"})
    )
    with pytest.raises(ExegesisError, match=r"'opt' is not supported.* language models: LlamaForCausalLM, Mistral"):
        load_model(str(folder))


def test_a_language_model_is_described_as_one(family: Path, model: CausalModel) -> None:
    size = model.vocabulary
    assert catalog.is_causal(str(family))
    assert (catalog.model_labels(str(family)), catalog.vocabulary_size(str(family))) == ((), size)
    assert summarize_model(str(family)).task == f"Language model, {size:,} tokens"
    assert model_size(str(family)).architecture == model.adapter.family
    facts = inspect_model(str(family))
    assert (facts["task"], facts["vocabulary"], facts["labels"]) == ("language model: the next token", size, [])
    assert all(check["ok"] for check in facts["checks"])
    assert not catalog.is_causal("reviews-minilm")
    assert not catalog.is_causal("gpt2-nli"), "an adapter of a language model is a classifier"


def test_a_base_is_a_language_model_by_its_name() -> None:
    model = load_model("bases/gpt2")
    assert isinstance(model, CausalModel)
    assert isinstance(model.encode(Prompt("the film is")), EncodedPrompt)
