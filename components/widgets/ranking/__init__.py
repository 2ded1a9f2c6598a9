"""The board of the blind study: unnamed explanations that a person ranks, best first.

The browser only knows the place (A, B, ...) and the HTML of an explanation. Python owns the answer: the board shows it
as confirmed only once Python has accepted it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import streamlit as st

from components.errors import describe_error
from components.widgets.base import Component, build_component, draw_component, parse_turn, receive_event, refuse_event
from engine.errors import UsageError, not_allowed
from engine.study.counted_votes import competition_ranks

NAME = "exegesis_ranking"
PLACES = "ABCDEF"
LEAST = 2
STAYS = "Nothing was saved. If this happens again, reload the page."
DIGEST_LETTERS = 16
_TOKEN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class ConfirmedRanking:
    """A confirmed answer. `ranks`: by place; 1 is best, ties share a rank (`1, 1, 3`); None: cannot tell.

    `turn`: number of the browser's event. `token`: set by the browser; the same answer sent twice has the same token,
    another answer has another.
    """

    ranks: tuple[int, ...] | None
    turn: int
    token: str


def draw_ranking_board(
    explanations: Sequence[str],
    key: str,
    on_ranked: Callable[[ConfirmedRanking], None] | None = None,
    beside: bool = False,
) -> ConfirmedRanking | None:
    """Draw the board. Return the confirmed answer on these explanations, or None before. Use one key per ballot.

    `explanations`: HTML with escaped text, in the order of the places; it must not name the method. `on_ranked` saves
    the answer before the script runs again; the answer is confirmed only if it raises nothing. `beside`: whether ranks
    are columns if there is room, as suits pictures.
    """
    digest = ballot_digest(explanations)
    data = board_data(explanations, confirmed_ranking(key, digest), beside)
    read = partial(parse_ranking, digest=digest, places=len(explanations))
    draw_component(_component(), key, data, on_ranked_change=partial(receive_ranking, key, read, digest, on_ranked))
    return confirmed_ranking(key, digest)


def forget_ranking(key: str) -> None:
    """Forget the answer under this key, so that the ballot can be answered again."""
    st.session_state.pop(_answer_key(key), None)


def ballot_digest(explanations: Sequence[str]) -> str:
    """Return a digest of the explanations; answers to others are refused. Errors: too few or too many."""
    if not LEAST <= len(explanations) <= len(PLACES) or not all(explanations):
        allowed = f"{LEAST} to {len(PLACES)} explanations, none of them empty"
        raise not_allowed("explanations", allowed, [len(html) for html in explanations])
    return hashlib.sha256(json.dumps(list(explanations)).encode()).hexdigest()[:DIGEST_LETTERS]


def board_data(explanations: Sequence[str], answer: ConfirmedRanking | None, beside: bool = False) -> dict[str, object]:
    """Return the data for the browser, as plain values."""
    data = {"ballot": ballot_digest(explanations), "explanations": list(explanations), "beside": beside}
    return data | {"answer": None if answer is None else {"ranks": answer.ranks and list(answer.ranks)}}


def parse_ranking(sent: object, digest: str, places: int) -> ConfirmedRanking:
    """Parse the browser's answer. Errors: it is for another ballot, or has no competition ranks of its places."""
    fields = sent if isinstance(sent, dict) else {}
    turn, ranks, token = parse_turn(fields, STAYS), fields.get("ranks"), fields.get("token")
    if fields.get("ballot") != digest:
        raise UsageError(f"ballot: the answer was to other explanations than those shown now. {STAYS}")
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise not_allowed("token", "a UUID in lower case", token, STAYS)
    if "ranks" not in fields or not (ranks is None or are_ranks(ranks, places)):
        allowed = f"{places} ranks such as {', '.join(map(str, range(1, places + 1)))}, equal ones for ties"
        raise not_allowed("ranks", allowed, ranks, STAYS)
    return ConfirmedRanking(None if ranks is None else tuple(ranks), turn, token)


def are_ranks(ranks: object, places: int) -> bool:
    """Whether these are competition ranks of all places: each is 1 + the number of strictly better places."""
    if not isinstance(ranks, list) or len(ranks) != places or not all(type(rank) is int for rank in ranks):
        return False
    return list(competition_ranks(dict(zip(PLACES, ranks, strict=False))).values()) == ranks


def receive_ranking(
    key: str,
    read: Callable[[object], ConfirmedRanking],
    digest: str,
    on_ranked: Callable[[ConfirmedRanking], None] | None = None,
) -> None:
    """Receive an answer. One that is refused or cannot be saved is not confirmed, and a note reports it."""
    ranking = receive_event(key, "ranked", read)
    if ranking is None:
        return
    try:
        if on_ranked:
            on_ranked(ranking)
    except Exception as error:
        refuse_event(key, f"{describe_error(error)} Your answer was not saved. Confirm again.")
        return
    ranks = ranking.ranks and list(ranking.ranks)
    fields = {"ballot": digest, "ranks": ranks, "turn": ranking.turn, "token": ranking.token}
    st.session_state[_answer_key(key)] = fields


def confirmed_ranking(key: str, digest: str) -> ConfirmedRanking | None:
    """Return the confirmed answer on this ballot under this key, or None."""
    fields = st.session_state.get(_answer_key(key))
    if fields is None or fields["ballot"] != digest:
        return None
    return ConfirmedRanking(fields["ranks"] and tuple(fields["ranks"]), fields["turn"], fields["token"])


def _answer_key(key: str) -> str:
    return f"{key}.answer"


@cache
def _component() -> Component:
    return build_component(NAME, "ranking", folder=Path(__file__).parent)
