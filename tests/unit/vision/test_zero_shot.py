"""Zero-shot models of pictures and texts: the plain model's numbers, and explanations of both sides."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from engine.errors import ExegesisError, UsageError
from engine.explain import explain, predict_encoded
from engine.input_kinds import kind_of_model
from engine.models import catalog
from engine.models.label_prompts import (
    PICTURE_LABELS,
    LabelPrompts,
    format_labels,
    parse_labels,
    split_prompts,
    with_prompts,
)
from engine.models.loading import load_image_model, load_model
from engine.models.summary import summarize_model
from engine.params import from_mapping
from engine.randomization.model_copy import ModelCopy
from engine.registry import all_explainers, explainer
from engine.request import Example, PicturePrompt, Request
from engine.task import Attribution, Task, TaskItem
from engine.vision.picture import PictureBatch, read_view
from tests.unit.vision.test_families import FAST, pictures
from tests.unit.vision.tiny_families import (
    SIDE,
    ZERO_SHOT,
    plain_similarities,
    plain_zero_shot,
    zero_shot_folder,
    zero_shot_name,
)
from tests.unit.vision.tiny_vit import blobs

PROMPTS = ["a view of the film", "a view of the food", "a view of the price"]


def run(method: str, task: Task, **params: Any) -> list[Attribution]:
    known = explainer(method, task.model.kind)
    return known.function(task, from_mapping(known.params, params, method))


def picture_task(family: str, count: int = 1) -> Task:
    model = load_image_model(zero_shot_name(family), "float64")
    encoded = [model.encode(picture) for picture in pictures(count)]
    made = predict_encoded(model, encoded)
    return Task(model, [TaskItem(e, p, 1, 0) for e, p in zip(encoded, made, strict=True)])


def text_task(family: str, texts: list[str] = PROMPTS[:1]) -> Task:
    model = load_model(zero_shot_name(family), "float64")
    encoded = [model.encode(PicturePrompt(text, picture=blobs(0, 30, 41))) for text in texts]
    made = predict_encoded(model, encoded)
    return Task(model, [TaskItem(e, p, 0, 0) for e, p in zip(encoded, made, strict=True)])


def values_of(family: str) -> torch.Tensor:
    return picture_task(family).batch().pictures


@pytest.mark.parametrize("family", ZERO_SHOT)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logits_are_the_plain_models_similarities(family: str, dtype: str) -> None:
    model = load_image_model(zero_shot_name(family), dtype)
    batch = model.collate([model.encode(picture) for picture in pictures()])
    with torch.inference_mode():
        wanted = plain_similarities(family, batch.pictures.double(), PROMPTS)
        assert wanted.std() > 0.1
        for logits in (
            model.logits(batch),
            model.logits(batch, model.embed(batch)),
            model.logits_with_attention(batch)[0],
        ):
            np.testing.assert_allclose(logits, wanted, atol=1e-5 if dtype == "float32" else 1e-9)
    assert model.labels == read_view(model.id).labels == catalog.model_labels(model.id) == ("film", "food", "price")
    assert kind_of_model(model.id) == "image"


@pytest.mark.parametrize("family", ZERO_SHOT)
def test_scores_of_prompts_are_the_plain_models_similarities(family: str) -> None:
    """Of different lengths: in one batch, one by one, from embeddings and under captured attention."""
    texts = ["film", "a quiet triumph and the acting never falters", "good food, bad service"]
    task = text_task(family, texts)
    model, batch = task.model, task.batch()
    wanted = plain_similarities(family, values_of(family), texts)[0].detach()
    with torch.inference_mode():
        for logits in (
            model.logits(batch),
            model.logits(batch, model.embed(batch)),
            model.logits_with_attention(batch)[0],
            torch.cat([model.logits(task.batch([row])) for row in range(3)]),
        ):
            np.testing.assert_allclose(logits[:, 0], wanted, atol=1e-9)
        _, recorder = model.logits_with_attention(batch)
    assert len(recorder.probabilities) == 3
    assert all(torch.allclose(layer.sum(-1), torch.ones((), dtype=layer.dtype)) for layer in recorder.probabilities)


@pytest.mark.parametrize("family", ZERO_SHOT)
def test_the_picture_side_against_the_plain_model(family: str) -> None:
    """Gradients, occlusion, the path integral and AttnLRP's conservation, or its refusal by the missing part."""
    task, values = picture_task(family), values_of(family).clone().requires_grad_()
    model = task.model
    plain = plain_similarities(family, values, PROMPTS)[0, 1]
    (slope,) = torch.autograd.grad(plain, values)
    [made] = run("gradient_x_input", task)
    tiles = (slope * values).detach()[0].reshape(3, 3, SIDE, 3, SIDE).sum(dim=(0, 2, 4)).reshape(-1)
    np.testing.assert_allclose(made.scores[model.specials :], tiles, atol=1e-9)
    [made] = run("occlusion", task, removal="mean")
    without = values.detach().clone()
    without[:, :, SIDE : 2 * SIDE, :SIDE] = 0
    pixels = torch.cat([values.detach(), without])
    whole, rest = torch.softmax(plain_similarities(family, pixels, PROMPTS), 1)[:, 1].tolist()
    assert made.scores[model.specials + 3] == pytest.approx(whole - rest, abs=1e-9)
    [made] = run("integrated_gradients", task, steps="fixed", n_steps=257)
    gray = plain_similarities(family, torch.zeros_like(values), PROMPTS)[0, 1]
    assert made.scores.sum() == pytest.approx(float(plain.detach() - gray), abs=1e-4)
    if family == "siglip":
        with pytest.raises(Exception, match="do not cover SigLIP models: there is none for the attention pooling head"):
            run("attn_lrp", task)
    else:
        assert run("attn_lrp", task)[0].check.value < 1e-9  # type: ignore[union-attr]


@pytest.mark.parametrize("family", ZERO_SHOT)
def test_grad_cam_reads_patches_where_the_pooled_token_still_attends_to_them(family: str) -> None:
    [made] = run("grad_cam", picture_task(family), sign="both")
    assert np.count_nonzero(made.scores) > len(made.scores) // 2


def test_a_patch_that_siglip_does_not_see_is_not_pooled() -> None:
    model = picture_task("siglip").model
    batch, module = picture_task("siglip").batch(), plain_zero_shot("siglip").vision_model
    visible = batch.visible.clone()
    visible[:, [2, 7]] = False
    remaining = torch.nonzero(visible[0])[:, 0]
    with torch.inference_mode():
        masked = model.logits(PictureBatch(batch.pictures, batch.index, visible, False, 0))
        states = module.embeddings(batch.pictures)[:, remaining]
        for block in module.encoder.layers:
            states = block(states, None)
        vector = module.head(module.post_layernorm(states))
        own = vector / vector.norm(dim=-1, keepdim=True)
        wanted = own @ model.module.similarity.scaled.T + model.module.similarity.bias
    np.testing.assert_allclose(masked, wanted, atol=1e-9)


@pytest.mark.parametrize("family", ZERO_SHOT)
def test_occlusion_of_a_prompt_is_the_plain_models_change(family: str) -> None:
    """A token that is taken out: the prompt without it, tokenized by the plain model."""
    text = "a view of the film"
    task = text_task(family, [text])
    [made] = run("occlusion", task, removal="delete")
    encoded = task.examples[0]
    place = int(encoded.features[-1])
    ids = torch.from_numpy(np.delete(encoded.ids, place))[None]
    pad = task.model.pad_id
    inputs = {"input_ids": torch.nn.functional.pad(ids, (0, 1), value=pad) if family == "siglip" else ids}
    plain = plain_zero_shot(family)
    with torch.inference_mode():
        whole = plain(pixel_values=values_of(family), input_ids=torch.from_numpy(encoded.ids)[None]).logits_per_image
        without = plain(pixel_values=values_of(family), **inputs).logits_per_image
    assert made.scores[place] == pytest.approx(float(whole - without), abs=1e-9)
    assert not made.scores[encoded.special].any()


@pytest.mark.parametrize("family", ZERO_SHOT)
def test_relevance_of_a_prompt_is_conserved(family: str) -> None:
    [made] = run("attn_lrp", text_task(family))
    scale = float(plain_zero_shot(family).logit_scale.exp())
    assert made.check is not None
    assert made.check.value < 1e-9
    relevance = made.extras["relevance"]
    bias = -2.0 if family == "siglip" else 0.0
    assert abs(relevance["logit"] - bias) <= scale
    assert np.abs(made.scores).max() > 1e-3


@pytest.mark.parametrize("family", ZERO_SHOT)
@pytest.mark.parametrize("side", ["image", "text"])
def test_every_method_serves_both_sides(family: str, side: str) -> None:
    task = picture_task(family, 2) if side == "image" else text_task(family, PROMPTS[:2])
    for name, method in all_explainers(side).items():
        if method.resolver is not None or method.family == "ensemble" or name in ("exact_shapley", "random", "bee"):
            continue
        if (name, family, side) == ("attn_lrp", "siglip", "image") or (name, side) == ("least_sensitive", "text"):
            continue  # refused in words: see the tests above and below
        known = {field.name for field in dataclasses.fields(method.params)}
        params = {key: value for key, value in FAST.items() if key in known}
        together = run(name, task, **params)
        [alone] = run(name, Task(task.model, task.items[1:]), **params)
        assert all(np.isfinite(made.scores).all() for made in together)
        np.testing.assert_allclose(together[1].scores, alone.scores, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("family", ZERO_SHOT)
def test_the_head_and_the_blocks_are_randomized_but_the_labels_stay(family: str) -> None:
    task = picture_task(family)
    model = task.model
    twin = ModelCopy(model)
    assert set(twin.weights) == {"head", "1", "2", "3", "embeddings"}
    assert not any("text" in name for own in twin.weights.values() for name in own)
    with torch.inference_mode():
        own = model.logits(task.batch())
        for part in twin.weights:
            with twin.randomized([part], seed=1) as other:
                assert (other.logits(task.batch()) - own).abs().max() > 1e-6
                assert other.module.similarity.scaled.equal(model.module.similarity.scaled)
        np.testing.assert_array_equal(model.logits(task.batch()), own)
    twin.check_untouched()


def test_an_explanation_of_either_side_is_cached_by_labels_and_picture() -> None:
    name, picture = zero_shot_name("clip"), blobs(0, 30, 41)
    own = explain(Request(name, "occlusion", picture))
    other = explain(Request(with_prompts(name, "film, food", "a view of the {}"), "occlusion", picture))
    assert own.prediction.labels == ("film", "food", "price")
    assert other.prediction.labels == ("film", "food")
    assert not other.cached
    assert explain(Request(name, "occlusion", picture)).cached
    prompt = explain(Request(name, "occlusion", PicturePrompt(PROMPTS[0], picture=picture)))
    assert prompt.prediction.logits[0] == pytest.approx(own.prediction.logits[0], abs=1e-4)
    assert next(token.text for token in prompt.tokens if not token.special) == "a"
    elsewhere = explain(Request(name, "occlusion", PicturePrompt(PROMPTS[0], picture=blobs(1, 30, 41))))
    assert not elsewhere.cached
    assert elsewhere.prediction.logits != prompt.prediction.logits


def test_a_picker_says_whose_labels_the_classes_are() -> None:
    folder = str(zero_shot_folder("clip"))
    assert summarize_model(folder).task == "Labels of your choice"
    named = summarize_model(with_prompts(folder, "a, b"))
    assert (named.task, named.labels, named.parameters) == ("2 classes", ("a", "b"), summarize_model(folder).parameters)


def test_labels_are_typed_and_named() -> None:
    assert parse_labels("a cat, a dog ,") == ("a cat", "a dog")
    assert parse_labels('"a cat, asleep", a dog') == ("a cat, asleep", "a dog")
    assert format_labels(("a cat, asleep", "a dog")) == '"a cat, asleep", a dog'
    awkward = ("a|b, c & d", '12" disc', '"said", she', "x=1?labels=y", "50%2C #3 + é")
    assert parse_labels(format_labels(awkward)) == awkward
    assert split_prompts(with_prompts("m", format_labels(awkward)))[1] == LabelPrompts(awkward)
    name = with_prompts("my/clip", '"50% & more, a=b", c?', "a photo of {}, blurred")
    assert "," not in name
    base, prompts = split_prompts(name)
    assert base == "my/clip"
    assert prompts == LabelPrompts(("50% & more, a=b", "c?"), "a photo of {}, blurred")
    assert prompts.texts(PICTURE_LABELS) == ("a photo of 50% & more, a=b, blurred", "a photo of c?, blurred")
    assert split_prompts(with_prompts(name, "x, y"))[1] == LabelPrompts(("x", "y"))
    assert split_prompts("my/clip") == ("my/clip", None)


@pytest.mark.parametrize(
    ("labels", "template", "sentence"),
    [
        ("", "{}", "labels: must be labels between commas, .*, got 'none'"),
        ("a, b, a", "{}", "labels: 'a' is there twice. Give each class one label"),
        ("a, b", "a photo", r"template: must be a text with \{\} once, .*, got 'a photo'"),
        ("a, b", "{} and {}", r"template: must be a text with \{\} once"),
        ("a, " + "b" * 400, "{}", "labels: must have at most 300 characters each"),
    ],
)
def test_wrong_labels_are_refused(labels: str, template: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        with_prompts("clip", labels, template)


def test_what_does_not_fit_is_refused() -> None:
    folder = str(zero_shot_folder("clip"))
    with pytest.raises(UsageError, match=r"matches pictures with texts and has no classes of its own\. Give it"):
        read_view(folder)
    with pytest.raises(UsageError, match=r"matches pictures with texts and has no classes of its own\. Give it"):
        load_image_model(folder)
    with pytest.raises(UsageError, match=r"labels: must be 2 to 1,000 labels, such as 'a cat, a dog', got 'a cat'"):
        load_image_model(with_prompts(folder, "a cat"))
    with pytest.raises(UsageError, match=r"labels: the model .* has classes of its own\. Leave labels and"):
        load_image_model(with_prompts("scenes-vit", "a, b"))
    with pytest.raises(UsageError, match=r"after its labels only template=\.\.\. may follow, got"):
        catalog.locate(f"{folder}?labels=a|b&size=3")
    with pytest.raises(UsageError, match=r"reads a text beside a picture\. Give the picture"):
        load_model(zero_shot_name("clip")).encode(Example("film"))
    with pytest.raises(ExegesisError, match="a label's prompt beside a picture has no neighbors"):
        run("least_sensitive", text_task("clip"))
