"""Examples of generated data sets are made when they are read, once, and otherwise behave as a tuple."""

from __future__ import annotations

import pytest

from engine.data import grammar
from engine.data.datasets import load
from engine.data.examples import LabeledExample
from engine.data.generation import GeneratedExamples
from tests.counted import counted


def one(index: int) -> LabeledExample:
    return LabeledExample(f"number {index}")


def test_only_what_is_read_is_made_and_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch, grammar, "_make_example", lambda *args: args[2])
    data = load("reviews-generated", split="train")
    assert (len(data), data.pairs) == (20_000, False)
    assert len(calls) < 100, "type checks at run time read a few"
    assert data[7] is data.examples[7]
    assert calls.count(7) == 1


def test_places_and_slices_are_those_of_the_tuple() -> None:
    examples, whole = GeneratedExamples(5, one), tuple(one(index) for index in range(5))
    assert (examples[-1], examples[1:4], examples[::-2], list(examples)) == (
        whole[-1],
        whole[1:4],
        whole[::-2],
        list(whole),
    )
    for beyond in (5, -6):
        with pytest.raises(IndexError):
            examples[beyond]


def test_it_equals_the_tuple_and_another_of_the_same_examples() -> None:
    whole = tuple(one(index) for index in range(5))
    assert GeneratedExamples(5, one) == whole
    assert GeneratedExamples(5, one) == GeneratedExamples(5, one)
    assert hash(GeneratedExamples(5, one)) == hash(whole)
    assert GeneratedExamples(4, one) != whole
    assert GeneratedExamples(5, one) != list(whole)


def test_the_first_example_of_a_generated_set_decides_whether_it_has_pairs() -> None:
    assert load("quality", limit=3).pairs
    assert not load("reviews-marked", limit=3).pairs
