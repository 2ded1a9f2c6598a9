"""Data sets of others in the formats in which they were released: small ones written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.data.datasets import RELEASES, load
from engine.data.examples import Dataset, LabeledExample
from engine.errors import ExegesisError, UsageError
from tests.unit.data import released


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
    folder = released.imdb(data)
    for found in (load("imdb", split="train"), load(folder, split="train")):
        assert found.label_names == ("negative", "positive")
        assert labels(found) == ["negative", "positive", "positive"]
        assert [example.text for example in found.examples][1:] == [
            "Bromwell High is a fine comedy.<br /><br />Really.",
            "Not bad at all.",
        ]
        assert found[0].extra == {"file": "train/neg/2_1.txt", "stars": 1}
    assert (load("imdb").split, len(load("imdb"))) == ("test", 2)
    assert load("imdb").title == "IMDB reviews"
    assert labels(load(folder / "train")) == ["negative", "positive", "positive"]
    with pytest.raises(UsageError, match=r"split: unknown name 'dev'\. Known: test, train"):
        load("imdb", split="dev")


def test_a_limit_reads_only_so_many_reviews_and_says_so_in_the_revision(data: Path) -> None:
    folder = released.imdb(data)
    (folder / "train" / "pos" / "10_7.txt").write_bytes(b"\xff")
    assert len(load("imdb", split="train", limit=2)) == 2
    with pytest.raises(ExegesisError, match=r"10_7\.txt, line 1: is not UTF-8"):
        load("imdb", split="train")


def test_movies_have_their_evidence_in_characters(data: Path) -> None:
    folder = released.movies(data)
    for found in (load("movies", split="train"), load(folder, split="train")):
        assert labels(found) == ["positive", "negative"]
        assert found.label_names == ("negative", "positive")
        assert not found.pairs
        assert found[0].text == "a bold , moving film .\nthe end is\tfine .\n"
        assert marked(found[0]) == (["bold , moving film", "fine"], [])
        assert marked(found[1]) == (["dull"], [])
    assert (load("movies").split, load("movies").label_names) == ("validation", ("negative", "positive"))


def test_the_layout_of_eraser_holds_pairs_too(data: Path) -> None:
    folder = released.eraser_esnli(data)
    for found in (load("esnli"), load(folder)):
        assert labels(found) == ["neutral", "contradiction", "entailment"]
        assert found.label_names == ("entailment", "neutral", "contradiction")
        assert (found[0].text, found[0].text_pair) == ("a boy runs home .", "the boy is fast .")
        assert marked(found[0]) == (["runs home"], ["fast"])


def test_a_query_that_differs_is_a_second_text(tmp_path: Path) -> None:
    folder = released.movies(tmp_path)
    rows = [
        {"annotation_id": "negR_1.txt", "classification": name, "evidences": [], "query": query}
        for name, query in (("True", "is it dull"), ("False", "is it loud"))
    ]
    released.write_jsonl(folder / "train.jsonl", rows)
    (folder / "val.jsonl").unlink()
    found = load(folder)
    assert [example.text_pair for example in found.examples] == ["is it dull", "is it loud"]
    assert labels(found) == ["True", "False"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"evidences": [[released.mark("posR_1.txt", 8, 20)]]}, r"token 20 lies outside its document of 11 tokens"),
        ({"evidences": [[released.mark("posR_1.txt", 4, 4)]]}, r"start_token must lie before end_token, got 4 and 4"),
        (
            {"evidences": [[released.mark("negR_1.txt", 0, 1)]]},
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
def test_what_is_wrong_in_an_annotation_is_told(tmp_path: Path, change: dict[str, object], said: str) -> None:
    folder = released.movies(tmp_path)
    row = {
        "annotation_id": "posR_1.txt",
        "classification": "POS",
        "docids": ["posR_1.txt"],
        "evidences": [],
        "query": "",
    }
    released.write_jsonl(folder / "val.jsonl", [row | change])
    with pytest.raises(ExegesisError, match=f"^val.jsonl, line 1: .*{said}"):
        load(folder, split="val")


def test_esnli_as_released_has_the_words_between_asterisks(data: Path) -> None:
    folder = released.esnli_csv(data)
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
    from engine.data.released import parse_stars

    found, spans = parse_stars(text, starred)
    assert [found[a:b] for a, b in spans] == words
    assert found == (text if text != "other words" else "A b")


def test_multinli_as_released(data: Path) -> None:
    folder = released.multinli(data)
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
    released.write_jsonl(tmp_path / "snli" / "snli_1.0_test.jsonl", [released.NLI])
    assert load(tmp_path / "snli").split == "test"
    table = 'index\tsentence1\tsentence2\tgold_label\n0\tA "b" c.\tD.\tentailment\n'
    released.write(tmp_path / "MNLI" / "dev_matched.tsv", table)
    released.write(tmp_path / "MNLI" / "dev_mismatched.tsv", table.replace("entailment", "contradiction"))
    assert labels(load(tmp_path / "MNLI")) == ["entailment"]
    assert labels(load(tmp_path / "MNLI", split="dev_mismatched")) == ["contradiction"]


def test_snli_and_sick_are_put_together(data: Path) -> None:
    head, line = "pairID\tlabel\tpremise\thypothesis\n", "7\tcontradiction\tA dog sleeps .\tA dog runs .\n"
    for name in ("snli_test", "sick_train", "snli_dev"):
        released.write(data / "nli" / f"{name}.tsv", head + line.replace("7", name))
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


def test_mlqe_has_the_bad_words_of_both_sides_in_the_raw_text(data: Path) -> None:
    released.mlqe_jsonl(data)
    found = load("mlqe-pe", split="train")
    assert (found.task, found.label_names, found.split) == ("regression", (), "train")
    assert (found[0].text, found[0].text_pair, found[0].label) == ("He sings, badly.", "Er singt, gut.", -0.5)
    assert marked(found[0]) == (["badly", "."], ["gut"])
    assert marked(found[1]) == ([], [])
    assert (found[0].extra["mean"], found[0].extra["hter"]) == (40.0, 0.2)


def test_mlqe_takes_a_pair_and_a_score_and_texts_that_do_not_match_their_words(data: Path) -> None:
    folder = released.mlqe_jsonl(data)
    found = load("mlqe-pe:pair=ro-en,score=hter")
    assert (found.label_names, found[0].label) == ((), 0.2)
    assert found[0].text_pair == "Er singt , gut ."
    assert marked(found[0])[1] == ["gut"]
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
    released.mlqe_jsonl(data)
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
    folder = released.mlqe_release(data)
    for found in (load("mlqe-pe", split="train"), load(folder), load(folder / "data")):
        assert (found.split, len(found), found[0].label) == ("train", 2, -0.5)
        assert (found[0].text, found[0].text_pair) == ("He sings, badly.", "Er singt, gut.")
        assert marked(found[0]) == (["badly"], ["gut"])
        assert (found[1].extra["hter"], marked(found[1])) == (0.0, ([], []))
    before = load("mlqe-pe", split="train").revision
    edited = folder / "data" / "post-editing" / "train" / "en-de-train"
    released.write(edited / "train.hter", "0.2\n0.5\n")
    assert load("mlqe-pe", split="train").revision != before
    released.write(edited / "train.mt", "Er singt .\n")
    with pytest.raises(ExegesisError, match=r"train\.mt: must have 2 lines as train\.src"):
        load("mlqe-pe", split="train")


def test_tags_that_do_not_fit_their_words_are_told(data: Path) -> None:
    folder = released.mlqe_jsonl(data)
    file = folder / "en-de.dev.jsonl"
    file.write_text(file.read_text(encoding="utf-8").replace('"00010"', '"0001"'), encoding="utf-8")
    with pytest.raises(
        ExegesisError, match=r"en-de\.dev\.jsonl, line 1: mt_tags: must be 0 \(OK\) or 1 \(BAD\) for each of 5"
    ):
        load("mlqe-pe")


@pytest.mark.parametrize("name", [name for name, release in RELEASES.items() if release.hub is None])
def test_what_is_not_there_is_told_with_the_folder_to_put_it_in(name: str, data: Path) -> None:
    with pytest.raises(
        ExegesisError, match=rf"^{name}: is not in .* Put a folder \w+ there \(.*\), or set EXEGESIS_DATA"
    ):
        load(name)


def test_own_columns_win_over_a_known_format(tmp_path: Path) -> None:
    folder = released.esnli_csv(tmp_path)
    found = load(folder / "esnli_dev.csv", columns={"text": "Explanation_1", "label": "gold_label"})
    assert found[0].text == "They need not be sisters."
    assert found.label_names == ("contradiction",)
