from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pyarrow
import pytest
import torch
from pyarrow import parquet

from engine.data.datasets import load
from engine.data.examples import LabeledExample
from engine.errors import ExegesisError, UsageError
from engine.models.adapters import ADAPTERS
from engine.models.loading import load_tokenizer
from engine.models.text_classifier import encode_text
from engine.request import Example
from engine.training.loop import label_tensor
from engine.training.text_data import (
    ContainmentIndex,
    TextCorpus,
    load_added_texts,
    load_further_texts,
    read_text_corpus,
    split_held_out,
    tokenize_examples,
)
from tests.tiny import FAMILIES


def examples(*texts: str) -> list[LabeledExample]:
    return [LabeledExample(text) for text in texts]


def phrases(seed: int, sentences: int = 60) -> list[LabeledExample]:
    """Sentences and random phrases of them, as in SST-2's train set."""
    draw = random.Random(seed)
    vocabulary = [f"w{i}" for i in range(30)]
    texts = []
    for _ in range(sentences):
        words = draw.choices(vocabulary, k=draw.randint(6, 12))
        texts.append(" ".join(words))
        for _ in range(5):
            start = draw.randrange(len(words))
            texts.append(" ".join(words[start : start + draw.randint(1, 4)]))
    draw.shuffle(texts)
    return examples(*texts)


def test_no_train_text_is_a_phrase_of_a_held_out_one() -> None:
    rows = phrases(1)
    train, held_out = split_held_out(rows, 15, seed=4)
    assert len(held_out) == 15
    assert len(train) < len(rows) - 15
    assert not [t.text for t in train if any(f" {t.text} " in f" {h.text} " for h in held_out)]


def test_only_phrases_of_held_out_texts_are_dropped() -> None:
    rows = phrases(2)
    train, held_out = split_held_out(rows, 10, seed=0)
    dropped = {r.text for r in rows} - {r.text for r in train} - {r.text for r in held_out}
    assert dropped
    assert all(any(f" {text} " in f" {h.text} " for h in held_out) for text in dropped)


def test_held_out_texts_are_part_of_no_longer_text() -> None:
    rows = phrases(3)
    _, held_out = split_held_out(rows, 15, seed=1)
    assert not [h for h in held_out if any(f" {h.text} " in f" {r.text} " and h.text != r.text for r in rows)]


def corpus_of(*labels: str) -> TextCorpus:
    return TextCorpus("first.csv", labels, False, (), {}, "")


def test_added_sets_have_the_labels_repeats_and_no_held_out_text(tmp_path: Path) -> None:
    for name, rows in {"a": "Warm film,positive\nCold soup,negative\n", "b": "film,positive\nfilms,negative\n"}.items():
        (tmp_path / f"{name}.csv").write_text(f"text,label\n{rows}")
    corpus, held_out = corpus_of("negative", "positive"), examples("a  warm FILM again")
    a, b = load_added_texts(f"{tmp_path}/a.csv*12, {tmp_path}/b.csv", corpus, held_out)
    assert [row.text for row in a.rows] == ["Cold soup"]
    assert [(row.text, row.label) for row in b.rows] == [("films", 0)]
    assert [(one.repeats, one.dropped) for one in (a, b)] == [(12, 1), (1, 1)]
    assert a.revision != b.revision
    (whole,) = load_added_texts(f"{tmp_path}/a.csv", corpus, ())
    assert [row.label for row in whole.rows] == [1, 0]
    (split,) = load_added_texts("reviews-generated:seed=1,count=30*2,", corpus, ())
    assert (split.name, split.repeats, len(split.rows)) == ("reviews-generated:seed=1,count=30", 2, 30)
    assert split.rows == list(load("reviews-generated:seed=1,count=30", split="train").examples)


@pytest.mark.parametrize(
    ("names", "match"),
    [
        ("nli*2", r"add nli: must be labeled negative, positive, got 'entailment, neutral, contradiction'"),
        ("agreement", r"add agreement: must be labeled negative, positive, got 'answer, other'"),
        ("reviews*0", r"add: must be names of data sets, each with \*1 to \*999 at most, such as .*, got 'reviews\*0'"),
        ("reviews*x", r"add: must be names of data sets"),
        (
            "reviews*2,reviews",
            r"add: must be data sets that are named once, got 'reviews'\. To repeat one, .*reviews\*2",
        ),
        ("first.csv", r"add: must be data sets that are named once, got 'first\.csv'"),
        ("./first.csv", r"add: must be data sets that are named once, got '\./first\.csv'"),
        ("reviews:rows=3-9,reviews:slice=a,rows=3+4-9", r"add: must be data sets that are named once, got 'reviews:sl"),
        ("no-such-set*2", r"dataset: unknown name 'no-such-set'"),
    ],
)
def test_an_added_set_that_does_not_fit_is_refused(names: str, match: str) -> None:
    with pytest.raises(UsageError, match=match):
        load_added_texts(names, corpus_of("negative", "positive"), ())


@pytest.mark.parametrize(
    ("measure", "dataset", "add"),
    [
        ("reviews", "reviews", ""),
        ("reviews", "sst2", "reviews-written,reviews*4"),
        ("reviews:slice=a,rows=3-9", "reviews", ""),
        ("reviews:rows=3-9", "reviews:rows=9-20", ""),
    ],
)
def test_examples_that_are_trained_on_are_not_measured(measure: str, dataset: str, add: str) -> None:
    corpus = replace(corpus_of("negative", "positive"), name=dataset)
    with pytest.raises(
        UsageError, match=r"measure: must be data sets that are not trained on, got 'reviews.* Measure an"
    ):
        load_further_texts(measure, corpus, add)


def test_a_copy_of_what_is_trained_on_is_not_measured(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("text,label\nwarm,positive\ncold,negative\n")
    with pytest.raises(UsageError, match=r"measure: must be data sets that are not trained on, got .*b\.csv"):
        load_further_texts(f"{tmp_path}/b.csv", read_text_corpus(f"{tmp_path}/a.csv"))


def test_a_set_without_labels_is_not_measured(tmp_path: Path) -> None:
    """As a test split on the hub, which names its classes and has -1 for each label."""
    names = {"info": {"features": {"label": {"names": ["negative", "positive"], "_type": "ClassLabel"}}}}
    table = pyarrow.Table.from_pylist([{"text": "warm", "label": -1}])
    parquet.write_table(table.replace_schema_metadata({"huggingface": json.dumps(names)}), tmp_path / "a.parquet")
    with pytest.raises(UsageError, match=r"measure: must be data sets with labels, got .*a\.parquet"):
        load_further_texts(f"{tmp_path}/a.parquet", corpus_of("negative", "positive"))


def test_other_splits_and_slices_are_measured() -> None:
    corpus = replace(corpus_of("negative", "positive"), name="reviews-generated:count=40")
    (rows,) = load_further_texts("reviews-generated:count=40", corpus).values()
    assert list(rows) == list(load("reviews-generated:count=40", split="validation").examples)
    (rows,) = load_further_texts("reviews:rows=3-9", corpus, "reviews:rows=10-20*2").values()
    assert len(rows) == 7


def test_measured_sets_of_one_file_name_are_both_measured(tmp_path: Path) -> None:
    for folder, count in {"a": 2, "b": 3}.items():
        (tmp_path / folder).mkdir()
        rows = "\n".join(["warm,positive", "cold,negative", "dull,negative"][:count])
        (tmp_path / folder / "test.csv").write_text(f"text,label\n{rows}\n")
    (tmp_path / "bare.csv").write_text("text\nwarm\n")
    corpus, names = corpus_of("negative", "positive"), [f"{tmp_path}/{folder}/test.csv" for folder in "ab"]
    sets = load_further_texts(",".join([*names, names[0]]), corpus)
    assert {name: len(rows) for name, rows in sets.items()} == {"test.csv": 2, names[1]: 3}
    taken = replace(corpus, others={"test.csv": ()})
    assert list(load_further_texts(names[0], taken)) == [names[0]]
    with pytest.raises(UsageError, match=r"must be labeled negative, positive, got 'no labels'"):
        load_further_texts(f"{tmp_path}/bare.csv", corpus)


def test_an_added_set_within_the_held_out_texts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,label\nwarm,positive\nwarm film,negative\n")
    with pytest.raises(ExegesisError, match=r"add: every text of .*a\.csv is part of a held-out or measured text"):
        load_added_texts(f"{tmp_path}/a.csv", corpus_of("negative", "positive"), examples("a warm film"))


def test_the_seed_decides_and_repeats() -> None:
    rows = phrases(5)
    assert split_held_out(rows, 10, seed=1) == split_held_out(rows, 10, seed=1)
    assert split_held_out(rows, 10, seed=1)[1] != split_held_out(rows, 10, seed=2)[1]


def test_at_most_a_fifth_is_held_out_and_nothing_is_lost_without_dropping() -> None:
    rows = phrases(6, sentences=5)
    train, held_out = split_held_out(rows, 1_000, seed=0, drop_contained=False)
    assert len(held_out) == len(rows) // 5
    assert sorted(r.text for r in train + held_out) == sorted(r.text for r in rows)


def test_copies_of_a_held_out_text_leave_the_training_set() -> None:
    rows = examples("one two three four", "one two three four", "a b", "c d")
    train, held_out = split_held_out(rows, 1, seed=0)
    assert [h.text for h in held_out] == ["one two three four"]
    assert "one two three four" not in {t.text for t in train}


def test_containment_minds_words_and_ignores_case_and_blanks() -> None:
    rows = examples("The  cat sat on a mat", "cat sat", "at", "CAT", "dog", "mat")
    train, held_out = split_held_out(rows, 1, seed=0)
    assert [h.text for h in held_out] == ["The  cat sat on a mat"]
    assert [t.text for t in train] == ["at", "dog"]


def test_a_pair_is_one_text() -> None:
    rows = [LabeledExample("a b c", "d e f"), LabeledExample("x", "y"), LabeledExample("c d")]
    train, held_out = split_held_out(rows, 1, seed=0)
    assert held_out == [rows[0]]
    assert rows[-1] in train


def test_containment_agrees_with_brute_force() -> None:
    texts = [f" {r.text} " for r in phrases(7, sentences=20)]
    index = ContainmentIndex(texts)
    for text in texts:
        assert index.contains(text)
        assert index.contains(text, strictly=True) == any(text in other and text != other for other in texts)
    assert not index.contains(" w0 w0 w0 w0 w0 w0 w0 ")


def test_pairs_are_padded_on_the_right_with_their_segments(tiny) -> None:
    tokenizer = load_tokenizer(Path(tiny("bert")))
    rows = [LabeledExample("the film", "a plot", 1), LabeledExample("the", "a", 0)]
    data = tokenize_examples(rows, tokenizer, 64, ADAPTERS["bert"])
    batch = data.batch([0, 1], torch.device("cpu"))
    expected = tokenizer(["the film", "the"], ["a plot", "a"], padding=True, return_tensors="pt")
    assert batch["input_ids"].equal(expected["input_ids"])
    assert batch["attention_mask"].equal(expected["attention_mask"])
    assert "token_type_ids" not in tokenizer.model_input_names
    assert batch["token_type_ids"].tolist() == [[0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 0, 0]]
    assert label_tensor(data, [0, 1], False, torch.device("cpu")).tolist() == [1, 0]


def test_long_texts_are_cut(tiny) -> None:
    data = tokenize_examples(
        [LabeledExample("the film " * 80, label=0)], load_tokenizer(Path(tiny("gpt2"))), 12, ADAPTERS["gpt2"]
    )
    assert len(data.inputs[0]["input_ids"]) == 12


@pytest.mark.parametrize("family", FAMILIES)
def test_training_reads_what_explaining_reads(family: str, tiny) -> None:
    tokenizer, adapter = load_tokenizer(Path(tiny(family))), ADAPTERS[family]
    texts = [("the film", "a plot " * 9), ("the " * 30, None), ("a premise " * 9, ""), ("warm", "the film")]
    data = tokenize_examples([LabeledExample(text, pair, 0) for text, pair in texts], tokenizer, 12, adapter)
    assert all(("token_type_ids" in row) == adapter.token_types for row in data.inputs)
    for row, (text, pair) in zip(data.inputs, texts, strict=True):
        encoded = encode_text(tokenizer, Example(text, pair), 12)
        assert row["input_ids"] == encoded.ids.tolist()
        assert row.get("token_type_ids", encoded.types.tolist()) == encoded.types.tolist()
