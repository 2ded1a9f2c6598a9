"""What the board of the study tells the browser, and that what comes back must answer the ballot shown."""

from __future__ import annotations

import json
import re
from functools import partial
from itertools import product
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from components.widgets import ranking
from components.widgets.ranking import (
    ConfirmedRanking,
    are_ranks,
    ballot_digest,
    board_data,
    confirmed_ranking,
    forget_ranking,
    parse_ranking,
    receive_ranking,
)
from engine.errors import UsageError

THREE = ["<b>a</b>", "<b>b</b>", "<b>c</b>"]
BALLOT = ballot_digest(THREE)
TOKEN = "0b0f4f1e-6a0e-4f6e-9d41-3b1f6f0a9c11"
READ = partial(parse_ranking, digest=BALLOT, places=3)


def sent(**other: object) -> dict[str, object]:
    return {"ballot": BALLOT, "ranks": [2, 1, 2], "turn": 1, "token": TOKEN} | other


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What the session holds, as plain values."""
    values: dict[str, object] = {}
    monkeypatch.setattr(st, "session_state", values)
    return values


def test_the_browser_is_told_the_explanations_and_nothing_else_of_them() -> None:
    data = board_data(THREE, ConfirmedRanking((1, 1, 3), 4, TOKEN), beside=True)
    assert json.loads(json.dumps(data)) == data
    assert data == {"ballot": BALLOT, "explanations": THREE, "beside": True, "answer": {"ranks": [1, 1, 3]}}
    assert board_data(THREE, ConfirmedRanking(None, 4, TOKEN))["answer"] == {"ranks": None}
    assert board_data(THREE, None)["answer"] is None


@pytest.mark.parametrize("explanations", [[], ["a"], ["a"] * 7, ["a", ""]], ids=repr)
def test_too_few_too_many_or_empty_explanations_are_refused(explanations: list[str]) -> None:
    with pytest.raises(UsageError, match=r"^explanations: must be 2 to 6 explanations, none of them empty"):
        ballot_digest(explanations)


def test_the_ballot_tells_explanations_and_their_order_apart() -> None:
    others = (THREE[::-1], THREE[:2], ["<b>a</b><b>b</b>", "<b>c</b>"])
    assert len({BALLOT, *map(ballot_digest, others)}) == 4
    assert ballot_digest(list(THREE)) == BALLOT


def test_what_was_confirmed_is_read() -> None:
    assert READ(sent()) == ConfirmedRanking((2, 1, 2), 1, TOKEN)
    assert READ(sent(ranks=None, turn=3)) == ConfirmedRanking(None, 3, TOKEN)


def test_orders_are_those_that_steps_of_cards_can_make() -> None:
    possible = set()
    for steps in product(range(3), repeat=3):
        possible.add(tuple(1 + sum(other < step for other in steps) for step in steps))
    found = {ranks for ranks in product(range(5), repeat=3) if are_ranks(list(ranks), 3)}
    assert found == possible
    assert len(possible) == 13, "weak orders of three"


@pytest.mark.parametrize(
    "ranks",
    ["1,2,3", [1, 2], [1, 2, 3, 4], [1, 2, 2.0], [True, 2, 3], [1, 1, 2], [0, 1, 2], [2, 3, 4], [1, 2, None], {}, 0],
    ids=repr,
)
def test_what_is_no_order_is_refused_in_words(ranks: object) -> None:
    with pytest.raises(UsageError, match=r"^ranks: must be 3 ranks such as 1, 2, 3, equal ones .*Nothing was saved"):
        READ(sent(ranks=ranks))


def test_an_answer_without_ranks_is_not_taken_for_cannot_tell() -> None:
    fields = sent()
    del fields["ranks"]
    with pytest.raises(UsageError, match=r"^ranks: "):
        READ(fields)


@pytest.mark.parametrize("token", [None, "", 7, TOKEN.upper(), TOKEN + "0", f"{TOKEN}\n", "x" * 36], ids=repr)
def test_a_token_that_is_no_uuid_is_refused(token: object) -> None:
    with pytest.raises(UsageError, match=r"^token: must be a UUID"):
        READ(sent(token=token))


@pytest.mark.parametrize("turn", [None, 0, -1, True, 1.0, "1"], ids=repr)
def test_a_turn_that_counts_nothing_is_refused(turn: object) -> None:
    with pytest.raises(UsageError, match=r"^turn: must be a whole number from 1"):
        READ(sent(turn=turn))


@pytest.mark.parametrize("what", [None, [], "x", 1, sent(ballot=None), sent(ballot=ballot_digest(THREE[:2]))], ids=repr)
def test_an_answer_to_something_else_is_refused(what: object) -> None:
    with pytest.raises(UsageError, match=r"^(ballot: the answer was to other explanations|turn: )"):
        READ(what)


def test_an_answer_is_kept_as_plain_values_and_forgotten_on_request(held: dict[str, object]) -> None:
    got: list[ConfirmedRanking] = []
    held["board"] = {"ranked": sent(turn=7)}
    receive_ranking("board", READ, BALLOT, got.append)
    assert got == [ConfirmedRanking((2, 1, 2), 7, TOKEN)] == [confirmed_ranking("board", BALLOT)]
    assert held["board.turn"] == 7, "the browser is told which of its questions was answered"
    assert json.loads(json.dumps(held["board.answer"])) == held["board.answer"]
    assert confirmed_ranking("board", ballot_digest(THREE[:2])) is None
    forget_ranking("board")
    assert confirmed_ranking("board", BALLOT) is None


def test_cannot_tell_is_an_answer(held: dict[str, object]) -> None:
    held["board"] = {"ranked": sent(ranks=None)}
    receive_ranking("board", READ, BALLOT)
    assert confirmed_ranking("board", BALLOT) == ConfirmedRanking(None, 1, TOKEN)


def test_what_cannot_be_saved_is_not_confirmed_and_told(held: dict[str, object]) -> None:
    def fail(ranked: ConfirmedRanking) -> None:
        raise UsageError("study: it is closed.")

    held["board"] = {"ranked": sent(turn=2)}
    receive_ranking("board", READ, BALLOT, fail)
    assert confirmed_ranking("board", BALLOT) is None
    assert held["board.said"] == "study: it is closed. Your answer was not saved. Confirm again."
    assert int(str(held["board.turn"])) > 2, "the browser is told that it need not wait"


def test_a_bad_answer_changes_nothing_and_is_told(held: dict[str, object]) -> None:
    held |= {"board": {"ranked": sent(turn=2)}}
    receive_ranking("board", READ, BALLOT)
    held["board"] = {"ranked": sent(turn=3, ranks=[9, 9, 9])}
    receive_ranking("board", READ, BALLOT)
    assert confirmed_ranking("board", BALLOT) == ConfirmedRanking((2, 1, 2), 2, TOKEN)
    assert "ranks: must be 3 ranks" in str(held["board.said"])


def test_the_script_takes_markup_at_one_place_only_and_fetches_nothing() -> None:
    script = Path(ranking.__file__).with_name("ranking.js").read_text(encoding="utf-8")
    markup = r".*(?:innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment).*"
    assert [line.strip() for line in re.findall(markup, script)] == ["body.innerHTML = html;"]
    assert not re.search(r"https?:|fetch\(|import\(|eval\(", script)
    assert f'const PLACES = "{ranking.PLACES}";' in script


def page() -> None:
    import streamlit as st

    from components.widgets.ranking import draw_ranking_board

    answer = draw_ranking_board(["<b>one</b>", "<b>two</b>"], "board")
    st.text(f"answer {answer}")


def test_a_page_with_the_board_runs_as_a_script_again_and_again() -> None:
    shown = AppTest.from_function(page).run().run()
    assert not shown.exception
    [board] = shown.get("bidi_component")
    told = json.loads(board.proto.json)
    assert set(told) == {"ballot", "explanations", "beside", "answer", "turn"}
    assert [text.value for text in shown.text] == ["answer None"]
