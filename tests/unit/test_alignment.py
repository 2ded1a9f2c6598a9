"""Two versions of a text side by side: by hand, and what holds for any two."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.request import Example
from engine.result import Token
from engine.word_units import AlignedColumn, Unit, align, units
from tests.unit.components.making import encoded, explanation

WORDS = st.lists(st.sampled_from(["a", "b", "c", "[SEP]"]), max_size=12).map(" ".join)
EXAMPLES = st.builds(Example, WORDS, st.none() | WORDS)


def pieces(example: Example) -> tuple[Token, ...]:
    return encoded(example, pieces=r"\S+")


def aligned(parent: str, child: str) -> list[tuple[str, str, str]]:
    """What stands in each column between [CLS] and [SEP]."""
    old, new = pieces(Example(parent)), pieces(Example(child))
    columns = align(old, new)
    assert (columns[0], columns[-1]) == (AlignedColumn(0, 0, "kept"), AlignedColumn(len(old) - 1, len(new) - 1, "kept"))
    return [(_text(old, c.parent), _text(new, c.child), c.kind) for c in columns[1:-1]]


def _text(tokens: tuple[Token, ...], position: int | None) -> str:
    return "" if position is None else tokens[position].text


def test_one_word_for_another() -> None:
    assert aligned("a good film", "a bad film") == [
        ("a", "a", "kept"),
        ("good", "bad", "changed"),
        ("film", "film", "kept"),
    ]


def test_more_or_fewer_words_than_before() -> None:
    assert aligned("not good", "not at all good") == [
        ("not", "not", "kept"),
        ("", "at", "inserted"),
        ("", "all", "inserted"),
        ("good", "good", "kept"),
    ]
    assert aligned("a very very bad film", "a film") == [
        ("a", "a", "kept"),
        ("very", "", "deleted"),
        ("very", "", "deleted"),
        ("bad", "", "deleted"),
        ("film", "film", "kept"),
    ]
    assert aligned("one two three", "four") == [
        ("one", "four", "changed"),
        ("two", "", "deleted"),
        ("three", "", "deleted"),
    ]


def test_a_special_token_is_not_the_same_as_its_name_in_the_text() -> None:
    assert aligned("x", "x [SEP]")[-1] == ("", "[SEP]", "inserted")


def test_the_second_text_stands_with_the_second_only() -> None:
    old, new = pieces(Example("a b", "c d")), pieces(Example("a", "b c d"))
    found = [(_text(old, c.parent), _text(new, c.child)) for c in align(old, new) if c.kind != "kept"]
    assert found == [("b", ""), ("", "b")]


def test_a_second_text_that_is_new_is_inserted_whole() -> None:
    old, new = pieces(Example("a")), pieces(Example("a", "b"))
    assert [c.kind for c in align(old, new)] == ["kept", "kept", "kept", "inserted", "inserted"]


def test_frequent_tokens_of_long_texts_are_seen() -> None:
    kinds = [kind for _, _, kind in aligned("the " * 300, "the " * 150 + "new " + "the " * 150)]
    assert kinds.count("kept") == 300
    assert kinds.count("inserted") == 1


def test_one_of_equal_words_is_changed_where_no_special_token_leads() -> None:
    old, new = (pieces(Example(text))[1:-1] for text in ("good good good good", "good bad good good"))
    assert [column.kind for column in align(old, new)] == ["kept", "changed", "kept", "kept"]


def words(example: Example) -> tuple[Unit, ...]:
    made = explanation(example)
    return units(made.tokens, made.scores, example, "word")


def test_words_are_aligned_like_tokens() -> None:
    example, other = Example("great film"), Example("great films")
    old, new = (words(e) for e in (example, other))
    assert [c.kind for c in align(old, new)] == ["kept", "kept", "changed", "kept"]


@given(EXAMPLES, EXAMPLES)
def test_every_piece_stands_once_and_in_order(parent: Example, child: Example) -> None:
    old, new = pieces(parent), pieces(child)
    columns = align(old, new)
    assert [c.parent for c in columns if c.parent is not None] == list(range(len(old)))
    assert [c.child for c in columns if c.child is not None] == list(range(len(new)))
    for column in columns:
        same = _text(old, column.parent) == _text(new, column.child)
        expected = {(True, False): "deleted", (False, True): "inserted"}.get(
            (column.child is None, column.parent is None), "kept" if same else "changed"
        )
        assert column.kind == expected or (same and column.kind == "changed"), "a special token's name in the text"
    assert columns == align(old, new)


@given(EXAMPLES)
def test_a_text_is_wholly_kept_beside_itself(example: Example) -> None:
    tokens = pieces(example)
    found = align(tokens, tokens)
    assert [(c.parent, c.child, c.kind) for c in found] == [(i, i, "kept") for i in range(len(tokens))]
    assert [c.text for c in found if not tokens[c.parent or 0].special] == [t.segment for t in tokens if not t.special]


@given(EXAMPLES, EXAMPLES)
def test_kept_never_crosses_the_texts_of_a_pair(parent: Example, child: Example) -> None:
    old, new = pieces(parent), pieces(child)
    for column in align(old, new):
        if column.parent is not None and column.child is not None:
            one, other = old[column.parent], new[column.child]
            assert one.special or other.special or one.segment == other.segment
