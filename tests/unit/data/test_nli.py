"""The hand-written pairs hold what their card and report promise, and the report is what its script writes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from engine.data import build_nli, build_reviews, nli_report
from engine.data.datasets import load
from engine.data.registry import data_root, read_card
from engine.data.released import find_snli_sick
from engine.data.report import marked_share, read_records
from engine.errors import ExegesisError

FOLDER = Path(nli_report.__file__).parent
RECORDS = read_records(FOLDER / "nli.jsonl")
STATS = nli_report.measure_nli(RECORDS, None)


def test_the_jsonl_is_what_the_source_builds() -> None:
    assert (FOLDER / "nli.jsonl").read_text(encoding="utf-8") == build_reviews.to_jsonl(build_nli.read_pairs())


def test_the_committed_report_is_what_the_script_writes() -> None:
    committed = (FOLDER / "nli_report.md").read_text(encoding="utf-8").splitlines()
    rendered = nli_report.render_nli(STATS).splitlines()
    differing = [(ours, theirs) for ours, theirs in zip(rendered, committed, strict=True) if ours != theirs]
    # Only the line on SNLI and SICK depends on what lies on this machine, and it must say that nothing is shared.
    assert [ours for ours, _ in differing] == [nli_report.nli_line(STATS)]
    assert differing[0][1] == nli_report.nli_line(replace(STATS, shared=0, sentences=49_332))


def test_no_pair_shares_six_words_with_snli_or_sick() -> None:
    sentences = nli_report.nli_sentences(data_root() / "nli")
    if sentences is None:
        pytest.skip("needs the local SNLI and SICK files (EXEGESIS_DATA/nli)")
    assert len(sentences) == 49_332
    assert nli_report.measure_nli(RECORDS, sentences).shared == 0


def test_more_than_two_hundred_pairs_in_which_each_premise_has_one_of_each_label() -> None:
    data = load("nli")
    assert len(data) == STATS.pairs >= 210
    assert data.label_names == ("entailment", "neutral", "contradiction")
    assert data.pairs
    for at in range(0, len(data), 3):
        three = data.examples[at : at + 3]
        assert [example.label for example in three] == [0, 1, 2]
        assert len({example.text for example in three}) == 1
        assert len({example.text_pair for example in three}) == 3
    assert read_card("nli").size.startswith(f"{STATS.pairs} pairs: {STATS.premises} premises")


def test_many_kinds_of_understanding_are_needed_and_the_frequent_ones_for_every_label() -> None:
    kinds = Counter(record["phenomenon"] for record in RECORDS)
    assert set(kinds) == set(build_nli.PHENOMENA)
    assert len(kinds) >= 12
    for kind in ("quantity", "time", "comparison", "roles", "world", "belief"):
        assert min(STATS.by_phenomenon[kind]) >= 3, kind


def test_both_sides_are_marked_in_whole_words() -> None:
    for example in load("nli").examples:
        for text, spans in ((example.text, example.rationale), (str(example.text_pair), example.rationale_pair)):
            assert 1 <= len(spans) <= 4
            for start, end in spans:
                assert text[start:end] == text[start:end].strip()
                assert not text[start - 1 : start].isalnum() or start == 0
                assert not text[end : end + 1].isalnum()
        assert marked_share(example.text, example.rationale) < 0.8


def test_the_texts_are_clean() -> None:
    for record in RECORDS:
        for text in (record["text"], record["text_pair"]):
            assert text == " ".join(text.split())
            assert text[0].isupper()
            assert text.endswith(".")
            assert not set("[]|/") & set(text)


def test_texts_of_two_premises_share_no_run_of_six_words() -> None:
    assert STATS.shared_within == 0
    pair = {"text": "one two three four five six", "text_pair": "one two three four five six seven"}
    other = {"text": "zero one two three four five six", "text_pair": "eight"}
    assert nli_report.count_shared_between([pair]) == 0
    assert nli_report.count_shared_between([pair, other]) == 1


def test_the_hypothesis_alone_tells_little() -> None:
    assert STATS.accuracy < 0.55
    told = [{**r, "text_pair": f"{r['text_pair']} label{r['label']}"} for r in RECORDS]
    assert nli_report.measure_hypotheses(told) == 1


def test_without_snli_the_report_says_that_it_was_not_checked(tmp_path: Path) -> None:
    assert nli_report.nli_sentences(tmp_path) is None
    assert "not checked" in nli_report.nli_line(STATS)


def test_a_line_of_the_source_by_hand() -> None:
    found = build_nli.parse_pair("No cat sat, no cat ran.", "c|negation|sat / ran|A [[cat]] [[did]].")
    assert found["text_pair"] == "A cat did."
    assert (found["rationale"], found["rationale_pair"]) == ([[7, 10], [19, 22]], [[2, 5], [6, 9]])
    assert (found["label"], found["phenomenon"]) == (2, "negation")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("x|negation|sat|A.", "label or phenomenon not allowed"),
        ("c|tone|sat|A.", "label or phenomenon not allowed"),
        ("c|negation|cat|A.", "'cat' must stand exactly once in .*, got 2"),
        ("c|negation|at|A.", "'at' must stand exactly once in .*, got 0"),
        ("c|negation|sat|A [[b.", "brackets do not match"),
    ],
)
def test_what_is_wrong_in_the_source_is_told(line: str, said: str) -> None:
    with pytest.raises(ExegesisError, match=said):
        build_nli.parse_pair("No cat sat, no cat ran.", line)


def test_a_folder_without_a_file_of_the_training_split_is_not_the_set(tmp_path: Path) -> None:
    for name in ("snli_dev.tsv", "snli_test.tsv"):
        (tmp_path / name).touch()
    assert find_snli_sick(tmp_path) is None
    (tmp_path / "sick_train.tsv").touch()
    found = find_snli_sick(tmp_path)
    assert found is not None
    assert sorted(found.splits) == ["train", "validation"]
