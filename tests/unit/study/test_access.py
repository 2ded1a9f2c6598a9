"""Codes of participants, and how often a secret may be wrong."""

from __future__ import annotations

import hashlib
import math
import threading

import pytest

from engine.errors import UsageError
from engine.study.access import (
    ALPHABET,
    AttemptLimit,
    TooManyAttempts,
    attempt_source,
    hash_code,
    matches_hash,
    new_code,
    new_pseudonym,
    new_token,
    read_code,
)


def test_a_code_is_hard_to_guess_and_easy_to_type() -> None:
    codes = {new_code() for _ in range(500)}
    assert len(codes) == 500
    assert {tuple(len(group) for group in code.split("-")) for code in codes} == {(4, 4, 4, 4)}
    assert set("".join(codes)) - {"-"} == set(ALPHABET), "each letter is drawn"
    assert not set(ALPHABET) & set("01ilo")
    assert 16 * math.log2(len(set(ALPHABET))) >= 75


def test_names_and_tokens_do_not_repeat() -> None:
    assert len({new_pseudonym() for _ in range(500)}) == 500
    assert len({new_token() for _ in range(500)}) == 500
    assert len(new_token()) >= 128 / 6


@pytest.mark.parametrize(
    "typed", ["abcd-efgh-jkmn-pqrs", " ABCD EFGH jkmn pqrs\n", "abcdefghjkmnpqrs", "abcd–efgh.jkmn_pqrs"]
)
def test_a_code_is_read_however_it_is_typed(typed: str) -> None:
    assert read_code(typed) == "abcd-efgh-jkmn-pqrs"


@pytest.mark.parametrize("typed", ["", "abcd", "abcd-efgh-jkmn-pqro", "abcd-efgh-jkmn-pqrst", "ábcd-efgh-jkmn-pqrs"])
def test_what_is_no_code_is_told_without_repeating_it(typed: str) -> None:
    with pytest.raises(UsageError, match=r"Code: must be 4 groups of 4 letters and digits.*Check what") as told:
        read_code(typed)
    assert not typed or typed not in str(told.value)


def test_only_a_salted_hash_is_kept() -> None:
    kept = hash_code("abcd-efgh-jkmn-pqrs", "salt")
    assert kept == hashlib.sha256(b"salt:abcd-efgh-jkmn-pqrs").hexdigest()
    assert kept != hash_code("abcd-efgh-jkmn-pqrs", "other salt")
    assert matches_hash("ABCD efgh JKMN pqrs", "salt", kept)
    assert not matches_hash("abcd-efgh-jkmn-pqrt", "salt", kept)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_after_too_many_wrong_tries_one_waits() -> None:
    clock = Clock()
    tries = AttemptLimit(each=3, seconds=60, clock=clock)
    for _ in range(3):
        tries.begin("here")
        clock.now += 10
    with pytest.raises(TooManyAttempts, match=r"Wait 30 seconds"):
        tries.begin("here")
    tries.begin("elsewhere")
    clock.now += 30
    tries.begin("here")
    with pytest.raises(TooManyAttempts, match=r"Wait 10 seconds"):
        tries.begin("here")


def test_right_tries_are_taken_back_however_many() -> None:
    tries = AttemptLimit(each=2)
    for _ in range(5):
        first, second = tries.begin("here"), tries.begin("here")
        tries.withdraw(first)
        tries.withdraw(second)


def test_who_mistypes_twice_and_is_then_right_goes_on() -> None:
    tries = AttemptLimit()
    for _ in range(2):
        tries.begin("here")
    for _ in range(10):
        tries.withdraw(tries.begin("here"))


def test_a_right_try_takes_no_wrong_one_back() -> None:
    tries = AttemptLimit(each=5, together=5)
    for _ in range(4):
        tries.withdraw(tries.begin("here"))
        tries.begin("here")
    tries.withdraw(tries.begin("here"))
    tries.begin("here")
    for source in ("here", "elsewhere"):
        with pytest.raises(TooManyAttempts):
            tries.begin(source)


def test_many_sources_together_are_limited_too() -> None:
    tries = AttemptLimit(each=2, together=10)
    for source in range(10):
        tries.begin(str(source))
    with pytest.raises(TooManyAttempts):
        tries.begin("another")


def test_tries_at_once_do_not_slip_past() -> None:
    tries, let = AttemptLimit(each=5), threading.Barrier(20)
    begun: list[int] = []

    def guess(n: int) -> None:
        let.wait()
        try:
            tries.begin("here")
        except TooManyAttempts:
            return
        begun.append(n)

    threads = [threading.Thread(target=guess, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(begun) == 5


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        (None, "unknown"),
        ("testclient", "unknown"),
    ],
)
def test_an_owner_of_many_addresses_is_one_source(address: str | None, source: str) -> None:
    assert attempt_source(address) == source
