"""The loaders of released data sets on real data, where it is."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from engine.data.datasets import load
from engine.data.registry import data_root

MOVIES, ESNLI, MLQE, NLI = (data_root() / name for name in ("movies", "esnli", "mlqe_pe", "nli"))
needs_movies = pytest.mark.skipif(not MOVIES.is_dir(), reason="needs the local ERASER movies (EXEGESIS_DATA/movies)")
needs_esnli = pytest.mark.skipif(not ESNLI.is_dir(), reason="needs the local sample of e-SNLI (EXEGESIS_DATA/esnli)")
needs_nli = pytest.mark.skipif(not NLI.is_dir(), reason="needs the local SNLI and SICK (EXEGESIS_DATA/nli)")
needs_mlqe = pytest.mark.skipif(not MLQE.is_dir(), reason="needs the local MLQE-PE (EXEGESIS_DATA/mlqe_pe)")
PAIRS = ("en-de", "en-zh", "et-en", "ne-en", "ro-en", "ru-en")


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def squeezed(text: str) -> str:
    return " ".join(text.split())


@needs_nli
@pytest.mark.slow(reason="reads whole data sets")
def test_snli_and_sick_train_together_and_snli_dev_measures() -> None:
    train, dev, test = (load("snli-sick", split=split) for split in ("train", "dev", "test"))
    assert (len(train), len(dev), len(test)) == (9_824 + 4_500, 9_842, 500)
    assert (train[0].extra["pairID"], train[9_824].extra["pairID"]) == ("2677109430.jpg#1r1n", "1")
    assert train.label_names == ("entailment", "neutral", "contradiction")
    assert train[9_824].text == "A group of kids is playing in a yard and an old man is standing in the background"
    assert train[9_824].label == 1
    seen = {(example.text.lower(), str(example.text_pair).lower()) for example in train.examples}
    assert not any((example.text.lower(), str(example.text_pair).lower()) in seen for example in dev.examples)


@needs_movies
@pytest.mark.parametrize(("split", "count", "share"), [("train", 1600, 0.09), ("val", 200, 0.07)])
def test_movies_mark_the_passages_that_their_evidence_quotes(split: str, count: int, share: float) -> None:
    data = load("movies", split=split)
    assert Counter(example.label for example in data.examples) == {0: count // 2, 1: count // 2}
    shares = []
    for example, row in zip(data.examples, rows_of(MOVIES / f"{split}.jsonl"), strict=True):
        assert data.label_names[int(example.label or 0)][:3].upper() == row["classification"]
        marked = [squeezed(example.text[a:b]) for a, b in example.rationale]
        quoted = [mark["text"] for group in row["evidences"] for mark in group]
        assert all(any(quote in words for words in marked) for quote in quoted), row["annotation_id"]
        tokens = {i for g in row["evidences"] for m in g for i in range(m["start_token"], m["end_token"])}
        assert sum(len(words.split()) for words in marked) == len(tokens)
        shares.append(len(tokens) / len(example.text.split()))
    assert sum(shares) / len(shares) == pytest.approx(share, abs=0.01)


@needs_esnli
@pytest.mark.parametrize(("split", "file", "count"), [("dev", "dev.jsonl", 576), ("train", "train_small.jsonl", 90)])
def test_the_sample_of_esnli_marks_the_numbered_words(split: str, file: str, count: int) -> None:
    data = load("esnli", split=split)
    assert len(data) == count
    for example, row in zip(data.examples, rows_of(ESNLI / file), strict=True):
        assert data.label_names[int(example.label or 0)] == row["label"]
        for text, spans, side in (
            (example.text, example.rationale, "premise"),
            (str(example.text_pair), example.rationale_pair, "hypothesis"),
        ):
            assert text == row[side]
            words = [word for a, b in spans for word in text[a:b].split()]
            assert words == [text.split()[i] for i in sorted(set(row[f"{side}_highlight_token_indices"]))]
        assert example.extra["explanations"] == row["explanations"]


@needs_mlqe
@pytest.mark.parametrize("pair", PAIRS)
def test_mlqe_marks_the_words_with_a_bad_tag(pair: str) -> None:
    for split, count in (("train", 1000), ("dev", 300)):
        data = load(f"mlqe-pe:pair={pair}", split=split)
        raw = 0
        for example, row in zip(data.examples, rows_of(MLQE / f"{pair}.{split}.jsonl"), strict=True):
            assert example.label == row["z_mean"]
            for text, spans, short, whole in (
                (example.text, example.rationale, "src", "source"),
                (str(example.text_pair), example.rationale_pair, "mt", "mt"),
            ):
                words, tags = row[f"{short}_tok"].split(), row[f"{short}_tags"]
                bad = [word for word, tag in zip(words, tags, strict=True) if tag == "1"]
                assert [text[a:b] for a, b in spans] == bad
                assert text in (row[whole], " ".join(words))
                raw += text == row[whole]
        assert len(data) == count
        assert raw >= 0.95 * 2 * count


@needs_mlqe
def test_mlqe_as_a_folder_names_its_splits_by_pair() -> None:
    data = load(MLQE, split="ro-en/validation", limit=5)
    assert data.examples == load("mlqe-pe:pair=ro-en", limit=5).examples
