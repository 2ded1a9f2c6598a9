"""Who may open which page: a password, a log-in, or being on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from components.admission import (
    TRIES,
    Visit,
    from_here,
    has_password,
    is_admin,
    is_password,
    providers,
)
from components.frame import PageEntry, heading
from components.styles import use_styles
from components.trouble import say_error, say_note, sentence
from engine.access import ADMINS, OPEN, PASSWORD
from engine.errors import ExegesisError

KNOWN, TYPED, SAID = "organiser_known", "organiser.password", "organiser_said"
NOT_OPEN = (
    "Exegesis opens only in a browser on the machine that runs it. To open it from elsewhere, set "
    f"{PASSWORD} there and start Exegesis again, or let everybody in with: exegesis app --open."
)
OPEN_HERE = f"No password is set: only this machine opens this page. Before others or a proxy do, set {PASSWORD}."
CLOSED = (
    "This page is the organiser's, and opens only in a browser on the machine that runs Exegesis. To open it from "
    f"elsewhere, set {PASSWORD} there and start Exegesis again."
)
NOT_LISTED = (
    f"You are logged in, but not as an organiser. Log in with an address that is listed in {ADMINS} on the server."
)
BACK = "Logging in with an account leads back to Home: open this page from there."


def is_organiser() -> bool:
    """Whether the visitor has logged in as the organiser or, where nobody can log in, is on this machine."""
    user = _user()
    if not has_password() and user is None:
        return from_here(visit())
    return _knows_password() or (user is not None and is_admin(user))


def is_stranger() -> bool:
    """Whether a page is being drawn for somebody who is not the organiser."""
    return get_script_run_ctx(suppress_warning=True) is not None and not is_organiser()


def admit(entry: PageEntry) -> bool:
    """Whether the visitor may open a page that shows models; if not, the log-in or the reason is drawn."""
    locked = has_password() or _user() is not None
    if is_organiser():
        return organiser() if locked else True
    if not locked and os.environ.get(OPEN) == "1":
        return True
    use_styles()
    heading(entry)
    if locked:
        return organiser()
    say_error(NOT_OPEN)
    return False


def organiser() -> bool:
    """Whether the page may go on; if not, the log-in or the reason is drawn in its place."""
    user = _user()
    if not has_password() and user is None:
        return _this_machine()
    if not is_organiser():
        _log_in(user)
        return False
    _log_out(_forget if _knows_password() else st.logout)
    return True


def _knows_password() -> bool:
    return has_password() and st.session_state.get(KNOWN) is True


def _this_machine() -> bool:
    if not from_here(visit()):
        say_error(CLOSED)
        return False
    say_note(OPEN_HERE)
    return True


def _log_in(user: Mapping[str, object] | None) -> None:
    with st.container(width=420):
        if has_password():
            _password()
        if user is not None and user.get("is_logged_in"):
            say_error(NOT_LISTED)
            _log_out(st.logout)
        elif user is not None:
            _with_providers()
        if said := st.session_state.pop(SAID, ""):
            say_error(said)


def _password() -> None:
    with st.form("organiser", border=False):
        st.text_input("The organiser's password", type="password", key=TYPED, autocomplete="current-password")
        st.form_submit_button("Log in", type="primary", on_click=_check)


def _check() -> None:
    given = st.session_state.pop(TYPED, "")
    try:
        st.session_state[KNOWN] = is_password(given, visit(), TRIES)
        if not st.session_state[KNOWN]:
            st.session_state[SAID] = f"This is not the password. It is what {PASSWORD} is on the server."
    except ExegesisError as error:
        st.session_state[SAID] = sentence(error)


def _with_providers() -> None:
    for label, name in providers(st.secrets["auth"]).items():
        if st.button(label, key=f"organiser.provider.{name or ''}", icon=":material/login:"):
            _go_to(name)
    st.caption(BACK)


def _go_to(provider: str | None) -> None:
    try:
        st.login(provider)
    except Exception as error:
        say_error(f"Logging in is set up wrongly: {error}. It needs the packages of exegesis[login] too.")


def _log_out(action: Callable[[], None]) -> None:
    with st.container(horizontal=True, horizontal_alignment="right"):
        st.button("Log out", key="organiser.out", type="tertiary", on_click=action)


def _forget() -> None:
    st.session_state.pop(KNOWN, None)


def visit() -> Visit:
    """The connection of the page that is being drawn."""
    told = st.context.headers
    return Visit(st.context.ip_address, {name.lower(): ", ".join(told.get_all(name)) for name in told})


def _user() -> Mapping[str, object] | None:
    """What a log-in provider says of who asks; None where none is set up."""
    told = st.user.to_dict()
    return told if "is_logged_in" in told else None
