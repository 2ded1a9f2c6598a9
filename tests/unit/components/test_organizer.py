"""Who may act as the organizer, for every kind of connection, password and log-in."""

from __future__ import annotations

import logging

import pytest

from components.organizer import ADMINS, PASSWORD, TRUSTED, Visit, client_of, is_admin, is_local, is_password, providers
from engine.study.access import AttemptLimit, TooManyAttempts

SECRET = "correct horse £ staple"
USER = {"is_logged_in": True, "email": "Ada@Lab.example", "email_verified": True}


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD, SECRET)
    monkeypatch.setenv(ADMINS, " ada@lab.example , grace@lab.example,")


@pytest.mark.parametrize("address", [None, "127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"])
@pytest.mark.parametrize("host", ["localhost:8501", "127.0.0.1:8501", "[::1]:8501", "localhost"])
def test_a_browser_on_this_machine_is_here(address: str | None, host: str) -> None:
    assert is_local(Visit(address, {"host": host, "origin": f"http://{host}"}))


@pytest.mark.parametrize(
    "address", ["10.0.0.7", "192.168.1.4", "2001:db8::1", "0.0.0.0", "::ffff:10.0.0.7", "unix:", ""]
)
def test_another_machine_is_not_here(address: str) -> None:
    assert not is_local(Visit(address, {"host": "localhost:8501"}))


@pytest.mark.parametrize(
    "header",
    [
        {"x-forwarded-for": "127.0.0.1"},
        {"x-forwarded-proto": "https"},
        {"forwarded": "for=127.0.0.1"},
        {"x-real-ip": "127.0.0.1"},
        {"via": "1.1 proxy"},
        {"host": "study.example.org"},
        {"host": "evil.example:8501"},
        {"host": "localhost.evil.example"},
        {"origin": "https://study.example.org"},
        {"origin": "null"},
        {"host": "[nonsense"},
        {"host": ""},
    ],
)
def test_a_proxy_or_another_name_is_not_here(header: dict[str, str]) -> None:
    assert not is_local(Visit(None, {"host": "localhost:8501", **header}))


def test_tries_are_counted_by_the_address_that_the_nearest_proxy_saw() -> None:
    assert client_of(Visit("10.0.0.7", {"x-forwarded-for": "1.2.3.4"})) == "10.0.0.7"
    assert client_of(Visit(None, {"x-forwarded-for": "forged, 1.2.3.4"})) == "1.2.3.4"
    assert client_of(Visit(None)) == client_of(Visit("127.0.0.1")) == "this machine"
    assert client_of(Visit("2001:db8::1")) == client_of(Visit("2001:db8::2")), "of one host"


def test_the_password_is_right_letter_by_letter() -> None:
    tries = AttemptLimit()
    assert is_password(SECRET, Visit(), tries)
    for wrong in ("", SECRET[:-1], SECRET.upper(), f"{SECRET} "):
        assert not is_password(wrong, Visit(), tries)


def test_without_a_password_none_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD, "")
    assert not is_password("", Visit(), AttemptLimit())


def test_after_five_wrong_ones_even_the_right_one_waits_and_others_do_not() -> None:
    tries, elsewhere = AttemptLimit(), Visit("10.0.0.7")
    assert not any(is_password("guess", elsewhere, tries) for _ in range(5))
    with pytest.raises(TooManyAttempts, match=r"Too many wrong attempts. Wait \d+ seconds"):
        is_password(SECRET, elsewhere, tries)
    assert is_password(SECRET, Visit("10.0.0.8"), tries)


def test_two_wrong_ones_keep_nobody_out_and_a_right_one_does_not_wipe_them_out() -> None:
    tries, elsewhere = AttemptLimit(), Visit("10.0.0.7")
    for given in ("guess", "guess", SECRET, SECRET, "guess", SECRET, "guess", SECRET):
        assert is_password(given, elsewhere, tries) is (given == SECRET)
    assert not is_password("guess", elsewhere, tries)
    with pytest.raises(TooManyAttempts):
        is_password(SECRET, elsewhere, tries)


def test_addresses_that_change_do_not_get_round_the_count() -> None:
    tries = AttemptLimit()
    many = [Visit(None, {"x-forwarded-for": f"10.0.0.{number}"}) for number in range(101)]
    assert not any(is_password("guess", visit, tries) for visit in many[:100])
    with pytest.raises(TooManyAttempts):
        is_password(SECRET, many[100], tries)


def test_the_log_names_the_address_and_never_what_was_typed(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        is_password("my guess", Visit("10.0.0.7\nforged line"), AttemptLimit())
        is_password("my guess", Visit("10.0.0.7"), AttemptLimit())
        is_password(SECRET, Visit("10.0.0.7"), AttemptLimit())
    assert caplog.messages == [f"organizer: wrong password from {source!r}" for source in ("unknown", "10.0.0.7")]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, True),
        ({"email": " grace@LAB.example "}, True),
        ({"email": "eve@lab.example"}, False),
        ({"email": ""}, False),
        ({"email": None}, False),
        ({"is_logged_in": False}, False),
        ({"is_logged_in": None}, False),
        ({"email_verified": False}, False),
        ({"email_verified": "false"}, False),
        ({"email_verified": None}, False),
        ({"email_verified": "true"}, True),
    ],
)
def test_who_is_listed_and_checked_is_an_organizer(told: dict[str, object], expected: bool) -> None:
    assert is_admin({**USER, **told}) is expected


def test_a_provider_that_says_nothing_of_checking_is_believed_only_where_that_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    silent = {name: value for name, value in USER.items() if name != "email_verified"}
    assert not is_admin(silent)
    monkeypatch.setenv(TRUSTED, "1")
    assert is_admin(silent)
    assert not is_admin({**silent, "email_verified": False})


def test_with_an_empty_list_nobody_is_an_organizer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ADMINS, " , ")
    assert not is_admin(USER)
    assert not is_admin({"is_logged_in": True, "email": ""})


def test_every_provider_of_the_secrets_has_its_button() -> None:
    shared = {"redirect_uri": "https://a.example/oauth2callback", "cookie_secret": "x"}
    assert providers({**shared, "client_id": "a"}) == {"Log in with an account": None}
    assert providers({**shared, "okta": {"client_id": "a"}}) == {"Log in with okta": "okta"}
    assert providers(shared) == {}
