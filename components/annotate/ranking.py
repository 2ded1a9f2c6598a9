"""The board of the blind study: unnamed explanations that a person orders, best first.

The browser knows places (A, B, ...) and nothing else of an explanation than its picture of HTML. Python owns the
answer: the board says that it is confirmed when Python has taken it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import streamlit as st

from components import pins as strips
from components.pins import Component
from components.trouble import sentence
from engine.errors import UsageError, not_allowed
from engine.study.ratings.matches import competition

NAME = "exegesis_ranking"
PLACES = "ABCDEF"
LEAST = 2
STAYS = "Nothing was saved. Load the page again if this happens twice."
BALLOT_LETTERS = 16
_TOKEN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class Ranked:
    """What a person confirmed. `ranks` by place: 1 is best, ties share it (`1, 1, 3`); None: cannot tell.

    `turn` counts what the browser asked. `token` is the browser's own: the same answer sent twice has the same one,
    another answer another.
    """

    ranks: tuple[int, ...] | None
    turn: int
    token: str


def ranking(
    explanations: Sequence[str], key: str, on_ranked: Callable[[Ranked], None] | None = None, beside: bool = False
) -> Ranked | None:
    """Shows the board; returns what was confirmed of these explanations, None before. One key a ballot.

    `explanations` is HTML whose texts are escaped, in the order of its places. It must not name its method.
    `on_ranked` saves the answer before the script runs again: only if it raises nothing is the answer confirmed.
    `beside`: a column a rank where there is room, as pictures want it.
    """
    ballot, places = ballot_of(explanations), len(explanations)
    told = picture(explanations, answer_of(key, ballot), beside)
    read = partial(parse, ballot=ballot, places=places)
    take = partial(receive, key, read, ballot, on_ranked)
    strips.tell(_component(), key, told, on_ranked_change=take)
    return answer_of(key, ballot)


def forget(key: str) -> None:
    """Forgets what was confirmed under this key, so that the ballot can be given anew."""
    st.session_state.pop(_answer(key), None)


def ballot_of(explanations: Sequence[str]) -> str:
    """What tells these explanations from others: an answer to others is refused. Errors: too few or too many."""
    if not LEAST <= len(explanations) <= len(PLACES) or not all(explanations):
        allowed = f"{LEAST} to {len(PLACES)} explanations, none of them empty"
        raise not_allowed("explanations", allowed, [len(html) for html in explanations])
    return hashlib.sha256(json.dumps(list(explanations)).encode()).hexdigest()[:BALLOT_LETTERS]


def picture(explanations: Sequence[str], answer: Ranked | None, beside: bool = False) -> dict[str, object]:
    """What the browser is told, in plain values."""
    told = {"ballot": ballot_of(explanations), "explanations": list(explanations), "beside": beside}
    return told | {"answer": None if answer is None else {"ranks": answer.ranks and list(answer.ranks)}}


def parse(sent: object, ballot: str, places: int) -> Ranked:
    """What came from the browser, checked: it must answer this ballot, with competition ranks of its places."""
    fields = sent if isinstance(sent, dict) else {}
    turn, ranks, token = strips.turn_of(fields, STAYS), fields.get("ranks"), fields.get("token")
    if fields.get("ballot") != ballot:
        raise UsageError(f"ballot: the answer was to other explanations than those shown now. {STAYS}")
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise not_allowed("token", "a UUID in lower case", token, STAYS)
    if "ranks" not in fields or not (ranks is None or is_order(ranks, places)):
        allowed = f"{places} ranks such as {', '.join(map(str, range(1, places + 1)))}, equal ones for ties"
        raise not_allowed("ranks", allowed, ranks, STAYS)
    return Ranked(None if ranks is None else tuple(ranks), turn, token)


def is_order(ranks: object, places: int) -> bool:
    """Whether these are competition ranks of so many places: each is 1 + how many are strictly better."""
    if not isinstance(ranks, list) or len(ranks) != places or not all(type(rank) is int for rank in ranks):
        return False
    return list(competition(dict(zip(PLACES, ranks, strict=False))).values()) == ranks


def receive(
    key: str, read: Callable[[object], Ranked], ballot: str, on_ranked: Callable[[Ranked], None] | None = None
) -> None:
    """Takes what the browser just confirmed. What is refused, or cannot be saved, is told and not confirmed."""
    ranked = strips.heard(key, "ranked", read)
    if ranked is None:
        return
    try:
        if on_ranked:
            on_ranked(ranked)
    except Exception as error:
        strips.refuse(key, f"{sentence(error)} Your answer is not saved. Confirm again.")
        return
    st.session_state[_answer(key)] = {
        "ballot": ballot,
        "ranks": ranked.ranks and list(ranked.ranks),
        "turn": ranked.turn,
        "token": ranked.token,
    }


def answer_of(key: str, ballot: str) -> Ranked | None:
    """What was confirmed of this ballot under this key."""
    kept = st.session_state.get(_answer(key))
    if kept is None or kept["ballot"] != ballot:
        return None
    return Ranked(kept["ranks"] and tuple(kept["ranks"]), kept["turn"], kept["token"])


def _answer(key: str) -> str:
    return f"{key}.answer"


@cache
def _component() -> Component:
    return strips.component(NAME, "ranking")
