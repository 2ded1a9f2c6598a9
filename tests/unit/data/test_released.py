"""Data sets of others in the formats in which they were released: small ones by hand, and real ones where they are."""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from engine.data.datasets import RELEASES, load
from engine.data.examples import Dataset, LabeledExample
from engine.data.registry import data_root, read_card
from engine.data.released import cut_passage, find_snli_sick, parse_stars
from engine.errors import ExegesisError, UsageError
from tests.unit.data import release_files


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which sets are looked for by name."""
    monkeypatch.setenv("EXEGESIS_DATA", str(tmp_path))
    return tmp_path


def marked(example: LabeledExample) -> tuple[list[str], list[str]]:
    """The marked words of both sides."""
    pair = example.text_pair or ""
    return [example.text[a:b] for a, b in example.rationale], [pair[a:b] for a, b in example.rationale_pair]


def labels(data: Dataset) -> list[str | None]:
    return [None if e.label is None else data.label_names[int(e.label)] for e in data.examples]


def test_imdb_by_name_and_by_path(data: Path) -> None:
    folder = release_files.imdb(data)
    for dataset in (load("imdb", split="train"), load(folder, split="train")):
        assert dataset.label_names == ("negative", "positive")
        assert labels(dataset) == ["negative", "positive", "positive"]
        assert [example.text for example in dataset.examples][1:] == [
            "Bromwell High is a fine comedy.<br /><br />Really.",
            "Not bad at all.",
        ]
        assert dataset[0].extra == {"file": "train/neg/2_1.txt", "stars": 1}
    assert (load("imdb").split, len(load("imdb"))) == ("test", 2)
    assert load("imdb").title == "IMDB reviews"
    assert labels(load(folder / "train")) == ["negative", "positive", "positive"]
    with pytest.raises(UsageError, match=r"split: unknown name 'dev'\. Known: test, train"):
        load("imdb", split="dev")


def test_a_limit_reads_only_so_many_reviews_and_says_so_in_the_revision(data: Path) -> None:
    folder = release_files.imdb(data)
    (folder / "train" / "pos" / "10_7.txt").write_bytes(b"\xff")
    assert len(load("imdb", split="train", limit=2)) == 2
    with pytest.raises(ExegesisError, match=r"10_7\.txt, line 1: is not UTF-8"):
        load("imdb", split="train")


def test_movies_have_their_evidence_in_characters(data: Path) -> None:
    folder = release_files.movies(data)
    for dataset in (load("movies", split="train"), load(folder, split="train")):
        assert labels(dataset) == ["positive", "negative"]
        assert dataset.label_names == ("negative", "positive")
        assert not dataset.pairs
        assert dataset[0].text == "a bold , moving film .\nthe end is\tfine .\n"
        assert marked(dataset[0]) == (["bold , moving film", "fine"], [])
        assert marked(dataset[1]) == (["dull"], [])
    assert (load("movies").split, load("movies").label_names) == ("validation", ("negative", "positive"))


def test_a_passage_has_the_first_marked_words_in_its_middle() -> None:
    text = "a b c d e f g h"
    assert cut_passage(text, [[8, 9]], 3) == ("d e f", [[2, 3]]), "e"
    assert cut_passage(text, [[8, 9], [12, 15]], 6) == ("c d e f g h", [[4, 5], [8, 11]]), "both count"
    assert cut_passage(text, [[0, 1]], 3) == ("a b c", [[0, 1]]), "not before the beginning"
    assert cut_passage(text, [[14, 15]], 3) == ("f g h", [[4, 5]]), "not beyond the end"
    assert cut_passage(text, [[4, 15]], 3) == ("c d e", [[0, 5]]), "longer marks are cut at the end"
    assert cut_passage(text, [], 2) == ("a b", [])
    assert cut_passage(text, [[0, 15]], 99) == (text, [[0, 15]])
    assert cut_passage("", [], 3) == ("", [])


def test_passages_of_documents_are_an_option(data: Path) -> None:
    release_files.movies(data)
    [first, second] = load("movies:words=4", split="train").examples
    assert (first.text, first.rationale) == ("bold , moving film", ((0, 18),))
    assert second.text == "dull and flat ."
    assert len({load(name, split="train").revision for name in ("movies", "movies:words=4", "movies:words=5")}) == 3
    for wrong in ("some", "-1"):
        with pytest.raises(UsageError, match="words"):
            load(f"movies:words={wrong}")
    with pytest.raises(UsageError, match="takes no options"):
        load("esnli:words=4")


def test_the_layout_of_eraser_holds_pairs_too(data: Path) -> None:
    folder = release_files.eraser_esnli(data)
    for dataset in (load("esnli"), load(folder)):
        assert labels(dataset) == ["neutral", "contradiction", "entailment"]
        assert dataset.label_names == ("entailment", "neutral", "contradiction")
        assert (dataset[0].text, dataset[0].text_pair) == ("a boy runs home .", "the boy is fast .")
        assert marked(dataset[0]) == (["runs home"], ["fast"])


def test_a_query_that_differs_is_a_second_text(tmp_path: Path) -> None:
    folder = release_files.movies(tmp_path)
    rows = [
        {"annotation_id": "negR_1.txt", "classification": name, "evidences": [], "query": query}
        for name, query in (("True", "is it dull"), ("False", "is it loud"))
    ]
    release_files.write_jsonl(folder / "train.jsonl", rows)
    (folder / "val.jsonl").unlink()
    dataset = load(folder)
    assert [example.text_pair for example in dataset.examples] == ["is it dull", "is it loud"]
    assert labels(dataset) == ["True", "False"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"evidences": [[release_files.mark("posR_1.txt", 8, 20)]]},
            r"token 20 lies outside its document of 11 tokens",
        ),
        (
            {"evidences": [[release_files.mark("posR_1.txt", 4, 4)]]},
            r"start_token must lie before end_token, got 4 and 4",
        ),
        (
            {"evidences": [[release_files.mark("negR_1.txt", 0, 1)]]},
            r"name the document 'negR_1\.txt', which",
        ),
        ({"evidences": ["x"]}, r"evidences: must be a list of lists of objects, got \['x'\]"),
        ({"evidences": 3}, r"evidences: must be a list of lists of objects, got 3"),
        ({"annotation_id": "gone.txt", "docids": ["gone.txt"]}, r"there is no document 'gone\.txt' in docs"),
        ({"annotation_id": "x", "docids": ["../train.jsonl"]}, r"there is no document '\.\./train\.jsonl' in docs"),
        ({"annotation_id": None}, r"annotation_id: must be a text, got None"),
        ({"classification": 1}, r"classification: must be the name of a class, got 1"),
        ({"docids": ["a", "b", "c"]}, r"has 3 documents; Exegesis reads one text or a pair"),
    ],
)
def test_what_is_wrong_in_an_annotation_is_reported(tmp_path: Path, change: dict[str, object], message: str) -> None:
    folder = release_files.movies(tmp_path)
    row = {
        "annotation_id": "posR_1.txt",
        "classification": "POS",
        "docids": ["posR_1.txt"],
        "evidences": [],
        "query": "",
    }
    release_files.write_jsonl(folder / "val.jsonl", [row | change])
    with pytest.raises(ExegesisError, match=f"^val.jsonl, line 1: .*{message}"):
        load(folder, split="val")


def test_esnli_as_released_has_the_words_between_asterisks(data: Path) -> None:
    folder = release_files.esnli_csv(data)
    train = load("esnli", split="train")
    assert labels(train) == ["neutral", "contradiction"]
    assert train[0].text == "Two women, one tall, sing."
    assert marked(train[0]) == (["women, one"], ["sisters."])
    assert marked(train[1]) == (["women, one"], ["Nobody"])
    assert train[0].extra["Explanation_1"] == "They need not be sisters."
    assert (load("esnli").split, len(load(folder, split="test"))) == ("validation", 2)
    assert marked(load(folder / "esnli_dev.csv")[0]) == (["women, one"], ["Nobody"])


@pytest.mark.parametrize(
    ("text", "starred", "words"),
    [
        ("A b c", "A b c", []),
        ("A b c", "*A* b *c*", ["A", "c"]),
        ("A b c", "*A b* c", ["A b"]),
        ("A  b", "A *b*", ["b"]),
        ("A * b", "A * *b*", ["b"]),
        ("other words", "A *b*", ["b"]),
        ("", "", []),
    ],
)
def test_marks_of_esnli_by_hand(data: Path, text: str, starred: str, words: list[str]) -> None:
    located, spans = parse_stars(text, starred)
    assert [located[a:b] for a, b in spans] == words
    assert located == (text if text != "other words" else "A b")


def test_multinli_as_released(data: Path) -> None:
    folder = release_files.multinli(data)
    for name in ("multinli", str(folder)):
        matched = load(name)
        assert (matched.split, labels(matched)) == ("validation", ["neutral", None])
        assert matched.label_names == ("entailment", "neutral", "contradiction")
        assert (matched[0].text, matched[0].text_pair) == ('He "left".', "He was sad.")
        assert matched[0].extra["genre"] == "fiction"
        assert not any("parse" in column for column in matched[0].extra)
        assert len(load(name, split="train")) == 2
        for split in ("dev_mismatched", "validation_mismatched"):
            assert labels(load(name, split=split)) == [None]
    assert labels(load(folder / "multinli_1.0_dev_matched.txt")) == ["neutral"]
    (folder / "multinli_1.0_dev_matched.jsonl").unlink()
    assert labels(load("multinli", split="dev_matched")) == ["neutral"]


def test_tables_of_glue_and_snli_are_read_by_the_same_reader(tmp_path: Path) -> None:
    release_files.write_jsonl(tmp_path / "snli" / "snli_1.0_test.jsonl", [release_files.NLI])
    assert load(tmp_path / "snli").split == "test"
    table = 'index\tsentence1\tsentence2\tgold_label\n0\tA "b" c.\tD.\tentailment\n'
    release_files.write(tmp_path / "MNLI" / "dev_matched.tsv", table)
    release_files.write(tmp_path / "MNLI" / "dev_mismatched.tsv", table.replace("entailment", "contradiction"))
    assert labels(load(tmp_path / "MNLI")) == ["entailment"]
    assert labels(load(tmp_path / "MNLI", split="dev_mismatched")) == ["contradiction"]


def test_snli_and_sick_are_put_together(data: Path) -> None:
    head, line = "pairID\tlabel\tpremise\thypothesis\n", "7\tcontradiction\tA dog sleeps .\tA dog runs .\n"
    for name in ("snli_test", "sick_train", "snli_dev"):
        release_files.write(data / "nli" / f"{name}.tsv", head + line.replace("7", name))
    for name in ("snli-sick", str(data / "nli")):
        train = load(name, split="train")
        assert [example.extra["pairID"] for example in train.examples] == ["snli_test", "sick_train"]
        assert (train[0].text, train[0].text_pair, labels(train)[0]) == (
            "A dog sleeps .",
            "A dog runs .",
            "contradiction",
        )
        assert (load(name).split, len(load(name))) == ("validation", 1)
    (data / "nli" / "snli_dev.tsv").write_text(head.replace("label", "gold") + line, encoding="utf-8")
    with pytest.raises(ExegesisError, match=r"snli_dev\.tsv, line 2: has no column 'label'"):
        load("snli-sick")


def test_a_folder_without_a_file_of_the_training_split_is_not_the_set(tmp_path: Path) -> None:
    for name in ("snli_dev.tsv", "snli_test.tsv"):
        (tmp_path / name).touch()
    assert find_snli_sick(tmp_path) is None
    (tmp_path / "sick_train.tsv").touch()
    release = find_snli_sick(tmp_path)
    assert release is not None
    assert sorted(release.splits) == ["train", "validation"]


def test_sentences_are_split_by_their_text_and_take_turns_between_sites(data: Path) -> None:
    folder = data / "sentences"
    for site, stem in {"amazon": "amazon_cells", "imdb": "imdb", "yelp": "yelp"}.items():
        lines = [f'The {site} "thing", number {i}.  \t{i % 2}' for i in range(60)]
        release_files.write(
            folder / f"{stem}.tsv", "\n".join([*lines, f"Great {site}!\t1", f"GREAT {site}!\t1"]) + "\n"
        )
    by_split = {split: load("sentences", split=split) for split in ("train", "test")}
    assert load("sentences").split == "test"
    for split, loaded in by_split.items():
        assert (loaded.split, loaded.label_names) == (split, ("negative", "positive"))
        held_out = [zlib.crc32(example.text.lower().encode()) % 10 < 2 for example in loaded.examples]
        assert set(held_out) == {split == "test"}
        for example in loaded.examples:
            site, number = re.findall("amazon|imdb|yelp", example.text)[0], re.findall(r"\d+", example.text)
            assert (example.extra, example.label) == ({"domain": site}, int(number[0]) % 2 if number else 1)
    texts = [example.text for loaded in by_split.values() for example in loaded.examples]
    assert len(texts) == 3 * 62
    assert 'The imdb "thing", number 0.' in texts, "there is no header, no quoting, and no blank at the end"
    first = load("sentences", split="train", limit=3).examples
    assert [example.extra["domain"] for example in first] == ["amazon", "imdb", "yelp"]
    train, test = ({example.text.lower() for example in loaded.examples} for loaded in by_split.values())
    assert not train & test

    (folder / "yelp.tsv").rename(folder / "yelp_labelled.txt")
    with pytest.raises(
        ExegesisError, match=r"sentences: is not in .* Put a folder sentences there \(amazon_cells\.tsv"
    ):
        load("sentences")
    for stem in ("amazon_cells", "imdb"):
        (folder / f"{stem}.tsv").rename(folder / f"{stem}_labelled.txt")
    assert load(folder, split="train").examples == by_split["train"].examples, "UCI's own names"


@pytest.mark.skipif(
    not (data_root() / "sentences" / "yelp.tsv").is_file(),
    reason="needs the local Sentiment Labelled Sentences (EXEGESIS_DATA/sentences)",
)
def test_the_card_of_the_sentences_names_their_numbers() -> None:
    train, test = (len(load("sentences", split=split)) for split in ("train", "test"))
    assert train + test == 3_000
    assert f"{train:,} for training and {test:,} for test" in read_card("sentences").size


def test_mlqe_has_the_bad_words_of_both_sides_in_the_raw_text(data: Path) -> None:
    release_files.mlqe_jsonl(data)
    dataset = load("mlqe-pe", split="train")
    assert (dataset.task, dataset.label_names, dataset.split) == ("regression", (), "train")
    assert (dataset[0].text, dataset[0].text_pair, dataset[0].label) == ("He sings, badly.", "Er singt, gut.", -0.5)
    assert marked(dataset[0]) == (["badly", "."], ["gut"])
    assert marked(dataset[1]) == ([], [])
    assert (dataset[0].extra["mean"], dataset[0].extra["hter"]) == (40.0, 0.2)


def test_mlqe_takes_a_pair_and_a_score_and_texts_that_do_not_match_their_words(data: Path) -> None:
    folder = release_files.mlqe_jsonl(data)
    dataset = load("mlqe-pe:pair=ro-en,score=hter")
    assert (dataset.label_names, dataset[0].label) == ((), 0.2)
    assert dataset[0].text_pair == "Er singt , gut ."
    assert marked(dataset[0])[1] == ["gut"]
    assert load("mlqe-pe:score=mean", split="dev")[0].label == 40.0
    assert load("mlqe-pe:score=mean").revision != load("mlqe-pe").revision
    whole = load(folder)
    assert (whole.split, whole[0].text_pair) == ("en-de/validation", "Er singt, gut.")
    assert load(folder, split="ro-en/validation")[0].text_pair == "Er singt , gut ."
    assert load(folder / "en-de.dev.jsonl").split == "all"
    with pytest.raises(UsageError, match=r"mlqe-pe\.pair: unknown name 'en-fr'\. .*Known: en-de, ro-en"):
        load("mlqe-pe:pair=en-fr")
    with pytest.raises(UsageError, match=r"mlqe-pe\.score: must be one of z_mean, mean, hter, got 'ter'"):
        load("mlqe-pe:score=ter")


def test_several_pairs_of_mlqe_hold_one_after_the_other(data: Path) -> None:
    release_files.mlqe_jsonl(data)
    both = load("mlqe-pe:pair=ro-en+en-de")
    assert (both.split, len(both)) == ("validation", 2), "of ro-en there is no other split"
    assert [one.text_pair for one in both.examples] == ["Er singt , gut .", "Er singt, gut."]
    assert len(load("mlqe-pe:pair=ro-en+en-de", limit=1)) == 1
    assert load("mlqe-pe:pair=en-de+en-de", split="train").examples == load("mlqe-pe", split="train").examples
    assert both.revision != load("mlqe-pe:pair=en-de+ro-en").revision
    with pytest.raises(UsageError, match=r"mlqe-pe\.pair: unknown name 'si-en'\."):
        load("mlqe-pe:pair=en-de+si-en")
    with pytest.raises(UsageError, match=r"split: unknown name 'train'\."):
        load("mlqe-pe:pair=ro-en+en-de", split="train")


def test_mlqe_as_released_is_the_same(data: Path) -> None:
    folder = release_files.mlqe_release(data)
    for dataset in (load("mlqe-pe", split="train"), load(folder), load(folder / "data")):
        assert (dataset.split, len(dataset), dataset[0].label) == ("train", 2, -0.5)
        assert (dataset[0].text, dataset[0].text_pair) == ("He sings, badly.", "Er singt, gut.")
        assert marked(dataset[0]) == (["badly"], ["gut"])
        assert (dataset[1].extra["hter"], marked(dataset[1])) == (0.0, ([], []))
    before = load("mlqe-pe", split="train").revision
    edited = folder / "data" / "post-editing" / "train" / "en-de-train"
    release_files.write(edited / "train.hter", "0.2\n0.5\n")
    assert load("mlqe-pe", split="train").revision != before
    release_files.write(edited / "train.mt", "Er singt .\n")
    with pytest.raises(ExegesisError, match=r"train\.mt: must have 2 lines, like train\.src"):
        load("mlqe-pe", split="train")


def test_tags_that_do_not_fit_their_words_are_reported(data: Path) -> None:
    folder = release_files.mlqe_jsonl(data)
    file = folder / "en-de.dev.jsonl"
    file.write_text(file.read_text(encoding="utf-8").replace('"00010"', '"0001"'), encoding="utf-8")
    with pytest.raises(
        ExegesisError, match=r"en-de\.dev\.jsonl, line 1: mt_tags: must be 0 \(OK\) or 1 \(BAD\) for each of 5"
    ):
        load("mlqe-pe")


@pytest.mark.parametrize("name", [name for name, release in RELEASES.items() if release.hub is None])
def test_what_is_not_there_is_reported_with_the_folder_to_put_it_in(name: str, data: Path) -> None:
    with pytest.raises(
        ExegesisError, match=rf"^{name}: is not in .* Put a folder \w+ there \(.*\), or set EXEGESIS_DATA"
    ):
        load(name)


def test_own_columns_win_over_a_known_format(tmp_path: Path) -> None:
    folder = release_files.esnli_csv(tmp_path)
    dataset = load(folder / "esnli_dev.csv", columns={"text": "Explanation_1", "label": "gold_label"})
    assert dataset[0].text == "They need not be sisters."
    assert dataset.label_names == ("contradiction",)


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
    training = {(example.text.lower(), str(example.text_pair).lower()) for example in train.examples}
    assert not any((example.text.lower(), str(example.text_pair).lower()) in training for example in dev.examples)


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
