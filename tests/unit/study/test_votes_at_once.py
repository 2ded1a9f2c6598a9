"""Answers that come twice, in two tabs or from many people at once, and a process that is killed: each is kept once."""

from __future__ import annotations

import dataclasses
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable

import pytest

from engine.errors import UsageError
from engine.study.annotators import confirm
from engine.study.ballots import next_ballot
from engine.study.counted_votes import counted_votes, to_rankings
from tests.project import ROOT
from tests.unit.study.polls import agreed, answer, ballot_of, open_study, rows_of

pytestmark = pytest.mark.usefixtures("store")
KILLED = """
import sys, threading
from tests.unit.study.polls import agreed, answer
from engine.study.ballots import next_ballot
from engine.study.annotators import confirm

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


def test_the_same_answer_sent_twice_is_found_once() -> None:
    study = open_study()
    person = agreed(study.token)
    given = answer(ballot_of(person))
    assert not confirm(person.id, given).before
    assert confirm(person.id, given).before
    at_once(lambda _: None if confirm(person.id, given).before else pytest.fail("was new"), threads=4)
    assert len(rows_of(study)) == 1
    with pytest.raises(UsageError, match="token: belongs to another answer"):
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
    (counted,) = counted_votes(study.id)
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
    assert len(to_rankings(counted_votes(study.id))) == len(confirmed)


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
