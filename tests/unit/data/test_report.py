"""The hand-written reviews and pairs hold what their cards promise, and the reports are what their scripts write."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from engine.data import build_nli, build_reviews, nli_report, report
from engine.data.datasets import load
from engine.data.registry import data_root, read_card
from engine.data.report import (
    find_listed,
    find_shared_ngrams,
    find_word_spans,
    iterate_ngrams,
    marked_share,
    read_records,
    split_words,
)
from engine.errors import ExegesisError

FOLDER = Path(report.__file__).parent
REVIEWS = report.read_records()
REVIEW_STATISTICS = report.measure_reviews(REVIEWS, None)


def is_boundary(text: str, position: int) -> bool:
    """Whether no word runs across the position."""
    return not text[position - 1 : position].isalnum() or not text[position : position + 1].isalnum()


def test_the_reviews_are_what_the_sources_build() -> None:
    assert (FOLDER / "reviews.jsonl").read_text(encoding="utf-8") == build_reviews.to_jsonl(
        build_reviews.read_reviews()
    )


def test_the_committed_report_on_reviews_is_what_the_script_writes() -> None:
    committed = (FOLDER / "reviews_report.md").read_text(encoding="utf-8").splitlines()
    rendered = report.render_reviews(REVIEW_STATISTICS).splitlines()
    differing = [(ours, theirs) for ours, theirs in zip(rendered, committed, strict=True) if ours != theirs]
    # Only the line on SST-2 depends on what lies on this machine, and it must say that nothing is shared.
    assert [ours for ours, _ in differing] == [report.sst2_line(REVIEW_STATISTICS)]
    assert differing[0][1] == report.sst2_line(replace(REVIEW_STATISTICS, shared_sst2=0, sst2_sentences=70_042))


def test_enough_reviews_of_every_kind() -> None:
    assert REVIEW_STATISTICS.reviews >= 320
    assert REVIEW_STATISTICS.negation >= 75
    assert REVIEW_STATISTICS.contrast >= 50
    assert REVIEW_STATISTICS.ironic + REVIEW_STATISTICS.mixed >= 40
    assert REVIEW_STATISTICS.unsupported == ()


def test_balanced_over_all_and_in_each_domain() -> None:
    assert set(REVIEW_STATISTICS.by_domain) == set(build_reviews.REVIEW_DOMAINS)
    assert all(negative == positive >= 30 for negative, positive in REVIEW_STATISTICS.by_domain.values())


def test_any_beginning_of_the_file_is_about_as_balanced_as_the_whole() -> None:
    for size in (10, 50, 100, 200):
        first = REVIEWS[:size]
        assert abs(sum(record["label"] for record in first) - size / 2) <= 2.5
        assert max(Counter(record["domain"] for record in first).values()) <= size / 5 + 1


def test_lengths_run_from_4_to_60_words_and_fill_every_bin() -> None:
    assert min(REVIEW_STATISTICS.lengths) >= 4
    assert max(REVIEW_STATISTICS.lengths) <= 60
    counts = [sum(low <= length <= high for length in REVIEW_STATISTICS.lengths) for low, high in report.LENGTH_BINS]
    assert min(counts) >= 3
    assert max(counts) <= REVIEW_STATISTICS.reviews / 4
    assert sum(counts) == REVIEW_STATISTICS.reviews


def test_each_rationale_is_one_to_four_spans_of_whole_words() -> None:
    for record in REVIEWS:
        text, spans = record["text"], record["rationale"]
        assert 1 <= len(spans) <= 4, text
        assert all(is_boundary(text, edge) for span in spans for edge in span), text
        assert all(text[start:end] == text[start:end].strip() for start, end in spans), text
        assert 0 < report.marked_share(text, spans) < 0.75, text


def test_the_texts_of_reviews_are_clean_and_differ() -> None:
    texts = [record["text"] for record in REVIEWS]
    assert len(set(texts)) == len(texts)
    for text in texts:
        assert text == " ".join(text.split())
        assert text[0].isupper() or not text[0].isalpha()
        assert text[-1] in '.!?"'
        assert "[[" not in text
        assert "|" not in text


def test_no_two_reviews_share_six_words() -> None:
    assert find_shared_ngrams([record["text"]] for record in REVIEWS) == set()


def test_no_review_shares_six_words_with_sst2() -> None:
    sentences = report.sst2_sentences(data_root() / "sst2")
    if sentences is None:
        pytest.skip("needs the local SST-2 files (EXEGESIS_DATA/sst2)")
    assert len(sentences) == 70_042
    assert report.count_shared([record["text"] for record in REVIEWS], sentences) == 0


def test_written_reviews_are_clean_and_share_no_six_words_with_reviews() -> None:
    written = load("reviews-written").examples
    texts = [example.text for example in written]
    assert len(set(texts)) == len(texts)
    assert all(text == text.strip() for text in texts)
    assert {example.extra["domain"] for example in written} == {record["domain"] for record in REVIEWS}
    assert 0.4 < sum(example.label == 1 for example in written) / len(written) < 0.6
    assert find_shared_ngrams([texts, [record["text"] for record in REVIEWS]]) == set()


def test_without_sst2_the_report_says_that_it_was_not_checked(tmp_path: Path) -> None:
    assert report.sst2_sentences(tmp_path) is None
    assert "not checked" in report.sst2_line(REVIEW_STATISTICS)


def test_words_and_lists_see_apostrophes_hyphens_and_phrases() -> None:
    assert split_words("Don’t say “well-made”, it's 9 o'clock.") == [
        "don't",
        "say",
        "well-made",
        "it's",
        "9",
        "o'clock",
    ]
    assert [("Ça va"[s:e]) for s, e in find_word_spans("Ça va")] == ["Ça", "va"]
    assert find_listed("Nothing works, even so I stay.", ("not", "nothing", "even so")) == ["nothing", "even so"]


def test_shared_runs_are_found_through_case_punctuation_and_tokenisation() -> None:
    tokenised, running = "i do n't think it 's a well made film", "Honestly, I don't think it's a well-made film!"
    assert len(set(iterate_ngrams(tokenised)) & set(iterate_ngrams(running))) == 3
    assert report.count_shared([running], [tokenised]) == 3
    assert find_shared_ngrams([["one two three"], ["two three four"]], 2) == {("two", "three")}


def test_marks_become_spans_and_unmatched_marks_are_reported() -> None:
    assert build_reviews.unmark("a [[b c]], [[d]]") == ("a b c, d", [[2, 5], [7, 8]])
    for broken in ("a [[b", "a]] b", "[[a [[b]]"):
        with pytest.raises(ExegesisError, match="brackets do not match"):
            build_reviews.unmark(broken)


@pytest.mark.parametrize("line", ["2|plain|Text.", "1|sarcastic|Text."])
def test_a_source_line_with_an_unknown_label_or_trait_is_reported(line: str) -> None:
    with pytest.raises(ExegesisError, match="label or traits not allowed"):
        build_reviews.parse_review(line, "films")


PAIRS = read_records(FOLDER / "nli.jsonl")
PAIR_STATISTICS = nli_report.measure_nli(PAIRS, None)


def test_the_pairs_are_what_the_source_builds() -> None:
    assert (FOLDER / "nli.jsonl").read_text(encoding="utf-8") == build_reviews.to_jsonl(build_nli.read_pairs())


def test_the_committed_report_on_pairs_is_what_the_script_writes() -> None:
    committed = (FOLDER / "nli_report.md").read_text(encoding="utf-8").splitlines()
    rendered = nli_report.render_nli(PAIR_STATISTICS).splitlines()
    differing = [(ours, theirs) for ours, theirs in zip(rendered, committed, strict=True) if ours != theirs]
    # Only the line on SNLI and SICK depends on what lies on this machine, and it must say that nothing is shared.
    assert [ours for ours, _ in differing] == [nli_report.nli_line(PAIR_STATISTICS)]
    assert differing[0][1] == nli_report.nli_line(replace(PAIR_STATISTICS, shared=0, sentences=49_332))


def test_no_pair_shares_six_words_with_snli_or_sick() -> None:
    sentences = nli_report.nli_sentences(data_root() / "nli")
    if sentences is None:
        pytest.skip("needs the local SNLI and SICK files (EXEGESIS_DATA/nli)")
    assert len(sentences) == 49_332
    assert nli_report.measure_nli(PAIRS, sentences).shared == 0


def test_more_than_two_hundred_pairs_in_which_each_premise_has_one_of_each_label() -> None:
    data = load("nli")
    assert len(data) == PAIR_STATISTICS.pairs >= 210
    assert data.label_names == ("entailment", "neutral", "contradiction")
    assert data.pairs
    for at in range(0, len(data), 3):
        three = data.examples[at : at + 3]
        assert [example.label for example in three] == [0, 1, 2]
        assert len({example.text for example in three}) == 1
        assert len({example.text_pair for example in three}) == 3
    assert read_card("nli").size.startswith(f"{PAIR_STATISTICS.pairs} pairs: {PAIR_STATISTICS.premises} premises")


def test_many_kinds_of_understanding_are_needed_and_the_frequent_ones_for_every_label() -> None:
    kinds = Counter(record["phenomenon"] for record in PAIRS)
    assert set(kinds) == set(build_nli.PHENOMENA)
    assert len(kinds) >= 12
    for kind in ("quantity", "time", "comparison", "roles", "world", "belief"):
        assert min(PAIR_STATISTICS.by_phenomenon[kind]) >= 3, kind


def test_both_sides_are_marked_in_whole_words() -> None:
    for example in load("nli").examples:
        for text, spans in ((example.text, example.rationale), (str(example.text_pair), example.rationale_pair)):
            assert 1 <= len(spans) <= 4
            for start, end in spans:
                assert text[start:end] == text[start:end].strip()
                assert not text[start - 1 : start].isalnum() or start == 0
                assert not text[end : end + 1].isalnum()
        assert marked_share(example.text, example.rationale) < 0.8


def test_the_texts_of_pairs_are_clean() -> None:
    for record in PAIRS:
        for text in (record["text"], record["text_pair"]):
            assert text == " ".join(text.split())
            assert text[0].isupper()
            assert text.endswith(".")
            assert not set("[]|/") & set(text)


def test_texts_of_two_premises_share_no_run_of_six_words() -> None:
    assert PAIR_STATISTICS.shared_within == 0
    pair = {"text": "one two three four five six", "text_pair": "one two three four five six seven"}
    other = {"text": "zero one two three four five six", "text_pair": "eight"}
    assert nli_report.count_shared_between([pair]) == 0
    assert nli_report.count_shared_between([pair, other]) == 1


def test_the_hypothesis_alone_tells_little() -> None:
    assert PAIR_STATISTICS.accuracy < 0.55
    leaking = [{**r, "text_pair": f"{r['text_pair']} label{r['label']}"} for r in PAIRS]
    assert nli_report.measure_hypotheses(leaking) == 1


def test_without_snli_the_report_says_that_it_was_not_checked(tmp_path: Path) -> None:
    assert nli_report.nli_sentences(tmp_path) is None
    assert "not checked" in nli_report.nli_line(PAIR_STATISTICS)


def test_a_line_of_the_source_by_hand() -> None:
    pair = build_nli.parse_pair("No cat sat, no cat ran.", "c|negation|sat / ran|A [[cat]] [[did]].")
    assert pair["text_pair"] == "A cat did."
    assert (pair["rationale"], pair["rationale_pair"]) == ([[7, 10], [19, 22]], [[2, 5], [6, 9]])
    assert (pair["label"], pair["phenomenon"]) == (2, "negation")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x|negation|sat|A.", "label or phenomenon not allowed"),
        ("c|tone|sat|A.", "label or phenomenon not allowed"),
        ("c|negation|cat|A.", "'cat' must occur exactly once in .*, got 2"),
        ("c|negation|at|A.", "'at' must occur exactly once in .*, got 0"),
        ("c|negation|sat|A [[b.", "brackets do not match"),
    ],
)
def test_what_is_wrong_in_the_source_is_reported(line: str, message: str) -> None:
    with pytest.raises(ExegesisError, match=message):
        build_nli.parse_pair("No cat sat, no cat ran.", line)
