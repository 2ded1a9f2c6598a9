"""Text data sets as they are loaded: the registry, files by column mapping, folders of splits, SST-2, bad input."""

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
from engine.data.examples import LabeledExample
from engine.data.image_datasets import image_names
from engine.data.labels import PROMPT_LABELS
from engine.data.registry import card_names, data_root, read_card
from engine.errors import ExegesisError, UsageError
from engine.request import Prompt

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
    own = {"nli", "nli-generated", "quality", "reviews", "reviews-generated", "reviews-marked", "reviews-written"}
    own |= {"agreement", "indirect-object", "facts", "sentiment-prompt"}
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
        register("reviews")(lambda request: load("reviews"))


def test_csv_by_column_mapping_sorts_string_labels_and_keeps_the_other_columns(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", 'review,mood,id\n"Good, ""really"" good\nyes",pos,=1+1\nBad,neg,2\n')
    data = load(path, columns={"text": "review", "label": "mood"})
    assert data.label_names == ("neg", "pos")
    assert [example.label for example in data.examples] == [1, 0]
    assert data[0].text == 'Good, "really" good\nyes'
    assert data[0].extra == {"id": "=1+1"}


def test_given_label_names_decide_the_ids(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "text,label\nGood,pos\nBad,neg\nOdd,\n")
    data = load(path, label_names=["pos", "neg", "neutral"])
    assert [example.label for example in data.examples] == [0, 1, None]
    assert data.label_names == ("pos", "neg", "neutral")


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
    data = load(write(tmp_path, "a.csv", f"text,label\n{rows}"))
    assert (data.task, data.label_names) == (task, names)
    assert [example.label for example in data.examples] == labels


def test_semicolons_byte_order_marks_and_windows_lines_are_understood(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "\ufefftext;label\r\nBien, merci;1\r\n\r\nNon;0\r\n")
    data = load(path)
    assert [(example.text, example.label) for example in data.examples] == [("Bien, merci", 1), ("Non", 0)]


def test_tsv_takes_quotation_marks_as_characters(tmp_path: Path) -> None:
    path = write(tmp_path, "a.tsv", 'text\tlabel\n"half a quote\t1\nsecond\t0\n')
    assert load(path)[0].text == '"half a quote'


def test_jsonl_contract_with_pairs_and_both_rationales(tmp_path: Path) -> None:
    row = {"text": "日本 😀 good", "text_pair": "It is.", "label": 1}
    marks = {"rationale": [[5, 9], [0, 2]], "rationale_pair": [[3, 5]], "note": [1]}
    data = load(write(tmp_path, "a.jsonl", json.dumps({**row, **marks}) + "\n\n"))
    assert data.pairs
    assert data[0].rationale == ((0, 2), (5, 9))
    assert data[0].text[5:9] == "good"
    assert data[0].rationale_pair == ((3, 5),)
    assert data[0].extra == {"note": [1]}


def test_a_rationale_in_a_table_is_json_in_a_cell(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", 'text,why\nGood food,"[[0, 4]]"\nMeh,\n')
    data = load(path, columns={"rationale": "why"})
    assert [example.rationale for example in data.examples] == [((0, 4),), ()]


def test_a_table_of_answers_and_foils_has_prompts(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "text,right,wrong,label\nThe keys, are, is,7\nThe key, is, are,8\n")
    data = load(path, columns={"answer": "right", "foil": "wrong"})
    assert (data.task, data.label_names, data[1].label) == ("classification", PROMPT_LABELS, 0)
    assert data[0].example == Prompt("The keys", target=" are", contrast=" is")
    assert data[0].extra == {"label": "7"}
    plain = load(write(tmp_path, "b.csv", "text,answer,label\nWho?,me,0\nWho?,you,1\n"))
    assert (plain[0].answer, plain.label_names, plain[0].extra) == (None, ("0", "1"), {"answer": "me"})


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        ("text,right,wrong\nA, b, c\n", {"answer": "right"}, r"columns: a prompt needs answer and foil, got only one"),
        ("text,answer,foil,label\nA, b, c,0\n", {"label": "label"}, r"columns: the label of a prompt is its answer"),
        ("text,answer,foil\nA, b,\n", None, r"a\.csv, line 2: foil: is empty"),
        ("text,answer,foil\nA, b, b\n", None, r"a\.csv, line 2: contrast: must differ from the target, got ' b' twice"),
        ("text,text_pair,answer,foil\nA,B, b, c\n", None, r"a\.csv, line 2: text_pair: a prompt is one text"),
    ],
)
def test_what_is_no_prompt_is_said(tmp_path: Path, content: str, columns: dict[str, str] | None, message: str) -> None:
    with pytest.raises(ExegesisError, match=message):
        load(write(tmp_path, "a.csv", content), columns=columns)


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
    data = load("sst2")
    assert (data.id, data.split, data.label_names) == ("sst2", "dev", ("negative", "positive"))
    assert [(example.text, example.label) for example in data.examples] == [
        ('a " fine film', 1),
        ("dull", 0),
    ]


@needs_sst2
def test_sst2_dev_has_its_872_sentences_with_428_negative() -> None:
    data = load("sst2", split="dev")
    assert len(data) == 872
    assert sum(example.label == 0 for example in data.examples) == 428


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


BAD_FILES = {
    "unclosed quote": (
        "a.csv",
        b'text,label\nfine,1\n"never closed,0\nmore,1\n',
        r"a\.csv, line 3: a quotation mark opens",
    ),
    "quote in the middle": ("a.csv", b'text,label\n"one"two,1\n', r"a\.csv, line 2: is not valid CSV"),
    "ragged row": (
        "a.csv",
        b"text,label\nfine,1\na,b,c\n",
        r"a\.csv, line 3: has 3 columns, the header has 2 \(text, label\)",
    ),
    "ragged row after a long cell": (
        "a.csv",
        b'text,label\n"a\nb\nc",1\nx\n',
        r"a\.csv, line 5: has 1 columns",
    ),
    "ragged tsv": ("a.tsv", b"text\tlabel\nfine\n", r"a\.tsv, line 2: has 1 columns"),
    "header twice": ("a.csv", b"text,text\na,b\n", r"a\.csv, line 1: names the column 'text' twice"),
    "no rows": ("a.csv", b"text,label\n", r"a\.csv: has a header but no rows"),
    "empty csv": ("a.csv", b"", r"a\.csv: is empty"),
    "blank csv": ("a.csv", b" \n\n", r"a\.csv: is empty"),
    "empty jsonl": ("a.jsonl", b"\n", r"a\.jsonl: is empty"),
    "empty text": ("a.csv", b"text,label\n ,1\nx,0\n", r"a\.csv, line 2: text: is empty"),
    "latin-1": ("a.csv", "text\nok\ncafé\n".encode("latin-1"), r"a\.csv, line 3: is not UTF-8 \(byte 0xe9\)"),
    "utf-16": ("a.csv", "text\nok\n".encode("utf-16"), r"a\.csv, line 1: holds NUL bytes"),
    "nul byte": ("a.jsonl", b'{"text": "a"}\n{"text": "\0"}', r"a\.jsonl, line 2: holds NUL bytes"),
    "nul character": ("a.jsonl", rb'{"text": "a\u0000b"}', r"a\.jsonl, line 1: text: holds a NUL"),
    "half a character": ("a.jsonl", rb'{"text": "a\ud800b"}', r"a\.jsonl, line 1: holds half a character"),
    "broken json": (
        "a.jsonl",
        b'{"text": "a"}\n{"text": "b"\n',
        r"a\.jsonl, line 2: is not valid JSON \(.*column 13\)",
    ),
    "not an object": ("a.jsonl", b"[1, 2]\n", r"a\.jsonl, line 1: must be an object .* got \[1, 2\]"),
    "deep json": ("a.jsonl", b"[" * 200_000, r"a\.jsonl, line 1: is not valid JSON"),
    "huge number": (
        "a.jsonl",
        b'{"text": "a", "label": ' + b"9" * 5000 + b"}",
        r"a\.jsonl, line 1: is not valid JSON",
    ),
    "nan": ("a.jsonl", b'{"text": "a", "label": NaN}', r"line 1: is not valid JSON \('NaN is not"),
    "endless label": ("a.jsonl", b'{"text": "a", "label": 1e999}', r"line 1: label: must be a finite number"),
    "text a number": ("a.jsonl", b'{"text": 3}\n', r"a\.jsonl, line 1: text: must be a text, got 3"),
    "text missing in one row": (
        "a.jsonl",
        b'{"text": "a"}\n{"txt": "b"}\n',
        r"a\.jsonl, line 2: text: must be a text, got None",
    ),
    "label a truth value": ("a.jsonl", b'{"text": "a", "label": true}\n', r"line 1: label: must be a number"),
    "label a list": (
        "a.jsonl",
        b'{"text": "a", "label": [1]}\n',
        r"line 1: label: must be a number or a name",
    ),
    "span outside": (
        "a.jsonl",
        b'{"text": "abc", "rationale": [[1, 4]]}',
        r"line 1: rationale: \[1, 4\] lies outside its text of 3 characters",
    ),
    "span before": ("a.jsonl", b'{"text": "abc", "rationale": [[-1, 2]]}', r"\[-1, 2\] lies outside"),
    "span reversed": ("a.jsonl", b'{"text": "abc", "rationale": [[2, 1]]}', r"must end after it starts"),
    "span empty": ("a.jsonl", b'{"text": "abc", "rationale": [[1, 1]]}', r"must end after it starts"),
    "spans overlap": (
        "a.jsonl",
        b'{"text": "abcdef", "rationale": [[2, 5], [0, 3]]}',
        r"line 1: rationale: \[0, 3\] and \[2, 5\] overlap",
    ),
    "span of words": ("a.jsonl", b'{"text": "abc", "rationale": ["abc"]}', r"must be two whole numbers"),
    "spans not a list": ("a.jsonl", b'{"text": "abc", "rationale": 3}', r"must be a list of \[start, end\]"),
    "span cell broken": (
        "a.csv",
        b"text,rationale\nabc,[[0\n",
        r"a\.csv, line 2: rationale: is not valid JSON",
    ),
    "pair span without a pair": (
        "a.jsonl",
        b'{"text": "a", "rationale_pair": [[0, 1]]}',
        r"marks a text_pair",
    ),
    "not parquet": ("a.parquet", b"PAR1 no", r"a\.parquet: is not a readable parquet file"),
    "unknown kind": ("a.xlsx", b"PK", r"a\.xlsx must end in \.csv, \.tsv, \.jsonl"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_is_one_clear_line(tmp_path: Path, case: str) -> None:
    name, content, message = BAD_FILES[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ExegesisError, match=message) as caught:
        load(tmp_path / name)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "stars.csv"
    path.write_text("review,stars\nGood,5\nBad,1\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (None, r"stars\.csv: has no column 'text' for text\. Its columns: review, stars\."),
        ({"text": "body"}, r"has no column 'body' for text\. Its columns: review, stars\."),
        ({"text": "review", "label": "star"}, r"has no column 'star' for label"),
        ({"text": "review", "label": "review"}, r"columns: 'review' is mapped to text and label\. Map each"),
        ({"text": "review", "lable": "stars"}, r"columns: unknown name 'lable'\. Did you mean 'label'\?"),
        ({"text": ""}, r"columns: text must be the name of a column, got ''"),
    ],
)
def test_a_wrong_mapping_lists_what_there_is(table: Path, columns: dict[str, str] | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load(table, columns=columns)


def test_a_label_outside_the_given_names_tells_its_line(table: Path) -> None:
    with pytest.raises(ExegesisError, match=r"stars\.csv, line 2: label: 5 is not among the label names 1, 2, 3"):
        load(table, columns={"text": "review", "label": "stars"}, label_names=["1", "2", "3"])


def test_label_names_must_differ(table: Path) -> None:
    with pytest.raises(UsageError, match=r"label_names: must be a list of different names"):
        load(table, columns={"text": "review"}, label_names=["a", "a"])


def test_free_text_as_label_is_refused(tmp_path: Path) -> None:
    rows = "".join(json.dumps({"text": "a", "label": f"sentence {i}"}) + "\n" for i in range(1_001))
    (tmp_path / "a.jsonl").write_text(rows, encoding="utf-8")
    with pytest.raises(ExegesisError, match=r"1,001 different values such as 'sentence 0' are too many classes"):
        load(tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("revews", r"dataset: unknown name 'revews'\. Did you mean 'reviews'\?"),
        ("nobody/nothing", r"For the hub write hub:nobody/nothing\."),
        ("gone.csv", r"dataset: there is no file 'gone\.csv'"),
        ("hub:alone", r"a hub data set is hub:owner/name"),
        ("", r"dataset: unknown name ''"),
        ("x" * 5_000, r"dataset: 'xxx.* cannot be read \(File name too long\)"),
        ("nul\0byte", r"dataset: unknown name"),
    ],
)
def test_an_unknown_data_set_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ExegesisError, match=message):
        load(name)


@pytest.mark.parametrize("name", ["n" * 5000, "n" * 5000 + ".csv", "hub:" + "n" * 5000, "hub:a/" + "n" * 5000])
def test_a_name_that_no_file_can_have_is_one_short_sentence(name: str) -> None:
    with pytest.raises(ExegesisError, match=r"^dataset: .*'\D{20,80}…\D{20,80}'") as caught:
        load(name)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("limit", [0, -1, True])
def test_a_limit_must_be_a_whole_number(limit: object) -> None:
    with pytest.raises(UsageError, match=r"limit: must be a whole number of 1 or more"):
        load("reviews", limit=limit)  # type: ignore[arg-type]


def test_splits_and_mappings_that_do_not_exist(table: Path) -> None:
    with pytest.raises(UsageError, match=r"split: stars\.csv is one file without splits, got 'dev'"):
        load(table, split="dev")
    with pytest.raises(UsageError, match=r"split: unknown name 'tests'\. Did you mean 'test'"):
        load("sst2", split="tests")
    with pytest.raises(UsageError, match=r"reviews has its own columns"):
        load("reviews", columns={"text": "body"})


def test_the_error_of_an_index_outside_names_the_range() -> None:
    with pytest.raises(UsageError, match=r"index: must be 0 to 4 in reviews, got 5"):
        load("reviews", limit=5)[5]


def test_a_formula_is_a_text_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('text,label\n"=HYPERLINK(""x"")",1\n@SUM(A1),0\n', encoding="utf-8")
    assert [e.text for e in load(tmp_path / "a.csv").examples] == ['=HYPERLINK("x")', "@SUM(A1)"]


def test_spans_may_touch() -> None:
    assert LabeledExample("abcd", rationale=((2, 4), (0, 2))).rationale == ((0, 2), (2, 4))
