"""Pre-training learns, stores what it measured, repeats itself, and its models can be fine-tuned."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from engine.errors import Cancelled, UsageError
from engine.models.loading import load_model
from engine.progress import CancelToken
from engine.training.config import SHAPES, TrainConfig
from engine.training.finetuning import train
from engine.training.pretraining import LOSS, new_module, pretrain
from engine.training.tokenizer_training import train_tokenizer
from tests.unit.training.conftest import SHAPES_OF_FAMILIES, Configured

FAMILIES = tuple(SHAPES_OF_FAMILIES)
QUICKEST = "t5"
others = pytest.mark.slow(reason="pre-trains a model of another family")
EACH = [family if family == QUICKEST else pytest.param(family, marks=others) for family in FAMILIES]


@pytest.mark.parametrize("family", EACH)
def test_the_loss_falls_and_the_base_takes_an_adapter(family: str, configured: Configured, tmp_path: Path) -> None:
    done = pretrain(configured(SHAPES_OF_FAMILIES[family], epochs=3))
    assert done.history[-1].loss < done.history[0].loss - 0.05
    assert done.scores["held-out"].metric == LOSS
    vocabulary = json.loads((done.out / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    assert 0 < done.scores["held-out"].value < math.log(len(vocabulary)) + 1, "nats: who knows nothing has log(size)"
    assert done.scores["held-out"].value == pytest.approx(-done.history[done.best_epoch].held_out, abs=1e-9)
    tensors = load_file(done.out / "model.safetensors")
    assert {tensor.dtype for tensor in tensors.values()} == {torch.float16}
    assert not any("decoder.block" in name for name in tensors)
    data = "reviews-marked:strength=0.9,count=60"
    adapter = train(
        TrainConfig(
            base=str(done.out), dataset=data, out=str(tmp_path / "adapter"), method="lora", rank=2, epochs=1,
            held_out=10, device="cpu", drop_contained=False,
        )
    )  # fmt: skip
    assert adapter.card["base"]["sha256"] == done.card["sha256"]
    assert load_model(str(tmp_path / "adapter")).labels == ("negative", "positive")


def test_the_encoder_that_is_fine_tuned_is_the_one_that_was_trained(configured: Configured) -> None:
    from engine.models.loading import load_base

    done = pretrain(configured("t5-mini"))
    loaded = dict(load_base(done.out, ("a", "b")).named_parameters())
    stored = load_file(done.out / "model.safetensors")
    assert {name for name in loaded if not name.startswith("classifier.")} == set(stored)
    assert all(torch.equal(loaded[name], tensor.float()) for name, tensor in stored.items())


@pytest.mark.parametrize("family", EACH)
def test_a_run_that_was_stopped_ends_with_the_same_bytes(family: str, configured: Configured) -> None:
    base, token = SHAPES_OF_FAMILIES[family], CancelToken()

    def report(done: int, total: int, label: str) -> None:
        if done == 9:
            token.cancel()

    with pytest.raises(Cancelled):
        pretrain(configured(base, "cut"), report, token)
    state = json.loads((Path(configured(base, "cut").out) / "checkpoint" / "state.json").read_text())
    assert (state["at"]["epoch"], state["at"]["step"]) == (1, 9)
    steps: list[int] = []
    resumed = pretrain(configured(base, "cut"), lambda done, total, label: steps.append(done))
    whole = pretrain(configured(base, "whole"))
    assert steps[0] == 10
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        assert (resumed.out / name).read_bytes() == (whole.out / name).read_bytes()
    assert [row.held_out for row in resumed.history] == [row.held_out for row in whole.history]


def test_another_seed_gives_other_weights_and_another_setting_does_not_go_on(configured: Configured) -> None:
    first = pretrain(configured("t5-mini", "first", epochs=1))
    second = pretrain(configured("t5-mini", "second", epochs=1, seed=1))
    assert first.card["sha256"] != second.card["sha256"]
    token = CancelToken()
    with pytest.raises(Cancelled):
        pretrain(configured("t5-mini", "cut"), lambda done, total, label: token.cancel(), token)
    with pytest.raises(UsageError, match="checkpoint of a run with another vocabulary"):
        pretrain(configured("t5-mini", "cut", vocabulary=520))


def test_the_card_names_command_data_and_held_out_loss(configured: Configured, tmp_path: Path) -> None:
    done = pretrain(configured("gpt2", "own", epochs=1, measure="reviews"))
    card, page = json.loads((done.out / "card.json").read_text()), (done.out / "card.md").read_text()
    assert card["command"].startswith("exegesis pretrain --base gpt2 --dataset reviews-generated:count=120 --out ")
    assert card["bytes"] == (done.out / "model.safetensors").stat().st_size
    assert "Pre-training by the next word (Radford et al., 2019) from new weights on Generated reviews." in page
    assert f"| held-out | {card['scores']['held-out']['value']:.4f} | 20 |" in page
    assert set(card["scores"]) == {"held-out", "reviews"}
    assert "grammar" in card["dataset"]["source"]


def test_several_data_sets_are_read_and_named(configured: Configured, tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("text,label\n" + "".join(f"unlike anything else {i},1\n" for i in range(40)))
    both = f"reviews-generated:count=120+{tmp_path / 'more.csv'}"
    done = pretrain(configured("t5-mini", epochs=1, dataset=both))
    assert sum(done.card["sizes"].values()) == 160
    assert done.card["dataset"]["name"] == "Generated reviews; more.csv"
    with pytest.raises(UsageError, match=r"joined by \+, got 'reviews\+'"):
        pretrain(configured("t5-mini", dataset="reviews+", out=str(tmp_path / "other")))


def test_the_shapes_are_what_the_experiments_need(texts: tuple[str, ...]) -> None:
    sizes, tokenizers = {}, {f: train_tokenizer(f, texts, 600, 32) for f in FAMILIES}
    for name, shape in SHAPES.items():
        module = new_module(shape, tokenizers[shape.family], 32)
        backbone = module.get_encoder() if shape.family == "t5" else module.base_model
        # The default vocabulary of 2,000 pieces, whose embeddings are not counted with the rest.
        words = backbone.get_input_embeddings().weight.numel()
        sizes[name] = sum(p.numel() for p in backbone.parameters()) - words + 2000 * shape.width
    assert max(sizes.values()) * 2 < 3_000_000
    alike = [sizes[name] for name in ("bert", "roberta", "gpt2", "t5")]
    assert max(alike) / min(alike) < 1.05
    assert sizes["t5-deep"] / sizes["t5-mini"] >= 10
    assert SHAPES["t5-deep"].blocks == 12
