"""Replacements of words: edits by hand, and words from a masked model and from embeddings beside slow oracles."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine import runtime
from engine.errors import ExegesisError, UsageError
from engine.models.loading import load_model
from engine.request import Example
from engine.substitution import (
    Edit,
    edited,
    like,
    likely_words,
    load_masked_model,
    near_words,
    sampled_words,
    whole_words,
    words_of,
)

REVIEW = Example("The acting wasn't bad, but slow.")


def test_words_have_their_offsets_in_both_texts() -> None:
    words = words_of(Example("It's a well-made film!", "Who made it?"))
    assert [word.text for word in words] == ["It's", "a", "well-made", "film", "Who", "made", "it"]
    assert [(word.segment, word.start, word.end) for word in words][3:5] == [(0, 17, 21), (1, 0, 3)]


def test_edits_change_and_delete_words_in_any_order() -> None:
    first, *_, last = words_of(REVIEW)
    assert edited(REVIEW, [Edit(first), Edit(last, "short")]).text == "acting wasn't bad, but short."
    assert edited(REVIEW, [Edit(last)]).text == "The acting wasn't bad, but."
    assert edited(Example("a", "b c"), [Edit(words_of(Example("a", "b c"))[1], "d")]) == Example("a", "d c")


def test_the_same_word_cannot_be_edited_twice() -> None:
    word = words_of(REVIEW)[1]
    with pytest.raises(UsageError, match="edits: each must change another word, got two of 'acting'"):
        edited(REVIEW, [Edit(word, "plot"), Edit(word)])
    with pytest.raises(UsageError, match="edits: each must change a word of the text"):
        edited(Example("Another text."), [Edit(word)])


def test_a_replacement_takes_the_case_of_its_word() -> None:
    assert [like("The", "a"), like("BAD", "good"), like("bad", "good"), like("I", "we")] == ["A", "GOOD", "good", "We"]


@pytest.mark.parametrize("model", ["reviews-minilm", "roberta-marked", "t5-marked"])
def test_whole_words_are_one_token_each(model: str) -> None:
    tokenizer = load_model(model).tokenizer
    words = whole_words(tokenizer)
    assert len(words) > 300
    for word in list(words)[::97]:
        pieces = tokenizer(f"so {word}", add_special_tokens=False)["input_ids"]
        assert words[word] in pieces or tokenizer.convert_ids_to_tokens(words[word]).lower() != word


def test_near_words_are_those_of_a_slow_search() -> None:
    model = load_model("reviews-minilm")
    with runtime.turn():
        (found,) = near_words(model, ["Wonderful"], 5)
    weights = model.embedding.weight.detach().double()
    own = weights[model.tokenizer.convert_tokens_to_ids("wonderful")]
    cosines = {
        word: float(own @ weights[at] / own.norm() / weights[at].norm())
        for word, at in whole_words(model.tokenizer).items()
        if word != "wonderful"
    }
    assert found == sorted(cosines, key=cosines.__getitem__, reverse=True)[:5]


def test_the_masked_model_gives_what_transformers_gives_row_by_row() -> None:
    words = words_of(REVIEW)
    with runtime.turn():
        masked = load_masked_model()
        shares = masked.probabilities(REVIEW, words)
    assert shares.shape == (len(words), len(masked.words))
    np.testing.assert_allclose(shares.sum(1), 1)
    at = [word.text for word in words].index("bad")
    ids = masked.tokenizer("The acting wasn't [MASK], but slow.", return_tensors="pt")
    with torch.no_grad():
        logits = masked.module(**ids).logits[0, ids["input_ids"][0] == masked.tokenizer.mask_token_id][0]
    known = [masked.tokenizer.convert_tokens_to_ids(word) for word in masked.words]
    np.testing.assert_allclose(shares[at], logits[known].double().softmax(0).numpy(), rtol=1e-4, atol=1e-9)


def test_likely_words_leave_the_word_itself_out() -> None:
    words = words_of(Example("I did not like it."))
    with runtime.turn():
        found = likely_words(load_masked_model(), Example("I did not like it."), words, 3)
    assert all(len(each) == 3 for each in found)
    assert all(word.text.lower() not in dict(each) for word, each in zip(words, found, strict=True))
    assert all(each == sorted(each, key=lambda one: -one[1]) for each in found)


def test_draws_follow_the_probabilities() -> None:
    with runtime.turn():
        masked = load_masked_model()
        word = next(one for one in words_of(REVIEW) if one.text == "but")
        (draws,) = sampled_words(masked, REVIEW, [word], 4000, np.random.default_rng(0))
        (shares,) = masked.probabilities(REVIEW, [word])
    top = int(shares.argmax())
    share = draws.count(masked.words[top]) / len(draws)
    assert abs(share - shares[top]) < 4 * (shares[top] * (1 - shares[top]) / len(draws)) ** 0.5


def test_a_model_without_a_head_for_masked_words_is_refused() -> None:
    with pytest.raises(ExegesisError, match="masked_model: 'minilm' is no masked language model"):
        load_masked_model("minilm")


def test_a_place_beyond_what_the_model_reads_is_told() -> None:
    long = Example("good " * 300 + "film")
    with runtime.turn(), pytest.raises(UsageError, match=r"masked_model: .* lies beyond them"):
        load_masked_model().probabilities(long, words_of(long)[-1:])


def test_a_word_goes_on_over_combining_marks() -> None:
    assert [word.text for word in words_of(Example("हिन्दी भाषा"))] == ["हिन्दी", "भाषा"]
    both = words_of(Example("A cafe\u0301 or the caf\u00e9's."))
    assert [word.text for word in both] == ["A", "cafe\u0301", "or", "the", "caf\u00e9's"]


class _Tokens:
    def __init__(self, *tokens: str) -> None:
        self.tokens = tokens

    def get_vocab(self) -> dict[str, int]:
        return {token: place for place, token in enumerate(self.tokens)}


def test_a_sign_of_another_tokenizer_leaves_the_words_of_word_pieces() -> None:
    assert whole_words(_Tokens("Ġ", "▁", "##ing", "film", "фильм")) == {"film": 3, "фильм": 4}
    with pytest.raises(ExegesisError, match="tokenizer: none of its tokens is a whole word"):
        whole_words(_Tokens("##ing", "##s", "1"))


def test_a_text_with_a_mask_token_is_told_so() -> None:
    text = Example("A [MASK] film.")
    with runtime.turn(), pytest.raises(UsageError, match=r"text: must not hold the mask token of .*, \[MASK\]"):
        load_masked_model().probabilities(text, words_of(text)[-1:])


def test_draws_of_a_long_text_are_from_the_part_around_the_word() -> None:
    long = Example("good " * 300 + "film")
    with runtime.turn():
        (draws,) = sampled_words(load_masked_model(), long, words_of(long)[-1:], 5, np.random.default_rng(0))
    assert len(draws) == 5


def test_draws_of_other_words_never_hold_the_word_itself() -> None:
    text = Example("I did not like it.")
    words = words_of(text)
    with runtime.turn():
        masked = load_masked_model()
        own = sampled_words(masked, text, words, 200, np.random.default_rng(0))
        others = sampled_words(masked, text, words, 200, np.random.default_rng(0), others=True)
    names = [word.text.lower() for word in words]
    assert any(name in draws for name, draws in zip(names, own, strict=True))
    assert not any(name in draws for name, draws in zip(names, others, strict=True))
