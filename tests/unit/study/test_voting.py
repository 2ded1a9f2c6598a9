"""Participants, ballots and votes: each confirmed vote is kept once, whatever happens."""

from __future__ import annotations

import dataclasses
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from engine.errors import UsageError
from engine.study import annotators, studies
from engine.study.annotators import NotKnown, NotOpen, Person, consent, join, resume
from engine.study.assignment import Look, places
from engine.study.ballots import Ballot, next_ballot, plan_of
from engine.study.codes import new_token
from engine.study.database import study_database
from engine.study.design import Design, MethodChoice, check
from engine.study.limits import TooManyTries, Tries
from engine.study.tables import Annotator, Event, Item, Shown, Study, Vote
from engine.study.tally import matches_of, method_names, votes_of
from engine.study.voting import Answer, confirm, undo
from tests.project import ROOT
from tests.unit.study.polls import METHODS, PARAMS, agreed, answer, open_study, set_state
from tests.unit.study.samples import image_design, text_design

KILLED = """
import sys, threading
from tests.unit.study.polls import agreed, answer
from engine.study.ballots import next_ballot
from engine.study.voting import confirm

def vote():
    person = agreed(sys.argv[1])
    ballot = next_ballot(person.id)
    while True:
        given = answer(ballot)
        sys.stdout.write(f"{confirm(person.id, given).token}\\n")
        sys.stdout.flush()

for _ in range(4):
    threading.Thread(target=vote).start()
"""


@pytest.fixture(autouse=True)
def no_tries(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tests on each kind of database; nobody has typed a wrong code yet."""
    monkeypatch.setattr(annotators, "TRIES", Tries())


def rows_of(study: Study) -> list[Vote]:
    with study_database().reading() as session:
        return list(session.scalars(sa.select(Vote).where(Vote.study == study.id).order_by(Vote.id)))


def ballot_of(person: Person) -> Ballot:
    ballot = next_ballot(person.id)
    assert ballot is not None
    return ballot


def at_once(work: Callable[[int], None], threads: int = 20) -> None:
    """Runs it in many threads that begin together; the first error passes."""
    errors: list[BaseException] = []
    start = threading.Barrier(threads)

    def run(n: int) -> None:
        try:
            start.wait()
            work(n)
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=run, args=(n,)) for n in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if errors:
        raise errors[0]


def test_a_participant_joins_agrees_and_goes_on_elsewhere() -> None:
    study = open_study()
    person, code = join(study.token)
    assert not person.consented
    with pytest.raises(NotKnown, match=r"has not agreed"):
        next_ballot(person.id)
    assert consent(person.id) == dataclasses.replace(person, consented=True)
    seen = ballot_of(person)
    there = resume(study.token, code.upper().replace("-", " "), "a phone")
    assert there == consent(person.id)
    assert ballot_of(there).token == seen.token
    with study_database().reading() as session:
        kept = session.get_one(Annotator, person.id)
    assert code not in repr(vars(kept))
    assert code.replace("-", "") not in repr(vars(kept))


def test_consent_keeps_its_first_time() -> None:
    person = agreed(open_study().token)
    with study_database().reading() as session:
        first = session.get_one(Annotator, person.id).consented
    consent(person.id)
    with study_database().reading() as session:
        assert session.get_one(Annotator, person.id).consented == first


def test_a_wrong_code_or_link_is_refused_and_after_five_one_waits() -> None:
    study, other = open_study(), open_study()
    _, code = join(other.token)
    with pytest.raises(NotKnown, match="link: leads to no study"):
        join("guessed")
    for _ in range(5):
        with pytest.raises(NotKnown, match="code: belongs to nobody in this study"):
            resume(study.token, code, "one address")
    with pytest.raises(TooManyTries, match="Wait"):
        resume(study.token, code, "one address")
    assert resume(other.token, code, "another address").study == other.id


def test_nothing_of_a_ballot_tells_the_methods() -> None:
    study = open_study()
    person = agreed(study.token)
    with study_database().reading() as session:
        secret = [one for row in session.scalars(sa.select(Shown)) for one in (row.digest, *map(str, row.provenance))]
    while ballot := next_ballot(person.id):
        told = repr(dataclasses.asdict(ballot))
        for word in (*METHODS, *PARAMS, *secret, "method", "provenance", "seed"):
            assert word not in told
        assert [one.place for one in ballot.maps] == ["A", "B", "C"]
        assert {field.name for field in dataclasses.fields(ballot.maps[0])} == {
            "place",
            "tokens",
            "scores",
            "grid",
            "truncated",
        }
        confirm(person.id, answer(ballot))


def test_all_maps_have_the_same_scale() -> None:
    for one in ballot_of(agreed(open_study().token)).maps:
        assert np.abs(one.scores).max() == 1
        assert all(score == 0 for score, token in zip(one.scores, one.tokens, strict=True) if token.special)


def test_the_order_on_the_ballot_is_the_seeded_permutation() -> None:
    study = open_study()
    person = agreed(study.token)
    while ballot := next_ballot(person.id):
        confirm(person.id, answer(ballot))
    with study_database().reading() as session:
        plan = plan_of(session, study)
        looks = {item.id: (str(item.place), item.practice) for item in session.scalars(sa.select(Item))}
    for vote in rows_of(study):
        item, practice = looks[vote.item]
        wanted = places(plan, person.pseudonym, Look(item, vote.repeat, practice), ["0", "1", "2"])
        assert [str(place) for place in vote.order] == list(wanted)


def test_a_whole_study_is_walked_practice_first() -> None:
    study = open_study(items=6, practice=2, items_per_annotator=5, repeats=1)
    person = agreed(study.token)
    walked = []
    while ballot := next_ballot(person.id):
        walked.append((ballot.practice, ballot.done, ballot.of))
        confirm(person.id, answer(ballot, 2, 1, 2))
    assert walked == [(True, 0, 6)] * 2 + [(False, done, 6) for done in range(6)]
    matches = matches_of(study.id)
    assert [match.repeat for match in matches].count(1) == 1
    assert len(matches) == 6, "practice does not count"
    assert len({match.item for match in matches}) == 5


def test_a_vote_names_the_methods_that_stood_at_its_places() -> None:
    study = open_study(practice=0)
    person = agreed(study.token)
    confirm(person.id, answer(ballot_of(person), 3, 1, 1, seconds=12.5))
    (match,), (vote,) = matches_of(study.id), rows_of(study)
    assert match.ranks == dict(zip([METHODS[place] for place in vote.order], [3, 1, 1], strict=True))
    assert (match.annotator, match.seconds, match.repeat) == (person.pseudonym, 12.5, 0)


def test_cannot_tell_is_an_answer_and_no_match() -> None:
    study = open_study(practice=0)
    person = agreed(study.token)
    first = ballot_of(person)
    confirm(person.id, Answer(first.token, new_token(), None))
    assert ballot_of(person).token != first.token
    assert matches_of(study.id) == []
    assert [(vote.annotator, vote.ranks) for vote in votes_of(study.id)] == [(person.pseudonym, None)]


def test_the_same_answer_sent_twice_is_found_once() -> None:
    study = open_study()
    person = agreed(study.token)
    given = answer(ballot_of(person))
    assert not confirm(person.id, given).before
    assert confirm(person.id, given).before
    at_once(lambda _: None if confirm(person.id, given).before else pytest.fail("was new"), threads=4)
    assert len(rows_of(study)) == 1
    with pytest.raises(UsageError, match="token: stands for another answer"):
        confirm(person.id, dataclasses.replace(given, ranks=None))


def test_the_same_answer_from_two_tabs_at_once_is_found_once() -> None:
    study = open_study()
    person = agreed(study.token)
    given = answer(ballot_of(person))
    said: list[bool] = []
    at_once(lambda _: said.append(confirm(person.id, given).before), threads=8)
    assert Counter(said) == {False: 1, True: 7}
    assert len(rows_of(study)) == 1


def test_of_two_tabs_the_answer_confirmed_last_counts_and_the_other_is_history() -> None:
    study = open_study(practice=0)
    person = agreed(study.token)
    one_tab, other_tab = ballot_of(person), ballot_of(person)
    assert one_tab.token == other_tab.token
    first, second = answer(one_tab, 1, 2, 3), answer(other_tab, 3, 2, 1)
    confirm(person.id, first)
    confirm(person.id, second)
    assert confirm(person.id, first).before, "a late copy of the first changes nothing"
    kept = rows_of(study)
    assert [(vote.token, vote.superseded_by) for vote in kept] == [(first.token, second.token), (second.token, None)]
    (counted,) = votes_of(study.id)
    assert counted.ranks is not None
    assert [counted.ranks[method] for method in counted.order] == [3, 2, 1]


def test_many_tabs_at_once_leave_one_answer_and_the_rest_as_history() -> None:
    study = open_study()
    person = agreed(study.token)
    answers = [answer(ballot_of(person)) for _ in range(8)]
    at_once(lambda n: confirm(person.id, answers[n]) and None, threads=8)
    kept = rows_of(study)
    assert sorted(vote.token for vote in kept) == sorted(given.token for given in answers)
    assert [vote.superseded_by for vote in kept] == [vote.token for vote in kept[1:]] + [None]


def test_two_tabs_that_ask_at_once_get_the_same_ballot() -> None:
    person = agreed(open_study().token)
    seen: list[str] = []
    at_once(lambda _: seen.append(ballot_of(person).token), threads=8)
    assert len(set(seen)) == 1


def test_an_undo_takes_back_the_last_vote_once() -> None:
    study = open_study(practice=0)
    person = agreed(study.token)
    given = []
    for _ in range(2):
        given.append(answer(ballot_of(person)))
        confirm(person.id, given[-1])
    token = new_token()
    assert undo(person.id, token) == undo(person.id, token) == given[1].ballot
    assert ballot_of(person).token == given[1].ballot
    assert [vote.superseded_by for vote in rows_of(study)] == [None, token]
    confirm(person.id, answer(ballot_of(person)))
    assert len(matches_of(study.id)) == 2
    with study_database().reading() as session:
        (event,) = session.scalars(sa.select(Event).where(Event.study == study.id, Event.kind == "vote undone"))
    assert event.details == {"annotator": person.pseudonym, "vote": given[1].token}


def test_there_may_be_nothing_to_undo() -> None:
    assert undo(agreed(open_study().token).id, new_token()) is None


def test_an_undone_item_is_counted_as_unanswered() -> None:
    study = open_study(items=2, practice=0, votes_per_item=1, repeats=0)
    one, other = agreed(study.token), agreed(study.token)
    for _ in range(2):
        confirm(one.id, answer(ballot_of(one)))
    assert next_ballot(other.id) is None
    undo(one.id, new_token())
    assert next_ballot(other.id) is not None


@pytest.mark.parametrize("state", ["draft", "closed", "archived"])
def test_a_study_that_is_not_open_takes_no_votes(state: str) -> None:
    study = open_study()
    person = agreed(study.token)
    ballot = ballot_of(person)
    kept = answer(ballot)
    confirm(person.id, kept)
    set_state(study, state)
    for refused in (
        lambda: confirm(person.id, answer(ballot)),
        lambda: undo(person.id, new_token()),
        lambda: next_ballot(person.id),
        lambda: join(study.token),
    ):
        with pytest.raises(NotOpen, match=r"has not opened yet|is over"):
            refused()
    assert confirm(person.id, kept).before, "what is on the disk is confirmed again"
    assert [vote.token for vote in rows_of(study)] == [kept.token]


def test_a_study_expires_by_the_servers_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    study = open_study(closes_at=time.time() + 3600)
    person = agreed(study.token)
    ballot = ballot_of(person)
    confirm(person.id, answer(ballot))
    monkeypatch.setattr(time, "time", lambda closes_at=study.design["closes_at"]: closes_at)
    with pytest.raises(NotOpen, match=r"is over. What you had confirmed is kept"):
        confirm(person.id, answer(ballot))
    assert len(rows_of(study)) == 1


def test_a_clock_that_is_set_back_changes_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    study = open_study(items=4, practice=0, repeats=0)
    person = agreed(study.token)
    items = []
    for clock in (1000.0, 2000.0, 500.0, 1500.0):
        monkeypatch.setattr(time, "time", lambda clock=clock: clock)
        ballot = ballot_of(person)
        items.append(ballot.input.text)
        confirm(person.id, answer(ballot))
    matches = matches_of(study.id)
    assert [match.at for match in matches] == [1000, 2000, 2000, 2000]
    assert [f"Text {match.item}." for match in matches] == items
    confirm(person.id, change := answer(ballot, 1, 1, 1))
    assert [vote.token for vote in rows_of(study) if vote.superseded_by is None][-1] == change.token


def test_a_ballot_of_somebody_else_is_unknown() -> None:
    study = open_study()
    mine, theirs = agreed(study.token), agreed(study.token)
    with pytest.raises(NotKnown, match="ballot: unknown"):
        confirm(theirs.id, answer(ballot_of(mine)))
    with pytest.raises(NotKnown, match="participant: unknown"):
        confirm(10**6, answer(ballot_of(mine)))
    assert rows_of(study) == []


@pytest.mark.parametrize("ranks", [(), (1, 2), (1, 2, 3, 4), (0, 1, 2), (1, 2, 4)])
def test_ranks_that_do_not_fit_are_refused(ranks: tuple[int, ...]) -> None:
    study = open_study()
    person = agreed(study.token)
    with pytest.raises(UsageError, match=r"ranks: must be 3 numbers from 1 to 3, one for each of A, B, C"):
        confirm(person.id, dataclasses.replace(answer(ballot_of(person)), ranks=ranks))
    assert rows_of(study) == []


@pytest.mark.parametrize(("said", "kept"), [(-3.0, 0), (float("nan"), 0), (float("inf"), 0), (1e9, 86_400), (2.5, 2.5)])
def test_no_vote_is_lost_for_a_browsers_odd_clock(said: float, kept: float) -> None:
    study = open_study()
    person = agreed(study.token)
    confirm(person.id, answer(ballot_of(person), seconds=said))
    assert [vote.seconds for vote in rows_of(study)] == [kept]


@pytest.mark.parametrize("token", ["", "short", "x" * 201])
def test_a_token_that_others_may_draw_is_refused(token: str) -> None:
    person = agreed(open_study().token)
    with pytest.raises(UsageError, match="token: must be 16 to 200 letters"):
        confirm(person.id, dataclasses.replace(answer(ballot_of(person)), token=token))


def test_twenty_people_vote_at_once_and_every_vote_is_found_once() -> None:
    study = open_study(items=6, practice=0, items_per_annotator=4, repeats=1)
    confirmed: list[str] = []

    def take_part(_: int) -> None:
        person = agreed(study.token)
        while ballot := next_ballot(person.id):
            confirmed.append(confirm(person.id, answer(ballot)).token)

    at_once(take_part)
    assert len(confirmed) == 20 * 5
    assert Counter(vote.token for vote in rows_of(study)) == Counter(confirmed)
    assert len(matches_of(study.id)) == len(confirmed)


def test_a_process_that_is_killed_loses_no_confirmed_vote() -> None:
    study = open_study()
    child = subprocess.Popen([sys.executable, "-c", KILLED, study.token], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    confirmed = [child.stdout.readline() for _ in range(60)]
    child.send_signal(signal.SIGKILL)
    confirmed += child.stdout.readlines()
    child.stdout.close()
    assert child.wait() == -signal.SIGKILL
    tokens = [line.strip() for line in confirmed if re.fullmatch(r"\S+\n", line)]
    found = Counter(vote.token for vote in rows_of(study))
    assert len(tokens) >= 60
    assert [found[token] for token in tokens] == [1] * len(tokens)
    assert set(found.values()) == {1}
    person = agreed(study.token)
    assert not confirm(person.id, answer(ballot_of(person))).before, "and voting goes on"


def test_a_study_that_does_not_exist_has_no_matches() -> None:
    with pytest.raises(NotKnown, match="there is none with the number 987654"):
        matches_of(987654)


@pytest.mark.parametrize("design", [text_design, image_design])
def test_a_study_of_a_model_is_opened_voted_on_and_closed(design: Callable[[Path], Design], tmp_path: Path) -> None:
    made = check(design(tmp_path))
    study = studies.open_study(studies.create(made).id)
    person = agreed(study.token)
    ballot = ballot_of(person)
    assert ballot.input.kind == made.kind
    assert len(ballot.maps) == len(made.shown)
    for one in ballot.maps:
        assert (one.grid is None) == (made.kind == "text")
        assert np.abs(one.scores).max() <= 1
    while ballot := next_ballot(person.id):
        confirm(person.id, answer(ballot, *range(1, 1 + len(made.shown))))
    studies.close(study.id)
    with pytest.raises(NotOpen, match="is over"):
        next_ballot(person.id)
    for match in matches_of(study.id):
        assert sorted(match.ranks) == sorted(method.id for method in made.shown)


def test_a_method_that_is_there_twice_is_told_apart_by_a_number() -> None:
    methods = (MethodChoice("lime", {"samples": 1}), MethodChoice("lrp"), MethodChoice("lime", {"samples": 2}))
    assert method_names(Design(methods=methods)) == ("lime 1", "lrp", "lime 3", "random")
