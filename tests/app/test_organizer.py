"""The gate before the organizer's pages as a script: the password, a log-in, this machine, and nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import PropertyMock, patch

import pytest
import streamlit as st
from streamlit.runtime.context import ContextProxy, StreamlitHeaders
from streamlit.testing.v1 import AppTest
from streamlit.user_info import UserInfoProxy

from components import organizer
from components.organizer import ADMINS, PASSWORD
from engine.study.access import AttemptLimit
from tests.alerts import errors, notes

SECRET = "correct horse"
LISTED = {"is_logged_in": True, "email": "ada@lab.example", "email_verified": True}
STRANGER = {"is_logged_in": True, "email": "eve@lab.example", "email_verified": True}
NOBODY = {"is_logged_in": False}


def gated() -> None:
    import streamlit as st

    from components.organizer import admit_organizer

    if admit_organizer():
        st.text("the organizer's")


def opened() -> AppTest:
    return AppTest.from_function(gated, default_timeout=60).run()


def inside(page: AppTest) -> bool:
    assert not page.exception
    return [text.value for text in page.text] == ["the organizer's"]


def tried(page: AppTest, password: str) -> AppTest:
    page.text_input[0].set_value(password)
    return page.button[0].click().run()


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings, and no wrong tries from other tests."""
    monkeypatch.delenv(PASSWORD, raising=False)
    monkeypatch.setenv(ADMINS, "ada@lab.example")
    monkeypatch.setattr(organizer, "TRIES", AttemptLimit())


@pytest.fixture
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD, SECRET)


@pytest.fixture
def proxied() -> Iterator[None]:
    """A connection that a proxy on this machine handed on."""
    headers = StreamlitHeaders([("Host", "localhost:8501"), ("X-Forwarded-For", "1.2.3.4")])
    with patch.object(ContextProxy, "headers", new_callable=PropertyMock, return_value=headers):
        yield


def logged_in(user: dict[str, object]) -> object:
    return patch.object(UserInfoProxy, "to_dict", return_value=user)


def test_without_a_password_this_machine_comes_in_and_is_told() -> None:
    page = opened()
    assert inside(page)
    assert "Only reachable from this machine." in notes(page)[0]
    assert PASSWORD in notes(page)[0]


@pytest.mark.usefixtures("proxied")
def test_without_a_password_nobody_comes_in_from_elsewhere() -> None:
    page = opened()
    assert not inside(page)
    assert f"set {PASSWORD} there" in errors(page)[0]
    assert not page.text_input


@pytest.mark.usefixtures("password")
def test_with_a_password_this_machine_must_know_it_too() -> None:
    page = opened()
    assert not inside(page)
    assert not inside(tried(page, "correct house"))
    assert "This is not the password" in errors(page)[0]
    assert inside(tried(page, SECRET))
    assert SECRET not in repr(page.session_state)
    assert inside(page.run())


@pytest.mark.usefixtures("password")
def test_after_logging_out_the_password_is_asked_again() -> None:
    page = tried(opened(), SECRET)
    page.button(key="organizer.out").click().run()
    assert not inside(page)
    assert page.text_input


@pytest.mark.usefixtures("password", "proxied")
def test_wrong_tries_of_all_sessions_count_together() -> None:
    for _ in range(5):
        assert not inside(tried(opened(), "guess"))
        st.cache_resource.clear()  # as any browser may ask Streamlit
    page = tried(opened(), SECRET)
    assert not inside(page)
    assert "Too many wrong attempts" in errors(page)[0]


@pytest.mark.usefixtures("proxied")
def test_who_is_listed_comes_in_from_anywhere() -> None:
    with logged_in(LISTED):
        page = opened()
    assert inside(page)
    assert [button.label for button in page.button] == ["Log out"]


def test_who_is_not_listed_stays_out_even_on_this_machine() -> None:
    with logged_in(STRANGER):
        page = opened()
    assert not inside(page)
    assert f"listed in {ADMINS}" in errors(page)[0]


def test_who_is_not_logged_in_gets_a_button_for_each_provider() -> None:
    secrets = {"auth": {"client_id": "a", "okta": {"client_id": "b"}}}
    with logged_in(NOBODY), patch.object(st, "secrets", secrets), patch.object(st, "login") as login:
        page = opened()
        assert not inside(page)
        assert [button.label for button in page.button] == ["Log in with an account", "Log in with okta"]
        page.button[1].click().run()
    login.assert_called_once_with("okta")


def test_a_log_in_that_is_set_up_wrongly_is_said() -> None:
    failing = patch.object(st, "login", side_effect=RuntimeError("no Authlib"))
    with logged_in(NOBODY), patch.object(st, "secrets", {"auth": {"client_id": "a"}}), failing:
        page = opened()
        page.button[0].click().run()
    assert not page.exception
    assert "no Authlib" in errors(page)[0]


@pytest.mark.usefixtures("password")
def test_with_both_either_lets_in() -> None:
    with logged_in(NOBODY), patch.object(st, "secrets", {"auth": {"client_id": "a"}}):
        page = opened()
        assert [button.label for button in page.button] == ["Log in", "Log in with an account"]
        assert inside(tried(page, SECRET))
    with logged_in(LISTED):
        assert inside(opened())
