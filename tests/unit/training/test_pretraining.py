"""Pre-training learns, stores what it measured, repeats itself, and its models can be fine-tuned.

The hidden tokens: which ones, how many, and that they are the answers.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file

from engine.errors import Cancelled, UsageError
from engine.models.loading import load_model
from engine.progress import CancelToken
from engine.training.config import SHAPES, TrainConfig
from engine.training.finetuning import train
from engine.training.loop import LOSS
from engine.training.pretraining import IGNORED, hide_spans, mask_words, new_module, next_words, pretrain
from engine.training.tokenizer_training import SENTINELS, train_tokenizer
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
    assert "Pretraining by next-token prediction (Radford et al., 2019) from new weights on Generated reviews." in page
    loss = card["scores"]["held-out"]["value"]
    assert "| measured on | loss (nats per token) | perplexity | examples |" in page
    assert f"| held-out | {loss:.4f} | {math.exp(loss):.1f} | 20 |" in page
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
    sizes, tokenizers = {}, {f: train_tokenizer(f, texts, 600, 32) for f in (*FAMILIES, "llama")}
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


PAD, END, MASK, FIRST = 0, 1, 2, 3
SENTINEL = 1000


class Ids(SimpleNamespace):
    """The numbers of a tokenizer that the objectives need."""

    pad_token_id, eos_token_id, mask_token_id, all_special_ids = PAD, END, MASK, (PAD, END, MASK, FIRST)

    def __len__(self) -> int:
        return 900

    def convert_tokens_to_ids(self, names: list[str]) -> list[int]:
        return [SENTINEL + SENTINELS.index(name) for name in names]


def rows(count: int, words: int) -> list[list[int]]:
    return [[FIRST, *range(10, 10 + words), END] for _ in range(count)]


def test_masked_words_hide_15_percent_of_words_and_never_a_special_token() -> None:
    torch.manual_seed(0)
    data = [*rows(300, 40), [FIRST, 10, END]]
    inputs, answers = mask_words(data, Ids())
    hidden = answers != IGNORED
    whole = torch.tensor([row + [PAD] * (42 - len(row)) for row in data])
    assert hidden.sum(1).tolist() == [6] * 300 + [1]
    assert (answers[hidden] == whole[hidden]).all()
    assert not torch.isin(whole[hidden], torch.tensor(Ids.all_special_ids)).any()
    assert (inputs["input_ids"][~hidden] == whole[~hidden]).all()
    assert inputs["attention_mask"].sum(1).tolist() == [42] * 300 + [3]
    read = inputs["input_ids"][hidden]
    # 1,801 draws: three standard deviations are 0.03 and 0.02.
    assert (read == MASK).float().mean().item() == pytest.approx(0.8, abs=0.03)
    assert (read == whole[hidden]).float().mean().item() == pytest.approx(0.1, abs=0.025)


def test_the_next_word_is_the_answer_at_each_word_but_the_last() -> None:
    inputs, answers = next_words([[5, 6, 7, END], [8, END]], Ids(pad_token_id=END))
    assert inputs["input_ids"].tolist() == [[5, 6, 7, END], [8, END, END, END]]
    assert answers.tolist() == [[6, 7, END, IGNORED], [END, IGNORED, IGNORED, IGNORED]]


@pytest.mark.parametrize("words", [1, 2, 3, 7, 20, 33, 100])
def test_hidden_spans_and_visible_tokens_make_the_text_again(words: int) -> None:
    torch.manual_seed(words)
    text = list(range(10, 10 + words))
    inputs, answers = hide_spans([[*text, END]] * 20, Ids())
    for left, right, before in zip(
        inputs["input_ids"].tolist(), answers.tolist(), inputs["decoder_input_ids"].tolist(), strict=True
    ):
        named = [i for i in right if i != IGNORED]
        assert named[-1] == END
        assert before[: len(named)] == [PAD, *named[:-1]]
        assert refilled([i for i in left if i != PAD], named[:-1]) == [*text, END]
        assert sum(i < SENTINEL for i in named[:-1]) == max(1, round(0.15 * words))


def refilled(left: list[int], named: list[int]) -> list[int]:
    """Each sentinel replaced by the span that follows it in `named`."""
    spans: dict[int, list[int]] = {}
    for token in named:
        if token >= SENTINEL:
            current = spans.setdefault(token, [])
        else:
            current.append(token)
    return [i for token in left for i in spans.get(token, [token])]


def test_the_first_word_is_hidden_as_often_as_the_last() -> None:
    torch.manual_seed(0)
    _, answers = hide_spans([[*range(10, 30), END]] * 2000, Ids())
    times = torch.bincount(answers[(answers >= 10) & (answers < 30)], minlength=30)[10:]
    # One span of three words has 18 places: a word in the middle lies in three of them, one at an end in one.
    expected = [2000 * min(place + 1, 20 - place, 3) / 18 for place in range(20)]
    assert times.tolist() == pytest.approx(expected, rel=0.25)
    assert times.sum().item() == 2000 * 3
