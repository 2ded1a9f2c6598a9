"""The gate of DINOv2, CLIP and SigLIP: the plain checkpoint's numbers, by every method."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from engine.errors import ExegesisError, UsageError
from engine.explain import predict_encoded
from engine.heads.scaling import layers_and_heads
from engine.input_kinds import kind_of_model
from engine.models import catalog
from engine.models.attention import scale_heads, twice_differentiable
from engine.models.loading import load_image_model
from engine.models.summary import block_count, model_size
from engine.params import from_mapping
from engine.randomization.model_copy import ModelCopy, fingerprint
from engine.registry import all_explainers, explainer
from engine.removal import coalition_quantities, token_masks
from engine.request import Picture
from engine.scaffold.student import load_base
from engine.task import Attribution, Task, TaskItem
from engine.vision.adapters import IMAGE_ADAPTERS
from engine.vision.classifier import cut_patches
from engine.vision.picture import PictureBatch, read_view
from tests.project import ROOT
from tests.unit.vision.tiny_families import (
    FAMILIES,
    family_folder,
    family_model,
    picture_processor,
    plain_family,
    plain_logits,
    save_family,
)
from tests.unit.vision.tiny_vit import blobs

GLOBAL = [family for family in FAMILIES if family != "swin"]
"""Families with attention between all patches."""
FAST = {"n_samples": 8, "n_steps": 9, "n_trials": 1, "n_segments": 3, "steps": "fixed"}


def pictures(count: int = 3) -> list[Picture]:
    return [blobs(seed, 30, 41) for seed in range(count)]


def task_for(family: str, count: int = 1, target: int = 1) -> Task:
    model = family_model(family)
    encoded = [model.encode(picture) for picture in pictures(count)]
    made = predict_encoded(model, encoded)
    return Task(model, [TaskItem(e, p, target, 0) for e, p in zip(encoded, made, strict=True)])


def run(method: str, task: Task, **params: Any) -> list[Attribution]:
    known = explainer(method, "image")
    return known.function(task, from_mapping(known.params, params, method))


def values_of(family: str, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(family_model(family).encode(blobs(seed, 30, 41)).values).double()[None]


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_are_those_of_the_plain_model(family: str) -> None:
    model = family_model(family)
    batch = model.collate([model.encode(picture) for picture in pictures()])
    with torch.inference_mode():
        wanted = torch.cat([plain_family(family)(pixel_values=row[None]).logits for row in batch.pictures])
        assert wanted.std() > 0.1
        ours = [
            model.logits(batch),
            model.logits(batch, model.embed(batch)),
            model.logits(batch, model.embed_points(model.points(batch, "pixels"), "pixels")),
            *([model.logits_with_attention(batch)[0]] if family in GLOBAL else []),
        ]
        for logits in ours:
            np.testing.assert_allclose(logits, wanted, atol=1e-9)


@pytest.mark.parametrize("family", GLOBAL)
def test_captured_attention_is_that_of_the_eager_model(family: str) -> None:
    model, plain = family_model(family), plain_family(family)
    batch = model.collate([model.encode(picture) for picture in pictures(2)])
    with torch.inference_mode():
        _, recorder = model.logits_with_attention(batch)
        plain.set_attn_implementation("eager")
        try:
            wanted = plain(pixel_values=batch.pictures, output_attentions=True).attentions
        finally:
            plain.set_attn_implementation("sdpa")
    assert len(recorder.probabilities) == len(wanted) == 3
    for layer, own in zip(recorder.probabilities, wanted, strict=True):
        np.testing.assert_allclose(layer, own, atol=1e-6)  # transformers takes some softmaxes in single precision
        np.testing.assert_allclose(layer.sum(-1), 1, atol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_real_processor_and_the_view_agree_with_the_model(family: str) -> None:
    folder, model = str(family_folder(family)), family_model(family)
    processor, view = picture_processor(FAMILIES[family][0]), read_view(folder)
    picture = pictures(1)[0]
    encoded = model.encode(picture)
    wanted = processor(Image.fromarray(picture.pixels), return_tensors="np")["pixel_values"][0]
    np.testing.assert_allclose(encoded.values, wanted, atol=1e-5)
    assert (view.size, view.patch, view.grid, view.specials) == (model.size, model.patch, model.grid, encoded.specials)
    assert view.labels == model.labels == ("cat", "dog", "eel")
    assert kind_of_model(folder) == "image"
    size = model_size(folder)
    assert (block_count(folder), size.heads, size.architecture) == (3, 4, model.adapter.family)
    if family in GLOBAL:
        assert layers_and_heads(model) == (3, 4)


def test_registers_are_special_tokens_with_names_of_their_own() -> None:
    encoded = family_model("dinov2-registers").encode(pictures(1)[0])
    assert [token.text for token in encoded.tokens[:4]] == ["[CLS]", "[REG 1]", "[REG 2]", "row 1, column 1"]
    assert encoded.special.tolist() == [True] * 3 + [False] * 12


@pytest.mark.parametrize("family", GLOBAL)
def test_a_hidden_patch_is_as_if_it_were_taken_out(family: str) -> None:
    """The plain blocks on a sequence without the patch, then the head by hand."""
    model = family_model(family)
    batch = model.collate([model.encode(picture) for picture in pictures(2)])
    specials = model.specials
    visible = batch.visible.clone()
    visible[:, [specials + 2, specials + 7]] = False
    remaining = torch.nonzero(visible[0])[:, 0]
    module, adapter = plain_family(family), model.adapter
    with torch.inference_mode():
        masked = model.logits(PictureBatch(batch.pictures, batch.index, visible, False, specials))
        states = module.get_submodule(adapter.embeddings)(batch.pictures)
        if adapter.pre_norm:
            states = module.get_submodule(f"{adapter.backbone}.{adapter.pre_norm}")(states)
        states = states[:, remaining]
        for block in module.get_submodule(adapter.blocks):
            states = block(states, None)
        states = states if adapter.norm is None else module.get_submodule(adapter.norm)(states)
        pooled = states[:, specials:].mean(1)
        pooled = torch.cat([states[:, 0], pooled], 1) if family.startswith("dinov2") else pooled
        np.testing.assert_allclose(masked, module.classifier(pooled), atol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("operator", ["mean", "zero", "blur", "drop"])
def test_removal_of_all_patches_and_of_none(family: str, operator: str) -> None:
    task = task_for(family)
    model, [encoded] = task.model, task.examples
    kept = np.array([np.ones(len(encoded.features), bool), np.zeros(len(encoded.features), bool)])
    keep = token_masks(encoded, kept, len(encoded))
    index = np.zeros(2, dtype=int)
    if (family, operator) == ("swin", "drop"):
        with pytest.raises(
            UsageError, match="removal: must be mean, zero or blur for Swin models, got drop: their win"
        ):
            coalition_quantities(model, task.examples, [1], index, keep, operator)
        return
    values = coalition_quantities(model, task.examples, [1], index, keep, operator)
    assert values[0, 1] == pytest.approx(task.items[0].prediction.logits[1], abs=1e-9)
    assert np.isfinite(values).all()
    if operator == "mean":
        gray = plain_logits(family, torch.zeros_like(values_of(family)))
        assert values[1, 1] == pytest.approx(float(gray[0, 1]), abs=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_are_the_plain_models_at_the_pixels(family: str) -> None:
    values = values_of(family).requires_grad_()
    (slope,) = torch.autograd.grad(plain_family(family)(pixel_values=values).logits[0, 1], values)
    [made] = run("gradient_x_input", task_for(family))
    model = family_model(family)
    side = model.patch[0]
    product = (slope * values).detach()[:, :, : model.grid[0] * side, : model.grid[1] * side]
    tiles = product[0].reshape(3, model.grid[0], side, model.grid[1], side).sum(dim=(0, 2, 4))
    np.testing.assert_allclose(made.scores[model.specials :], tiles.reshape(-1), atol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_occlusion_is_the_plain_models_change_of_probability(family: str) -> None:
    [made] = run("occlusion", task_for(family), removal="mean")
    values = values_of(family)
    whole = torch.softmax(plain_logits(family, values), -1)[0, 1]
    for number in (0, 4, 8):
        without = torch.softmax(plain_logits(family, values, {number: torch.zeros(())}), -1)[0, 1]
        assert made.scores[family_model(family).specials + number] == pytest.approx(float(whole - without), abs=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_integrated_gradients_sum_to_the_plain_models_change(family: str) -> None:
    [made] = run("integrated_gradients", task_for(family), steps="fixed", n_steps=257)
    values = values_of(family)
    change = plain_logits(family, values)[0, 1] - plain_logits(family, torch.zeros_like(values))[0, 1]
    assert made.scores.sum() == pytest.approx(float(change), abs=1e-4 * max(1, abs(float(change))))


@pytest.mark.parametrize("family", FAMILIES)
def test_attn_lrp_conserves_the_logit(family: str) -> None:
    for made in run("attn_lrp", task_for(family, count=2)):
        assert made.check is not None
        assert made.check.value < 1e-9
        assert np.abs(made.scores).max() > 1e-3


@pytest.mark.parametrize("family", FAMILIES)
def test_every_method_together_is_as_one_by_one(family: str) -> None:
    model = family_model(family)
    for name, method in all_explainers("image").items():
        if method.resolver is not None or method.family == "ensemble" or name in ("exact_shapley", "random"):
            continue
        if family == "swin" and method.family == "attention":
            with pytest.raises(ExegesisError, match="attends within windows that change from block"):
                run(name, task_for(family))
            continue
        known = {field.name for field in dataclasses.fields(method.params)}
        params = {key: value for key, value in FAST.items() if key in known}
        task = task_for(family, count=2)
        together = run(name, task, **params)
        assert all(np.isfinite(made.scores).all() for made in together)
        [alone] = run(name, Task(model, task.items[1:]), **params)
        np.testing.assert_allclose(together[1].scores, alone.scores, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("family", GLOBAL)
def test_heads_are_scaled_before_the_output_projection(family: str) -> None:
    model, plain = family_model(family), plain_family(family)
    batch = model.collate([model.encode(picture) for picture in pictures(2)])
    scales = torch.ones(1, 3, 4, dtype=torch.float64)
    scales[0, 1, 2] = 0
    block = plain.get_submodule(model.adapter.blocks)[1]
    attention = block.attention if hasattr(block, "attention") else block.self_attn
    projection = attention.o_proj if hasattr(attention, "o_proj") else attention.out_proj

    def switch_off(_module: Any, args: Any) -> Any:
        mixed = args[0].clone()
        mixed[..., 12:18] = 0
        return (mixed,)

    hook = projection.register_forward_pre_hook(switch_off)
    with torch.inference_mode():
        wanted = plain(pixel_values=batch.pictures).logits
        hook.remove()
        with scale_heads(model.module, model.blocks, scales):
            np.testing.assert_allclose(model.logits(batch), wanted, atol=1e-9)
        assert (model.logits(batch) - wanted).abs().max() > 1e-3


@pytest.mark.parametrize("family", FAMILIES)
def test_parts_are_randomized_and_restored(family: str, tmp_path: Path) -> None:
    model = load_image_model(str(family_folder(family)))
    before = fingerprint(model.module)
    with torch.inference_mode():
        batch = model.collate([model.encode(pictures(1)[0])])
        own = model.logits(batch)
        twin = ModelCopy(model)
        assert set(twin.weights) == {"head", "1", "2", "3", "embeddings"}
        names = [name for part in twin.weights.values() for name in part]
        assert sorted(names) == sorted(name for name, _ in model.module.named_parameters())
        assert all("classifier" not in name for name in twin.weights["embeddings"])
        for part in twin.weights:
            with twin.randomized([part], seed=1) as other:
                assert (other.logits(batch) - own).abs().max() > 1e-6, part
        np.testing.assert_array_equal(model.logits(batch), own)
    twin.check_untouched()
    assert fingerprint(model.module) == before


def test_a_dinov2_picture_has_the_size_of_its_preprocessing(tmp_path: Path) -> None:
    """As on the hub: positions for 518 x 518 pixels, a crop of 224 x 224; a crop that is no multiple is cut."""
    folder = save_family(tmp_path / "dino", "dinov2", image_size=48)
    view = read_view(str(folder))
    assert (view.size, view.grid) == ((24, 32), (3, 4))


def test_grad_cam_of_swin_by_loops_on_the_plain_model() -> None:
    """On the last stage's 2 x 2 cells, each spread over the 4 x 4 patches that were merged into it."""
    plain, read, values = plain_family("swin"), [], values_of("swin").requires_grad_()
    norm = plain.swin.encoder.layers[-1].blocks[-1].layernorm_before
    hook = norm.register_forward_hook(lambda _module, _given, made: read.append(made))
    logit = plain(pixel_values=values).logits[0, 1]
    hook.remove()
    (slope,) = torch.autograd.grad(logit, read)
    states, slopes = read[0][0].detach(), slope[0]
    weights = [float(slopes[:, k].mean()) for k in range(48)]
    cells = [sum(weight * float(state[k]) for k, weight in enumerate(weights)) for state in states]
    wanted = [cells[2 * (row // 4) + column // 4] for row in range(8) for column in range(8)]
    [made] = run("grad_cam", task_for("swin"), sign="both")
    np.testing.assert_allclose(made.scores, wanted, atol=1e-9)


def test_heads_of_swin_are_not_scaled() -> None:
    with pytest.raises(ExegesisError, match=r"attends within windows .* and no grid of heads\. Use a method"):
        layers_and_heads(family_model("swin"))


def test_positions_of_swin_that_attn_lrp_does_not_cover(tmp_path: Path) -> None:
    folder = save_family(tmp_path / "swin", "swin", use_absolute_embeddings=True)
    model = load_image_model(str(folder), "float64")
    plain = transformers.SwinForImageClassification.from_pretrained(str(folder)).double().eval()
    encoded = [model.encode(picture) for picture in pictures(2)]
    batch = model.collate(encoded)
    with torch.inference_mode():
        np.testing.assert_allclose(model.logits(batch), plain(pixel_values=batch.pictures).logits, atol=1e-9)
    items = [TaskItem(e, p, 1, 0) for e, p in zip(encoded, predict_encoded(model, encoded), strict=True)]
    with pytest.raises(ExegesisError, match="do not cover Swin models: there is none for absolute positions"):
        run("attn_lrp", Task(model, items))


def test_the_families_are_documented_as_they_are() -> None:
    text = (ROOT / "docs" / "models-and-data.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| `(\w+)`( \(labels\))? \| [^|]+ \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", text, re.M)
    attention = {False: "yes", True: "no: windows"}
    assert rows == [
        (
            adapter.family, adapter.architecture, " (labels)" if adapter.prompts else "", attention[adapter.windows],
            "yes" if adapter.lrp else f"no rule for {adapter.lrp_missing}", attention[adapter.windows],
        )
        for adapter in IMAGE_ADAPTERS
    ]  # fmt: skip
    assert {adapter.architecture for adapter in IMAGE_ADAPTERS if adapter.prompts} == set(catalog.ZERO_SHOT)


@pytest.mark.parametrize("family", FAMILIES)
def test_second_derivatives_are_those_of_the_plain_model(family: str) -> None:
    """What attacks need: the slope of a squared gradient, on the eager model and on ours."""
    model, plain = family_model(family), plain_family(family)
    batch = model.collate([model.encode(pictures(1)[0])])

    def slope_of_slope(point: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        (first,) = torch.autograd.grad(logits[0, 1], point, create_graph=True)
        return torch.autograd.grad(first.square().sum(), point)[0]

    with twice_differentiable(model.module):
        point = model.points(batch, "pixels").detach().requires_grad_()
        ours = slope_of_slope(point, model.logits(batch, model.embed_points(point, "pixels")))
    plain.set_attn_implementation("eager")
    try:
        pixels = batch.pictures.clone().requires_grad_()
        wanted = slope_of_slope(pixels, plain(pixel_values=pixels).logits)
    finally:
        plain.set_attn_implementation("sdpa")
    # The eager attention of some takes its softmax in single precision.
    np.testing.assert_allclose(ours[0, model.specials :], cut_patches(wanted, model.patch)[0], atol=1e-3, rtol=1e-3)
    assert wanted.abs().max() > 1e-2


def test_a_student_of_another_family_is_refused() -> None:
    folder = str(family_folder("dinov2"))
    with pytest.raises(UsageError, match=r"base: students of pictures are ViTs, but the teacher .* is a DINOv2 model"):
        load_base(folder, family_model("dinov2"))
