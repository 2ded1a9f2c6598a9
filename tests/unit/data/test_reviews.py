"""The reviews hold what their card and report promise, and the report is what its script writes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from engine.data import build_reviews, report
from engine.data.registry import data_root
from engine.data.report import find_listed, find_shared_ngrams, find_word_spans, iterate_ngrams, split_words
from engine.errors import ExegesisError

FOLDER = Path(report.__file__).parent
RECORDS = report.read_records()
STATS = report.measure_reviews(RECORDS, None)


def is_boundary(text: str, position: int) -> bool:
    """Whether no word runs across the position."""
    return not text[position - 1 : position].isalnum() or not text[position : position + 1].isalnum()


def test_the_jsonl_is_what_the_sources_build() -> None:
    assert (FOLDER / "reviews.jsonl").read_text(encoding="utf-8") == build_reviews.to_jsonl(
        build_reviews.read_reviews()
    )


def test_the_committed_report_is_what_the_script_writes() -> None:
    committed = (FOLDER / "reviews_report.md").read_text(encoding="utf-8").splitlines()
    rendered = report.render_reviews(STATS).splitlines()
    differing = [(ours, theirs) for ours, theirs in zip(rendered, committed, strict=True) if ours != theirs]
    # Only the line on SST-2 depends on what lies on this machine, and it must say that nothing is shared.
    assert [ours for ours, _ in differing] == [report.sst2_line(STATS)]
    assert differing[0][1] == report.sst2_line(replace(STATS, shared_sst2=0, sst2_sentences=70_042))


def test_enough_reviews_of_every_kind() -> None:
    assert STATS.reviews >= 320
    assert STATS.negation >= 75
    assert STATS.contrast >= 50
    assert STATS.ironic + STATS.mixed >= 40
    assert STATS.unsupported == ()


def test_balanced_over_all_and_in_each_domain() -> None:
    assert set(STATS.by_domain) == set(build_reviews.REVIEW_DOMAINS)
    assert all(negative == positive >= 30 for negative, positive in STATS.by_domain.values())


def test_any_beginning_of_the_file_is_about_as_balanced_as_the_whole() -> None:
    for size in (10, 50, 100, 200):
        first = RECORDS[:size]
        assert abs(sum(record["label"] for record in first) - size / 2) <= 2.5
        assert max(Counter(record["domain"] for record in first).values()) <= size / 5 + 1


def test_lengths_run_from_4_to_60_words_and_fill_every_bin() -> None:
    assert min(STATS.lengths) >= 4
    assert max(STATS.lengths) <= 60
    counts = [sum(low <= length <= high for length in STATS.lengths) for low, high in report.LENGTH_BINS]
    assert min(counts) >= 3
    assert max(counts) <= STATS.reviews / 4
    assert sum(counts) == STATS.reviews


def test_each_rationale_is_one_to_four_spans_of_whole_words() -> None:
    for record in RECORDS:
        text, spans = record["text"], record["rationale"]
        assert 1 <= len(spans) <= 4, text
        assert all(is_boundary(text, edge) for span in spans for edge in span), text
        assert all(text[start:end] == text[start:end].strip() for start, end in spans), text
        assert 0 < report.marked_share(text, spans) < 0.75, text


def test_the_texts_are_clean_and_differ() -> None:
    texts = [record["text"] for record in RECORDS]
    assert len(set(texts)) == len(texts)
    for text in texts:
        assert text == " ".join(text.split())
        assert text[0].isupper() or not text[0].isalpha()
        assert text[-1] in '.!?"'
        assert "[[" not in text
        assert "|" not in text


def test_no_two_reviews_share_six_words() -> None:
    assert find_shared_ngrams([record["text"]] for record in RECORDS) == set()


def test_no_review_shares_six_words_with_sst2() -> None:
    sentences = report.sst2_sentences(data_root() / "sst2")
    if sentences is None:
        pytest.skip("needs the local SST-2 files (EXEGESIS_DATA/sst2)")
    assert len(sentences) == 70_042
    assert report.count_shared([record["text"] for record in RECORDS], sentences) == 0


def test_without_sst2_the_report_says_that_it_was_not_checked(tmp_path: Path) -> None:
    assert report.sst2_sentences(tmp_path) is None
    assert "not checked" in report.sst2_line(STATS)


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


def test_marks_become_spans_and_unmatched_marks_are_told() -> None:
    assert build_reviews.unmark("a [[b c]], [[d]]") == ("a b c, d", [[2, 5], [7, 8]])
    for broken in ("a [[b", "a]] b", "[[a [[b]]"):
        with pytest.raises(ExegesisError, match="brackets do not match"):
            build_reviews.unmark(broken)


@pytest.mark.parametrize("line", ["2|plain|Text.", "1|sarcastic|Text."])
def test_a_source_line_with_an_unknown_label_or_trait_is_told(line: str) -> None:
    with pytest.raises(ExegesisError, match="label or traits not allowed"):
        build_reviews.parse_review(line, "films")
