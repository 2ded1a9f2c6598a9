"""Tokens and words by character offsets: what belongs together, and that no score is lost.

Scores of words are sums of their tokens' scores, but an order of their own where the order is chance.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.method_row import token_map
from engine.errors import UsageError
from engine.explain import explain
from engine.metrics.faithfulness import removal_curves
from engine.registry import explainer
from engine.request import Example, Request
from engine.result import Explanation, Token
from engine.word_units import BREAK, SPACE, TAB, UNITS, split_words, unit_scores, units, units_of
from tests.explaining import checkpoint, classifier
from tests.oracles.curves import masked_probability
from tests.unit.components.making import explanation

SPLIT = Example("film a bad")
PIECES = r"fil|m|a|bad"
DRAWS = 3000
WORDS = 3


def pieces(text: str, pattern: str) -> list[Token]:
    return [Token(m[0], m.start(), m.end(), 0, False) for m in re.finditer(pattern, text)]


def made(text: str, tokens: list[Token], kind: str) -> list[tuple[str, float]]:
    scores = np.arange(1.0, len(tokens) + 1)
    return [(unit.text, unit.score) for unit in units(tokens, scores, Example(text), kind)]


def test_pieces_of_a_word_are_summed_into_it() -> None:
    text = "unbelievably good, really"
    tokens = pieces(text, r"un|believ|ably|good|,|really")
    assert made(text, tokens, "word") == [("unbelievably", 6), ("good,", 9), ("really", 6)]
    assert [text for text, _ in made(text, tokens, "token")] == ["un", "believ", "ably", "good", ",", "really"]


def test_a_piece_knows_its_word() -> None:
    """Punctuation around a word, a whole word and a token of punctuation are no pieces."""
    text, piece = "(inventive), a film!", r"\(|in|vent|ive|\),|a|film|!"
    words = ("", "inventive", "inventive", "inventive", "", "", "", "")
    assert split_words(explanation(Example(text), pieces=piece), Example(text)) == words
    assert split_words(explanation(Example("電影"), pieces="."), Example("電影")) == ("", "")


def test_the_same_word_twice_is_two_units() -> None:
    assert made("no no", pieces("no no", r"no"), "word") == [("no", 1), ("no", 2)]


def test_a_run_without_spaces_stays_tokens() -> None:
    text = "这部电影 is great"
    assert made(text, pieces(text, r"这部|电影|is|gre|at"), "word") == [
        ("这部", 1), ("电影", 2), ("is", 3), ("great", 9),
    ]  # fmt: skip


def test_korean_has_words() -> None:
    assert made("한국어 영화", pieces("한국어 영화", r"한국|어|영화"), "word") == [("한국어", 3), ("영화", 3)]


@pytest.mark.parametrize("kind", UNITS)
def test_bytes_of_one_character_are_one_unit(kind: str) -> None:
    tokens = [Token("é", 0, 1, 0, False), Token("é", 0, 1, 0, False), Token("x", 2, 3, 0, False)]
    one, other = made("é x", tokens, kind)[0], [("é", 3), ("x", 3)]
    assert one in (other[0], ("é x", 6)), "a sentence and a turn hold both characters"


@pytest.mark.parametrize(
    "character",
    ["👨\u200d👩\u200d👧", "👍🏽", "🇩🇪", "e\u0301", "❤\ufe0f", "कि"],
    ids=lambda c: c.encode("unicode-escape"),
)
def test_a_character_of_several_code_points_is_not_cut(character: str) -> None:
    text = f"a {character} b"
    assert [t for t, _ in made(text, pieces(text, r"\S"), "token")] == ["a", character, "b"]


def test_neighboring_flags_are_two_units() -> None:
    assert [t for t, _ in made("🇩🇪🇫🇷", pieces("🇩🇪🇫🇷", r"."), "token")] == ["🇩🇪", "🇫🇷"]


def test_a_token_without_characters_is_a_space_or_joins_its_word() -> None:
    tokens = [Token("▁", 0, 0, 0, False), Token("good", 0, 4, 0, False)]
    assert made("good", tokens, "token") == [(SPACE, 1), ("good", 2)]
    assert made("good", tokens, "word") == [("good", 3)]


@pytest.mark.parametrize(
    ("text", "at", "mark"),
    [("a  b", 2, SPACE), ("a\n b", 2, BREAK), ("a\r\nb", 3, BREAK), ("a \tb", 3, TAB), ("\nb", 0, BREAK)],
)
@pytest.mark.parametrize("name", ["Ġ", "Ċ", "▁", "<unk>"])
def test_white_space_is_named_by_a_mark_and_never_by_the_tokenizer(text: str, at: int, mark: str, name: str) -> None:
    [unit] = units([Token(name, at, at, 0, False)], np.ones(1), Example(text))
    assert (unit.text, unit.blank) == (mark, True)


def test_a_span_of_white_space_is_named_by_it() -> None:
    [unit] = units([Token("\n ", 1, 3, 0, False)], np.ones(1), Example("a\n b"))
    assert (unit.text, unit.blank) == (BREAK, True)


def test_special_tokens_and_texts_of_a_pair_stay_apart() -> None:
    tokens = [
        Token("[CLS]", 0, 0, -1, True), Token("a", 0, 1, 0, False), Token("[SEP]", 0, 0, -1, True),
        Token("a", 0, 1, 1, False), Token("b", 1, 2, 1, False), Token("[SEP]", 0, 0, -1, True),
    ]  # fmt: skip
    found = units(tokens, np.arange(6.0), Example("a", "ab"), "word")
    assert [(u.text, u.segment, u.special, u.score) for u in found] == [
        ("[CLS]", -1, True, 0), ("a", 0, False, 1), ("[SEP]", -1, True, 2), ("ab", 1, False, 7), ("[SEP]", -1, True, 5),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Dr. Smith met J. K. Rowling. She said “Stop!” and left.", ["Dr. Smith met J. K. Rowling.",
                                                                    "She said “Stop!” and left."]),
        ("a film . it is great . yes", ["a film .", "it is great .", "yes"]),
        ("One.\nTwo\n\nThree three.  Four", ["One.", "Two", "Three three.", "Four"]),
        ("他来了。她走了！好", ["他来了。", "她走了！", "好"]),
        ("It costs 3.5 dollars, e.g. Fine", ["It costs 3.5 dollars, e.g. Fine"]),
        ("Why? Because … he can.", ["Why?", "Because … he can."]),
    ],
)  # fmt: skip
def test_sentences_end_with_their_marks_or_their_lines(text: str, sentences: list[str]) -> None:
    tokens = pieces(text, r"\w+|[^\w\s]")
    # A tokenizer of bytes has tokens of white space alone, whose stripped offsets stand where it ends.
    lines = [Token("Ċ", m.end(), m.end(), 0, False) for m in re.finditer(r"\n", text)]
    mixed = sorted([*tokens, *lines], key=lambda token: (token.start, token.end))
    assert [name for name, _ in made(text, mixed, "sentence")] == sentences
    assert sum(score for _, score in made(text, mixed, "sentence")) == sum(range(1, len(mixed) + 1))


def test_a_turn_is_the_text_between_two_special_tokens() -> None:
    chat = Example("Hi there. Go on!")
    special = [Token(name, 0, 0, -1, True) for name in ("<user>", "<assistant>")]
    tokens = [special[0], *pieces(chat.text, r"\w+|[^\w\s]"), special[1]]
    found = units(tokens, np.ones(len(tokens)), chat, "turn")
    assert [(unit.text, unit.special, unit.score) for unit in found] == [
        ("<user>", True, 1), ("Hi there. Go on!", False, 6), ("<assistant>", True, 1),
    ]  # fmt: skip


def test_an_unknown_unit_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"unit: unknown name 'phrase'.*sentence, token, turn, word"):
        units([], np.empty(0), Example(""), "phrase")


@given(st.text(alphabet="ab é\u0301\u200d👍🏽这\n ש", max_size=12), st.data(), st.sampled_from(UNITS))
def test_the_total_is_kept_and_every_token_is_in_one_unit(text: str, data: st.DataObject, kind: str) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)))) | {0, len(text)})
    spans = [(a, b) for a, b in pairwise(cuts) if not text[a:b].isspace()]
    tokens = [Token(text[a:b], a, b, 0, False) for a, b in spans]
    scores = np.array([(-1) ** i * 2.0**i for i in range(len(tokens))])
    found = units(tokens, scores, Example(text), kind)
    assert sum(unit.score for unit in found) == scores.sum()
    assert [p for unit in found for p in unit.tokens] == list(range(len(tokens)))
    assert all(a.end <= b.start for a, b in pairwise(found))


def by_chance(seed: int) -> Explanation:
    """One word of two tokens, two of one, in a random order of tokens as the baseline draws it."""
    order = np.random.default_rng(seed).permutation(4) + 1.0
    return explanation(SPLIT, order.tolist(), pieces=PIECES, method="random")


@pytest.fixture(scope="module")
def drawn() -> list[tuple[float, ...]]:
    """The scores of the three words, drawn so often."""
    return [tuple(unit_scores(by_chance(seed), SPLIT, "word").tolist()) for seed in range(DRAWS)]


def test_a_word_of_two_tokens_is_first_as_often_as_one_of_one(drawn: list[tuple[float, ...]]) -> None:
    firsts = Counter(scores.index(max(scores)) for scores in drawn)
    share = 1 / WORDS
    four_sigma = 4 * np.sqrt(DRAWS * share * (1 - share))
    assert sum(firsts.values()) == DRAWS
    for word in range(WORDS):
        assert firsts[word] == pytest.approx(DRAWS * share, abs=four_sigma), word


def test_every_order_of_the_words_comes_equally_often(drawn: list[tuple[float, ...]]) -> None:
    orders = Counter(drawn)
    assert len(orders) == 6
    four_sigma = 4 * np.sqrt(DRAWS / 6 * 5 / 6)
    assert all(number == pytest.approx(DRAWS / 6, abs=four_sigma) for number in orders.values())


def test_tokens_keep_their_scores_and_other_methods_their_sums() -> None:
    chance = by_chance(1)
    np.testing.assert_array_equal(unit_scores(chance, SPLIT), chance.scores[1:5])
    assert [unit.score for unit in units_of(chance, SPLIT)] == chance.scores.tolist()
    made = explanation(SPLIT, [1.0, 2.0, 4.0, -1.0], pieces=PIECES, method="occlusion")
    assert unit_scores(made, SPLIT, "word").tolist() == [3.0, 4.0, -1.0]


def test_map_scores_and_curve_follow_one_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path))
    example = Example("unbelievably warm and funny")
    requests = [Request(str(checkpoint("bert", 2)), "random", example, seed=seed) for seed in range(4)]
    made = [explain(request) for request in requests]
    scores = [unit_scores(one, example, "word") for one in made]
    assert all(sorted(one) == [1, 2, 3, 4] for one in scores)
    assert len({tuple(one) for one in scores}) > 1
    drawn = token_map(explainer("random"), made[0], example, "word")
    assert [unit.score for unit in drawn.units if not unit.special] == scores[0].tolist()
    gone = set(drawn.units[1 + int(scores[0].argmax())].tokens)
    model, target = classifier("bert", 2, "float32"), made[0].provenance.target
    expected = masked_probability(model.module, model.encode(example).ids.tolist(), gone, model.mask_id, target)
    assert removal_curves(requests[:1], unit="word")[0].values[1] == pytest.approx(expected, abs=1e-5)
