"""Bad input: each case is one clear line that names the place and what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.data.datasets import load
from engine.data.examples import LabeledExample
from engine.errors import ExegesisError, UsageError

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
    with pytest.raises(ExegesisError, match=r"1,001 different values such as 'sentence 0' are no classes"):
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
    with pytest.raises(ExegesisError, match=r"^dataset: .*'\D{40,80}…") as caught:
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


def test_an_index_outside_is_told_its_range() -> None:
    with pytest.raises(UsageError, match=r"index: must be 0 to 4 in reviews, got 5"):
        load("reviews", limit=5)[5]


def test_a_formula_is_a_text_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('text,label\n"=HYPERLINK(""x"")",1\n@SUM(A1),0\n', encoding="utf-8")
    assert [e.text for e in load(tmp_path / "a.csv").examples] == ['=HYPERLINK("x")', "@SUM(A1)"]


def test_spans_may_touch() -> None:
    assert LabeledExample("abcd", rationale=((2, 4), (0, 2))).rationale == ((0, 2), (2, 4))
