"""Data sets as they are loaded: the registry, files by column mapping, folders of splits, SST-2."""

from __future__ import annotations

import csv
import hashlib
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.data.datasets import RELEASES, dataset_card, dataset_names, load, register
from engine.data.image_datasets import image_names
from engine.data.registry import card_names, data_root, read_card
from engine.errors import UsageError

TEXT = st.characters(blacklist_categories=["Cs"], blacklist_characters="\0")
PROJECT = Path(__file__).resolve().parents[3]
REVIEWS = PROJECT / "engine" / "data" / "reviews.jsonl"

needs_sst2 = pytest.mark.skipif(
    not (data_root() / "sst2" / "dev.tsv").is_file(),
    reason="needs the local SST-2 files (EXEGESIS_DATA/sst2)",
)


def write(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


def test_reviews_load_with_names_rationales_and_the_hash_of_their_file() -> None:
    reviews = load("reviews")
    assert reviews.task == "classification"
    assert reviews.label_names == ("negative", "positive")
    assert reviews.revision == hashlib.sha256(REVIEWS.read_bytes()).hexdigest()
    assert all(example.rationale for example in reviews.examples)
    assert not reviews.pairs
    assert reviews[0].example.text == reviews[0].text


def test_a_limit_keeps_the_first_examples_and_the_revision() -> None:
    whole, few = load("reviews"), load("reviews", limit=7)
    assert few.examples == whole.examples[:7]
    assert few.revision == whole.revision


def test_every_registered_data_set_has_a_card_with_every_field_filled() -> None:
    own = {"nli", "quality", "reviews", "reviews-generated", "reviews-marked"}
    assert set(dataset_names()) == own | {"sst2"} | set(RELEASES)
    assert {*dataset_names(), *image_names()} == set(card_names())
    assert dataset_names()[0] == "reviews"
    for name in dataset_names():
        card = dataset_card(name)
        assert all(vars(card).values())
        assert card.markdown().startswith(f"# {card.title}\n")


def test_the_card_of_the_reviews_names_their_number() -> None:
    assert read_card("reviews").size.startswith(f"{len(load('reviews'))} ")


def test_a_name_is_registered_once() -> None:
    with pytest.raises(UsageError, match=r"'reviews' is registered twice"):
        register("reviews")(lambda asked: load("reviews"))


def test_csv_by_column_mapping_sorts_string_labels_and_keeps_the_other_columns(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", 'review,mood,id\n"Good, ""really"" good\nyes",pos,=1+1\nBad,neg,2\n')
    found = load(path, columns={"text": "review", "label": "mood"})
    assert found.label_names == ("neg", "pos")
    assert [example.label for example in found.examples] == [1, 0]
    assert found[0].text == 'Good, "really" good\nyes'
    assert found[0].extra == {"id": "=1+1"}


def test_given_label_names_decide_the_ids(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "text,label\nGood,pos\nBad,neg\nOdd,\n")
    found = load(path, label_names=["pos", "neg", "neutral"])
    assert [example.label for example in found.examples] == [0, 1, None]
    assert found.label_names == ("pos", "neg", "neutral")


@pytest.mark.parametrize(
    ("cells", "task", "names", "labels"),
    [
        (["0", "2", "1"], "classification", ("0", "1", "2"), [0, 2, 1]),
        (["5", "1", "10"], "classification", ("1", "5", "10"), [1, 0, 2]),
        (["0.5", "1", "-2"], "regression", (), [0.5, 1.0, -2.0]),
        (["b", "a", "b"], "classification", ("a", "b"), [1, 0, 1]),
        (["nan", "inf", "nan"], "classification", ("inf", "nan"), [1, 0, 1]),
        (["", "", ""], "classification", (), [None, None, None]),
    ],
)
def test_labels_are_indices_numbers_or_sorted_names(
    tmp_path: Path, cells: list[str], task: str, names: tuple[str, ...], labels: list[object]
) -> None:
    rows = "".join(f"text {i},{cell}\n" for i, cell in enumerate(cells))
    found = load(write(tmp_path, "a.csv", f"text,label\n{rows}"))
    assert (found.task, found.label_names) == (task, names)
    assert [example.label for example in found.examples] == labels


def test_semicolons_byte_order_marks_and_windows_lines_are_understood(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "\ufefftext;label\r\nBien, merci;1\r\n\r\nNon;0\r\n")
    found = load(path)
    assert [(example.text, example.label) for example in found.examples] == [("Bien, merci", 1), ("Non", 0)]


def test_tsv_takes_quotation_marks_as_characters(tmp_path: Path) -> None:
    path = write(tmp_path, "a.tsv", 'text\tlabel\n"half a quote\t1\nsecond\t0\n')
    assert load(path)[0].text == '"half a quote'


def test_jsonl_contract_with_pairs_and_both_rationales(tmp_path: Path) -> None:
    row = {"text": "日本 😀 good", "text_pair": "It is.", "label": 1}
    marks = {"rationale": [[5, 9], [0, 2]], "rationale_pair": [[3, 5]], "note": [1]}
    found = load(write(tmp_path, "a.jsonl", json.dumps({**row, **marks}) + "\n\n"))
    assert found.pairs
    assert found[0].rationale == ((0, 2), (5, 9))
    assert found[0].text[5:9] == "good"
    assert found[0].rationale_pair == ((3, 5),)
    assert found[0].extra == {"note": [1]}


def test_a_rationale_in_a_table_is_json_in_a_cell(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", 'text,why\nGood food,"[[0, 4]]"\nMeh,\n')
    found = load(path, columns={"rationale": "why"})
    assert [example.rationale for example in found.examples] == [((0, 4),), ()]


def test_the_mapping_and_the_names_are_part_of_the_revision(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "text,other,label\nGood,Bad,0\n")
    plain = load(path)
    assert plain.revision == hashlib.sha256(path.read_bytes()).hexdigest()
    others = [load(path, columns={"text": "other"}), load(path, label_names=["x", "y"])]
    assert len({plain.revision, *(other.revision for other in others)}) == 3


def test_ten_megabytes_in_one_text_load_and_the_csv_limit_is_put_back(tmp_path: Path) -> None:
    before, text = csv.field_size_limit(), "word " * 2_000_000
    as_csv = load(write(tmp_path, "a.csv", f"text,label\n{text},1\n"))
    as_jsonl = load(write(tmp_path, "a.jsonl", json.dumps({"text": text, "label": 1})))
    assert as_csv[0].text == as_jsonl[0].text == text
    assert csv.field_size_limit() == before


@given(st.lists(st.text(TEXT, min_size=1).filter(str.strip), min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_whatever_is_written_as_csv_or_jsonl_is_read_back(texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        as_csv, as_jsonl = Path(folder, "a.csv"), Path(folder, "a.jsonl")
        with as_csv.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows([["text", "n"], *([text, "0"] for text in texts)])
        rows = [json.dumps({"text": text}, ensure_ascii=False) for text in texts]
        as_jsonl.write_text("\n".join(rows), encoding="utf-8", newline="")
        for path in (as_csv, as_jsonl):
            assert [example.text for example in load(path).examples] == texts


def test_a_folder_of_files_has_a_split_each_and_dev_means_validation(tmp_path: Path) -> None:
    for name, text in (("train", "learn"), ("dev", "choose"), ("test", "judge")):
        write(tmp_path, f"{name}.csv", f"text,label\n{text},1\nno,0\n")
    assert load(tmp_path)[0].text == load(tmp_path, split="validation")[0].text == "choose"
    assert load(tmp_path, split="train").split == "train"
    with pytest.raises(UsageError, match=r"split: unknown name 'tset'\. Did you mean 'test'"):
        load(tmp_path, split="tset")


def test_sst2_reads_the_folder_that_the_environment_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sst2").mkdir()
    write(tmp_path / "sst2", "dev.tsv", 'sentence\tlabel\na " fine film\t1\ndull\t0\n')
    monkeypatch.setenv("EXEGESIS_DATA", str(tmp_path))
    found = load("sst2")
    assert (found.id, found.split, found.label_names) == ("sst2", "dev", ("negative", "positive"))
    assert [(example.text, example.label) for example in found.examples] == [
        ('a " fine film', 1),
        ("dull", 0),
    ]


@needs_sst2
def test_sst2_dev_has_its_872_sentences_with_428_negative() -> None:
    found = load("sst2", split="dev")
    assert len(found) == 872
    assert sum(example.label == 0 for example in found.examples) == 428


def test_examples_and_data_sets_are_frozen_and_compare_by_value() -> None:
    first = load("reviews", limit=1)
    assert replace(first) == first
    assert hash(first[0]) == hash(replace(first[0]))
    with pytest.raises(AttributeError):
        first[0].text = "other"  # type: ignore[misc]


def test_loading_imports_neither_torch_nor_transformers_nor_pandas() -> None:
    heavy = "{'torch', 'transformers', 'streamlit', 'pandas', 'pyarrow', 'huggingface_hub'}"
    used = "from engine.data.datasets import load; load('reviews')"
    code = f"import sys; {used}; print(*({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
