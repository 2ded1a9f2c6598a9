"""The hidden tokens: which ones, how many, and that they are the answers."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from engine.training.objectives import IGNORED, hide_spans, mask_words, next_words
from engine.training.tokenizer_training import SENTINELS

PAD, END, MASK, FIRST = 0, 1, 2, 3
SENTINEL = 1000


class Ids(SimpleNamespace):
    """The numbers of a tokenizer that the objectives need."""

    pad_token_id, eos_token_id, mask_token_id, all_special_ids = PAD, END, MASK, (PAD, END, MASK, FIRST)

    def __len__(self) -> int:
        return 900

    def convert_tokens_to_ids(self, names: list[str]) -> list[int]:
        return [SENTINEL + SENTINELS.index(name) for name in names]


def rows(count: int, words: int) -> list[list[int]]:
    return [[FIRST, *range(10, 10 + words), END] for _ in range(count)]


def test_masked_words_hide_15_percent_of_words_and_never_a_special_token() -> None:
    torch.manual_seed(0)
    data = [*rows(300, 40), [FIRST, 10, END]]
    inputs, answers = mask_words(data, Ids())
    hidden = answers != IGNORED
    whole = torch.tensor([row + [PAD] * (42 - len(row)) for row in data])
    assert hidden.sum(1).tolist() == [6] * 300 + [1]
    assert (answers[hidden] == whole[hidden]).all()
    assert not torch.isin(whole[hidden], torch.tensor(Ids.all_special_ids)).any()
    assert (inputs["input_ids"][~hidden] == whole[~hidden]).all()
    assert inputs["attention_mask"].sum(1).tolist() == [42] * 300 + [3]
    read = inputs["input_ids"][hidden]
    # 1,801 draws: three standard deviations are 0.03 and 0.02.
    assert (read == MASK).float().mean().item() == pytest.approx(0.8, abs=0.03)
    assert (read == whole[hidden]).float().mean().item() == pytest.approx(0.1, abs=0.025)


def test_the_next_word_is_the_answer_at_each_word_but_the_last() -> None:
    inputs, answers = next_words([[5, 6, 7, END], [8, END]], Ids(pad_token_id=END))
    assert inputs["input_ids"].tolist() == [[5, 6, 7, END], [8, END, END, END]]
    assert answers.tolist() == [[6, 7, END, IGNORED], [END, IGNORED, IGNORED, IGNORED]]


@pytest.mark.parametrize("words", [1, 2, 3, 7, 20, 33, 100])
def test_hidden_spans_and_visible_tokens_make_the_text_again(words: int) -> None:
    torch.manual_seed(words)
    text = list(range(10, 10 + words))
    inputs, answers = hide_spans([[*text, END]] * 20, Ids())
    for left, right, before in zip(
        inputs["input_ids"].tolist(), answers.tolist(), inputs["decoder_input_ids"].tolist(), strict=True
    ):
        named = [i for i in right if i != IGNORED]
        assert named[-1] == END
        assert before[: len(named)] == [PAD, *named[:-1]]
        assert refilled([i for i in left if i != PAD], named[:-1]) == [*text, END]
        assert sum(i < SENTINEL for i in named[:-1]) == max(1, round(0.15 * words))


def refilled(left: list[int], named: list[int]) -> list[int]:
    """Each sentinel replaced by the span that follows it in `named`."""
    spans: dict[int, list[int]] = {}
    for token in named:
        if token >= SENTINEL:
            current = spans.setdefault(token, [])
        else:
            current.append(token)
    return [i for token in left for i in spans.get(token, [token])]


def test_the_first_word_is_hidden_as_often_as_the_last() -> None:
    torch.manual_seed(0)
    _, answers = hide_spans([[*range(10, 30), END]] * 2000, Ids())
    times = torch.bincount(answers[(answers >= 10) & (answers < 30)], minlength=30)[10:]
    # One span of three words has 18 places: a word in the middle lies in three of them, one at an end in one.
    expected = [2000 * min(place + 1, 20 - place, 3) / 18 for place in range(20)]
    assert times.tolist() == pytest.approx(expected, rel=0.25)
    assert times.sum().item() == 2000 * 3
