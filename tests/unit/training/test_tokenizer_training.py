"""Own tokenizers: the marks are one token, texts come back, every process makes the same."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.errors import ExegesisError
from engine.models.loading import load_tokenizer
from engine.training.tokenizer_training import MARKS, train_tokenizer
from tests.project import ROOT

FAMILIES = ("bert", "roberta", "gpt2", "t5")
DIGEST = """
import hashlib, sys
from engine.data.datasets import load
from engine.training.tokenizer_training import train_tokenizer
texts = [e.text for e in load("reviews-generated:count=200", split="train").examples]
for family in sys.argv[1:]:
    made = train_tokenizer(family, texts, 500, 64).backend_tokenizer.to_str()
    print(family, hashlib.sha256(made.encode()).hexdigest())
"""


@pytest.fixture(scope="module", params=FAMILIES)
def trained(request: pytest.FixtureRequest, texts: tuple[str, ...]) -> tuple[str, Any]:
    return request.param, train_tokenizer(request.param, texts, 500, 64)


def test_the_marks_are_single_tokens_wherever_they_stand(trained: tuple[str, Any]) -> None:
    _, tokenizer = trained
    for mark in MARKS:
        for text, before in ((mark, ""), (f"the beds felt soft. {mark}", "the beds felt soft.")):
            ids = tokenizer(text, add_special_tokens=False)["input_ids"]
            assert len(ids) == len(tokenizer(before, add_special_tokens=False)["input_ids"]) + 1
            assert tokenizer.decode(ids[-1:]).strip() == mark


def test_texts_come_back_and_none_of_their_words_is_unknown(trained: tuple[str, Any], texts: tuple[str, ...]) -> None:
    family, tokenizer = trained
    for text in texts[:20]:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        back = tokenizer.decode(ids, clean_up_tokenization_spaces=False).strip()
        if family == "bert":
            back, text = (t.lower().replace(" ", "") for t in (back, text))
        assert back == text
        assert tokenizer.unk_token_id not in ids


def test_there_are_no_more_pieces_than_requested_and_words_are_not_spelled_out(trained: tuple[str, Any], texts) -> None:
    _, tokenizer = trained
    assert 400 < len(tokenizer) <= 500
    words = sum(len(text.split()) for text in texts)
    assert sum(len(row) for row in tokenizer(list(texts))["input_ids"]) < 2.5 * words


def test_a_stored_tokenizer_is_read_as_it_was(trained: tuple[str, Any], texts: tuple[str, ...], tmp_path: Path) -> None:
    family, tokenizer = trained
    tokenizer.save_pretrained(str(tmp_path))
    (tmp_path / "config.json").write_text(f'{{"model_type": "{family}"}}')
    read = load_tokenizer(tmp_path)
    pair = ("The beds felt awful.", "Not so bad, positive!")
    assert read(*pair)["input_ids"] == tokenizer(*pair)["input_ids"]
    assert read(list(texts))["input_ids"] == tokenizer(list(texts))["input_ids"]
    assert (read.pad_token, read.mask_token) == (tokenizer.pad_token, tokenizer.mask_token)


def test_every_process_makes_the_same(texts: tuple[str, ...]) -> None:
    command = [sys.executable, "-c", DIGEST, *FAMILIES]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "RAYON_NUM_THREADS": "2"}
    runs = [
        subprocess.run(command, env=environment | {"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True)
        for seed in ("1", "2")
    ]
    here = {f: hashlib.sha256(train_tokenizer(f, texts, 500, 64).backend_tokenizer.to_str().encode()) for f in FAMILIES}
    expected = "".join(f"{family} {digest.hexdigest()}\n" for family, digest in here.items())
    assert [done.stdout for done in runs] == [expected, expected]


def test_a_vocabulary_too_small_for_the_marks_is_refused() -> None:
    with pytest.raises(
        ExegesisError, match="vocabulary: 262 pieces are too few for the word 'positive' to be one token"
    ):
        train_tokenizer("roberta", ["a b c"], 262, 64)
