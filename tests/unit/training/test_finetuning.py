from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.errors import Cancelled, ExegesisError, UsageError
from engine.explain import explain
from engine.models import checkpoint_files
from engine.models.adapters import adapter_for
from engine.models.loading import load_base, load_model
from engine.models.summary import model_size
from engine.progress import CancelToken, silent
from engine.request import Example, Request
from engine.similarity import text_similarity
from engine.training.config import TrainConfig
from engine.training.finetuning import FineTuning, train
from tests.project import ROOT
from tests.tiny import FAMILIES, save_causal, save_checkpoint

TWO = {"warm": "good", "bad": "poor"}
HEAD_LAYERS = {
    "albert": "pooler",
    "modernbert": "head.dense",
    "modernbert-mean": "head.dense",
    "deberta-v3": "pooler.dense",
}
"""Layers of the heads that learn by LoRA, beside BERT's."""
KILLED = """
import json, os, signal, sys, torch
from engine.training.config import TrainConfig
from engine.training.finetuning import train
torch.set_num_threads(int(sys.argv[2]))
def report(done, total, label):
    if done == 11:
        os.kill(os.getpid(), signal.SIGKILL)
train(TrainConfig(**json.loads(sys.argv[1])), report)
"""


def config(base: str, data: str, out: Path, **changes: object) -> TrainConfig:
    quick = {"epochs": 5, "batch_size": 8, "learning_rate": 3e-3, "held_out": 20, "device": "cpu"}
    return TrainConfig(base=base, dataset=data, out=str(out), **{**quick, **changes})


def test_a_tiny_bert_learns_and_the_stored_model_is_what_was_measured(learner, toy, tmp_path: Path) -> None:
    result = train(config(learner, toy(TWO), tmp_path / "m"))
    assert result.scores["held-out"].value >= 0.9
    assert result.history[result.best_epoch].held_out == max(r.held_out for r in result.history)
    assert result.scores["held-out"].value == result.history[result.best_epoch].held_out
    assert load_model(str(tmp_path / "m")).labels == ("good", "poor")
    assert not (tmp_path / "m" / "checkpoint").exists()


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_trains_an_adapter_in_float16(family: str, tiny, toy, tmp_path: Path) -> None:
    result = train(config(tiny(family), toy(TWO, 40), tmp_path / "m", method="lora", rank=2, epochs=1))
    tensors = load_file(tmp_path / "m" / "adapter_model.safetensors")
    assert {t.dtype for t in tensors.values()} == {torch.float16}
    assert any("lora_B" in name and t.abs().max() > 0 for name, t in tensors.items())
    assert result.card["bytes"] == (tmp_path / "m" / "adapter_model.safetensors").stat().st_size
    assert load_model(str(tmp_path / "m")).labels == ("good", "poor")


def test_a_head_by_lora_is_smaller_and_what_is_stored_is_what_was_trained(tiny, toy, tmp_path: Path) -> None:
    results = {
        head: train(config(tiny("bert"), toy(TWO), tmp_path / head, method="lora", rank=2, epochs=2, head=head))
        for head in ("full", "lora")
    }
    names = {head: set(load_file(tmp_path / head / "adapter_model.safetensors")) for head in results}
    size = 24  # of the hidden states: the pooler is one matrix of size x size and a bias
    assert (
        results["full"].card["bytes"] - results["lora"].card["bytes"] > 2 * (size * size + size - 2 * 2 * size) - 1024
    )
    inner = {"pooler.dense.lora_A.weight", "pooler.dense.lora_B.weight"}
    assert {name.partition("bert.")[2] for name in names["lora"] - names["full"]} == inner
    for one in results.values():
        assert one.scores["held-out"].value == one.history[one.best_epoch].held_out
    base, model = load_base(Path(tiny("bert")), ("good", "poor")), load_model(str(tmp_path / "lora"))
    change = model.module.bert.pooler.dense.weight.detach() - base.bert.pooler.dense.weight.detach()
    assert 1 <= torch.linalg.matrix_rank(change, rtol=1e-3) <= 2


@pytest.mark.parametrize("family", ["roberta", "gpt2", "t5"])
def test_a_head_of_one_module_is_always_trained_whole(family: str, tiny, toy, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=rf"head: must be full, as {family} stores no layer of a head before the last"):
        train(config(tiny(family), toy(TWO, 40), tmp_path / "m", method="lora", head="lora"))


@pytest.mark.parametrize(("family", "layer"), HEAD_LAYERS.items())
def test_a_stored_head_by_lora_is_the_trained_one(family: str, layer: str, tiny, toy, tmp_path: Path) -> None:
    run = FineTuning(
        config(tiny(family), toy(TWO, 40), tmp_path / "m", method="lora", rank=2, epochs=1, head="lora"), silent, None
    )
    trained: list[Any] = []
    store = run.store
    run.store = lambda module: store(trained.append(module) or module)  # type: ignore[method-assign,func-returns-value]
    run.run()
    names = load_file(tmp_path / "m" / "adapter_model.safetensors")
    assert any(f"{layer}.lora_B" in name and weight.abs().max() > 0 for name, weight in names.items())
    model, texts = load_model(str(tmp_path / "m")), [row.text for row in run.held_rows[:4]]
    batch = run.tokenizer(texts, padding=True, return_tensors="pt")
    with torch.inference_mode():
        stored = model.logits(model.collate([model.encode(Example(text)) for text in texts]))
        expected = trained[0].eval()(**{name: batch[name] for name in ("input_ids", "attention_mask")}).logits
    torch.testing.assert_close(stored, expected, atol=1e-4, rtol=1e-4)


def test_a_head_whose_layers_peft_takes_for_one_is_trained_whole(tiny, toy, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"head: must be full, as pre_classifier and classifier of a DistilBERT are"):
        train(config(tiny("distilbert"), toy(TWO, 40), tmp_path / "m", method="lora", head="lora"))


def test_an_adapter_on_a_base_with_a_decoder_loads_as_the_encoder_that_was_trained(tiny, toy, tmp_path: Path) -> None:
    result = train(config(tiny("t5-decoder"), toy(TWO, 40), tmp_path / "m", method="lora", rank=2, epochs=1))
    assert load_model(str(tmp_path / "m")).adapter.family == "T5 encoder"
    assert model_size(str(tmp_path / "m")).architecture == "T5 encoder"
    assert result.scores["held-out"].value == result.history[result.best_epoch].held_out


def test_a_base_that_is_not_fine_tuned_or_has_no_tokenizer_is_refused(tiny, toy, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"base: must be of a type that can be fine-tuned: albert, .*, got 'gemma2'"):
        train(config(str(save_causal("gemma2", tmp_path / "gemma2")), toy(TWO, 40), tmp_path / "m"))
    bare = save_checkpoint("bert", tmp_path / "bare")
    (bare / "tokenizer.json").unlink()
    with pytest.raises(ExegesisError, match=r"base .*bare: no tokenizer in the folder .*, so every word would be"):
        train(config(str(bare), toy(TWO, 40), tmp_path / "m"))


def _without_a_block(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file(
        {key: w for key, w in weights.items() if "layer.1." not in key}, folder / "model.safetensors", {"format": "pt"}
    )


def _with_another_size(folder: Path) -> None:
    stated = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(stated | {"intermediate_size": 48}))


@pytest.mark.parametrize(
    ("damage", "match"),
    [
        (
            lambda folder: (folder / "config.json").write_text("[]"),
            r"base: .*config\.json must be a JSON object, got list",
        ),
        (
            lambda folder: (folder / "config.json").write_text('{"model_type": "bert", "hidden_size": "x"}'),
            r"base .*hidden_size.* expected int, got str",
        ),
        (
            lambda folder: (folder / "model.safetensors").write_bytes(b"0" * 99),
            r"base copy: its file of weights \(safetensors\) is damaged",
        ),
        (lambda folder: (folder / "tokenizer.json").write_text("x"), r"base .*copy: its tokenizer cannot be read \("),
        (_without_a_block, r"so bert\.encoder\.layer\.1\.attention\.output\.LayerNorm\.bias would be random"),
        (_with_another_size, r"so bert\.encoder\.layer\.0\.intermediate\.dense\.bias would be random"),
    ],
)
def test_a_damaged_base_is_named(damage: Any, match: str, tiny, toy, tmp_path: Path) -> None:
    damage(Path(shutil.copytree(tiny("bert"), tmp_path / "copy")))
    with pytest.raises(ExegesisError, match=match):
        train(config(str(tmp_path / "copy"), toy(TWO, 40), tmp_path / "m", epochs=1))


@pytest.mark.parametrize("method", ["full", "extracted"])
def test_a_head_by_lora_needs_the_method_lora(method: str, tiny, toy, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=rf"head: must be full with the method {method}, got 'lora'\. .*--method lora"):
        FineTuning(config(tiny("bert"), toy(TWO, 40), tmp_path / "m", method=method, head="lora"), silent, None)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_extracted_adapter_does_what_the_full_fine_tuning_did(family: str, tiny, toy, tmp_path: Path) -> None:
    """At full rank the same, but for float16; at rank 1 each matrix of the blocks is the nearest of that rank."""
    logits, weights = {}, {}
    for name, changes in {
        "full": {},
        "same": {"method": "extracted", "rank": 64},
        "rank 1": {"method": "extracted", "rank": 1},
    }.items():
        train(config(tiny(family), toy(TWO, 40), tmp_path / name, epochs=2, **changes))
        model = load_model(str(tmp_path / name))
        with torch.inference_mode():
            logits[name] = model.logits(model.collate([model.encode(Example("the film is warm"))]))
        weights[name] = {key: w.detach() for key, w in model.module.state_dict().items()}
    torch.testing.assert_close(logits["same"], logits["full"], atol=5e-3, rtol=5e-3)
    base = load_base(Path(tiny(family)), ("good", "poor")).state_dict()
    ends = tuple(f".{target}.weight" for target in adapter_for(family, family).lora_targets)
    matrices = [key for key in base if key.endswith(ends)]
    assert len(matrices) >= 8
    for key in base:
        if key not in matrices:
            torch.testing.assert_close(weights["rank 1"][key], weights["full"][key], atol=2e-3, rtol=2e-3)
            continue
        change, kept = (weights[name][key] - base[key] for name in ("full", "rank 1"))
        left, sizes, right = np.linalg.svd(change.double().numpy())
        nearest = sizes[0] * np.outer(left[:, 0], right[0])
        np.testing.assert_allclose(kept.numpy(), nearest, atol=1e-4 + 2e-3 * abs(nearest).max())
        assert sizes[1] > 1e-4, "a full fine-tuning changes more than one direction"


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_a_stored_full_model_of_an_unusual_family_loads(family: str, tiny, toy, tmp_path: Path) -> None:
    train(config(tiny(family), toy(TWO, 40), tmp_path / "m", epochs=1))
    model = load_model(str(tmp_path / "m"))
    encoded = [model.encode(Example("the film is warm"))]
    with torch.inference_mode():
        prediction = model.predictions(model.logits(model.collate(encoded)), encoded)[0]
    assert prediction.labels == ("good", "poor")
    assert sum(prediction.probabilities) == pytest.approx(1, abs=1e-6)


def test_a_classifier_is_trained_from_a_language_model(toy, tmp_path: Path) -> None:
    result = train(config("tiny-llama", toy(TWO, 600), tmp_path / "m", method="lora", learning_rate=2e-3, epochs=4))
    assert result.scores["held-out"].value >= 0.9
    assert result.card["base"]["name"] == "tiny-llama"
    answer = explain(Request(str(tmp_path / "m"), "attn_lrp", Example("the film is warm")))
    assert answer.prediction.labels == ("good", "poor")
    assert answer.prediction.label == "good"
    assert abs(answer.scores[answer.features]).max() > 0


def test_three_classes_of_pairs(learner, toy, tmp_path: Path) -> None:
    data = toy({"warm": "entailment", "bad": "contradiction", "view": "neutral"}, 150, pairs=True)
    result = train(config(learner, data, tmp_path / "m", learning_rate=5e-3))
    assert result.card["labels"] == ["contradiction", "entailment", "neutral"]
    assert result.scores["held-out"].value >= 0.8


def test_regression_is_scored_by_pearson(learner, toy, tmp_path: Path) -> None:
    data = toy({"warm": 0.9, "bad": 0.1, "view": 0.5}, 150)
    result = train(config(learner, data, tmp_path / "m", learning_rate=5e-3))
    assert result.scores["held-out"].metric == "pearson"
    assert result.scores["held-out"].value > 0.8
    assert load_model(str(tmp_path / "m")).labels == ("score",)


def test_it_stops_after_epochs_without_gain(tiny, toy, tmp_path: Path) -> None:
    result = train(config(tiny("bert"), toy(TWO, 40), tmp_path / "m", learning_rate=0.0, epochs=9, patience=2))
    assert len(result.history) == 3
    assert result.best_epoch == 0


def test_the_running_average_is_what_is_stored(tiny, toy, tmp_path: Path) -> None:
    data = toy(TWO, 40)
    train(config(tiny("bert"), data, tmp_path / "a", epochs=1))
    train(config(tiny("bert"), data, tmp_path / "b", epochs=1, average=0.9))
    last, mean = (load_file(tmp_path / n / "model.safetensors")["classifier.bias"] for n in "ab")
    assert not last.equal(mean)


def test_cancelled_and_taken_up_again_it_gives_the_same_weights(tiny, toy, tmp_path: Path) -> None:
    data = toy(TWO, 60)
    whole = train(config(tiny("bert"), data, tmp_path / "whole", epochs=2, average=0.9))
    token = CancelToken()
    stopped = config(tiny("bert"), data, tmp_path / "cut", epochs=2, average=0.9)
    with pytest.raises(Cancelled):
        train(stopped, lambda done, total, label: token.cancel() if done == 8 else None, token)
    again = train(stopped)
    assert again.card["sha256"] == whole.card["sha256"]
    assert [r.loss for r in again.history] == [r.loss for r in whole.history]


@pytest.mark.slow(reason="trains twice, once in a process of its own")
def test_sigkill_in_mid_epoch_changes_no_bit(tiny, toy, tmp_path: Path) -> None:
    # A process is killed by SIGKILL in the middle of an epoch; the next one ends with the same bytes.
    data = toy({"warm": "good", "bad": "poor"}, 60)
    # 48 examples in 6 steps an epoch; the checkpoint of step 9 and the kill at step 11 lie inside the second.
    same = {"base": tiny("bert"), "dataset": data, "method": "lora", "epochs": 3, "batch_size": 8}
    same |= {"learning_rate": 1e-3, "average": 0.9, "checkpoint_steps": 9, "device": "cpu", "held_out": 12}
    cut = same | {"out": str(tmp_path / "cut")}
    command = [sys.executable, "-c", KILLED, json.dumps(cut), str(torch.get_num_threads())]
    ended = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False)
    assert ended.returncode == -signal.SIGKILL
    state = json.loads((tmp_path / "cut" / "checkpoint" / "state.json").read_text())
    assert (state["at"]["epoch"], state["at"]["batch"], state["at"]["step"]) == (1, 3, 9)
    steps: list[int] = []
    resumed = train(TrainConfig(**cut), lambda done, total, label: steps.append(done))
    whole = train(TrainConfig(**same, out=str(tmp_path / "whole")))
    assert steps[0] == 10
    assert resumed.card["sha256"] == whole.card["sha256"]
    assert [r.held_out for r in resumed.history] == [r.held_out for r in whole.history]


def test_another_setting_does_not_take_up_a_checkpoint(tiny, toy, tmp_path: Path) -> None:
    data, token = toy(TWO, 60), CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        train(config(tiny("bert"), data, tmp_path / "m"), silent, token)
    with pytest.raises(
        UsageError, match=r"out: holds a checkpoint of a run with another batch_size, seed\. Use the same settings"
    ):
        train(config(tiny("bert"), data, tmp_path / "m", batch_size=4, seed=1))


def test_added_sets_are_repeated_and_never_held_out(tiny, toy, tmp_path: Path) -> None:
    first, rows = toy(TWO, 40), ["text,label", "one good view,good", "two poor days,poor", "over,good"]
    (tmp_path / "added.csv").write_text("\n".join(rows))
    changes = {"train_size": 5, "held_out": 8, "add": f"{tmp_path / 'added.csv'}*3", "drop_contained": False}
    recipe = FineTuning(config(tiny("bert"), first, tmp_path / "m", **changes), silent, None)
    texts = [row.text for row in recipe.train_rows]
    assert texts[5:] == ["one good view", "two poor days", "over"] * 3, "the size is that of the first set"
    assert recipe.sizes() == {"train": 14, "held_out": 8, "dropped": 0}
    assert {row.text for row in recipe.held_rows} <= {row.text for row in recipe.corpus.train}
    held = replace(recipe.config, drop_contained=True)
    assert any(" over " in f" {row.text} " for row in FineTuning(held, silent, None).held_rows)
    dropping = FineTuning(held, silent, None)
    assert [row.text for row in dropping.train_rows[5:]] == ["one good view", "two poor days"] * 3
    assert dropping.sizes() == {"train": 11, "held_out": 8, "dropped": 1}


@pytest.mark.parametrize("method", ["full", "lora", "extracted"])
def test_a_run_with_an_added_set_is_taken_up_again_and_its_card_names_both(
    method: str, tiny, toy, tmp_path: Path
) -> None:
    data, added, token = toy(TWO, 40), tmp_path / "added.csv", CancelToken()
    added.write_text("text,label\n" + "one good view,good\ntwo poor days,poor\n" * 4)
    changes = {"epochs": 1, "method": method, "rank": 2, "add": f"{added}*2"}
    whole = train(config(tiny("bert"), data, tmp_path / "whole", **changes))
    assert whole.card["sizes"]["train"] == 32 + 16
    assert [(one["name"], one["examples"], one["repeats"]) for one in whole.card["training_sets"]] == [
        ("toy.csv", 32, 1),
        ("added.csv", 8, 2),
    ]
    page = (tmp_path / "whole" / "card.md").read_text()
    assert "on toy.csv; added.csv. Labels: good, poor." in page
    assert "Trained on 48 examples an epoch, repeats included." in page
    assert "| added.csv | 8 | 2 | as its source states; not known to Exegesis |" in page
    stopped = config(tiny("bert"), data, tmp_path / "cut", **changes)
    with pytest.raises(Cancelled):
        train(stopped, lambda done, total, label: token.cancel() if done == 3 else None, token)
    content = added.read_text()
    added.write_text(content + "three good days,good\n")
    with pytest.raises(UsageError, match=r"a run with another content of .*added\.csv\. Use the same settings"):
        train(stopped)
    added.write_text(content)
    assert train(stopped).card["sha256"] == whole.card["sha256"]


def test_progress_ends_at_the_total_and_reports_each_epoch(tiny, toy, tmp_path: Path) -> None:
    reports: list[tuple[int, int, str]] = []
    train(config(tiny("bert"), toy(TWO, 40), tmp_path / "m", epochs=2), lambda *report: reports.append(report))
    assert reports[-1][0] == reports[-1][1]
    assert sum("held-out" in label for _, _, label in reports) == 2


def test_the_card_states_command_hashes_and_scores(tiny, toy, tmp_path: Path) -> None:
    train(config(tiny("bert"), toy(TWO, 40), tmp_path / "m", epochs=1, method="lora"))
    card = json.loads((tmp_path / "m" / "card.json").read_text())
    page = (tmp_path / "m" / "card.md").read_text()
    assert card["command"].startswith("exegesis train --base ")
    assert "--method lora" in card["command"]
    assert "--patience" not in card["command"]
    assert card["sha256"] == checkpoint_files.weights_sha256(tmp_path / "m")
    assert card["base"]["sha256"] == checkpoint_files.weights_sha256(Path(tiny("bert")))
    assert card["command"] in page
    assert f"| held-out | {card['scores']['held-out']['value']:.4f} | 8 |" in page


def test_too_little_data_is_refused(tiny, toy, tmp_path: Path) -> None:
    with pytest.raises(ExegesisError, match="has 6 training examples; at least 10 are needed"):
        train(config(tiny("bert"), toy(TWO, 6), tmp_path / "m"))


def test_a_device_that_is_not_there_is_refused(tiny, toy, tmp_path: Path) -> None:
    absent = "mps" if torch.cuda.is_available() else "cuda"
    with pytest.raises(UsageError, match=r"device: must be one of .*cpu.*, got"):
        train(config(tiny("bert"), toy(TWO, 40), tmp_path / "m", device=absent))


def test_one_class_is_no_task(tiny, toy, tmp_path: Path) -> None:
    with pytest.raises(ExegesisError, match="have one label; at least two are needed"):
        train(config(tiny("bert"), toy({"warm": "good"}, 20), tmp_path / "m"))


def test_a_folder_with_files_is_left_alone(tiny, toy, tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_text("{}")
    with pytest.raises(UsageError, match=r"out: .* already contains files \(config\.json\)\. Choose an empty"):
        train(config(tiny("bert"), toy(TWO, 40), tmp_path / "m", method="lora"))


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_read(tiny, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"out: .*file/here cannot be written \(.+\)\. Choose another folder\."):
        train(config(tiny("bert"), "no such data set", tmp_path / "file" / "here"))


def test_a_diverging_run_stops_and_says_why(tiny, toy, tmp_path: Path) -> None:
    with pytest.raises(ExegesisError, match=r"learning_rate: the loss became (nan|inf) at step \d+ with 1e\+30"):
        train(config(tiny("bert"), toy(TWO, 40), tmp_path / "m", learning_rate=1e30, clip=0.0))


def test_prompts_and_trained_models_are_refused(tiny, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"dataset: agreement holds prompts, which have no classes. .*pretrain"):
        train(config(tiny("bert"), "agreement", tmp_path / "m"))
    with pytest.raises(UsageError, match="base: reviews-minilm is a trained model, where a base or a sentence"):
        train(config("reviews-minilm", "reviews", tmp_path / "m"))
    with pytest.raises(UsageError, match=r"base: .*smollm2-135m is not stored here yet. Fetch it: exegesis models get"):
        train(config("smollm2-135m", "reviews", tmp_path / "m"))
    with pytest.raises(UsageError, match=r"model: tiny-llama is a trained language model, .* Give `minilm`"):
        text_similarity("a", "b", "tiny-llama")


def test_a_base_is_never_overwritten(tiny, toy) -> None:
    with pytest.raises(UsageError, match="is the folder of the base, which would be overwritten"):
        train(config(tiny("bert"), toy(TWO, 40), Path(tiny("bert"))))


def test_the_callers_random_numbers_go_on_undisturbed(tiny, toy, tmp_path: Path) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train(config(tiny("bert"), toy(TWO, 40), tmp_path / "m", epochs=1))
    assert torch.rand(3).equal(expected)


def test_added_texts_within_what_is_measured_are_dropped(tiny, toy, tmp_path: Path) -> None:
    """Of the first set's test split, of a further set, and of the held-out part."""
    folder = tmp_path / "splits"
    folder.mkdir()
    Path(toy(TWO, 40)).rename(folder / "train.csv")
    (folder / "test.csv").write_text("text,label\nA rare  cup indeed,good\nodd,poor\n")
    (tmp_path / "further.csv").write_text("text,label\nsome blue lamp,good\nodd,poor\n")
    rows = ["text,label", "rare cup,good", "blue LAMP,good", "lamp of blue,poor", "over,poor"]
    (tmp_path / "added.csv").write_text("\n".join(rows))
    changes = {"add": str(tmp_path / "added.csv"), "measure": str(tmp_path / "further.csv"), "held_out": 8}
    recipe = FineTuning(config(tiny("bert"), str(folder), tmp_path / "m", **changes), silent, None)
    assert any(" over " in f" {row.text} " for row in recipe.held_rows)
    assert [row.text for row in recipe.added[0].rows] == ["lamp of blue"]
    assert recipe.added[0].dropped == 3
    whole = FineTuning(replace(recipe.config, drop_contained=False), silent, None)
    assert len(whole.added[0].rows) == 4


def test_what_is_trained_on_is_not_measured(tiny, toy, tmp_path: Path) -> None:
    data, other = toy(TWO, 40), toy(TWO, 30, name="other.csv")
    (tmp_path / "sub").mkdir()
    for measure, add in ((data, ""), (f"{tmp_path}/sub/../toy.csv", ""), (other, f"{other}*2")):
        with pytest.raises(UsageError, match=r"measure: must be data sets that are not trained on, got '/"):
            FineTuning(config(tiny("bert"), data, tmp_path / "m", measure=measure, add=add), silent, None)


def test_further_data_sets_are_measured_and_must_have_the_same_labels(tiny, toy, tmp_path: Path) -> None:
    data, other = toy(TWO, 40), toy(TWO, 30, name="other.csv")
    result = train(config(tiny("bert"), data, tmp_path / "m", epochs=1, measure=other))
    assert result.scores["other.csv"].count == 30
    with pytest.raises(UsageError, match=r"measure reviews: must be labeled good, poor, got 'negative, positive'"):
        train(config(tiny("bert"), data, tmp_path / "n", epochs=1, measure="reviews"))
