"""Access control for the organizer's pages: by a password, a log-in, or a browser on this machine."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from components.errors import describe_error, show_error, show_note
from components.navigation import PageEntry, heading
from components.styles import use_styles
from engine.access import ADMINS, OPEN, PASSWORD
from engine.errors import ExegesisError
from engine.study import access
from engine.study.access import AttemptLimit, TooManyAttempts

LOG = logging.getLogger(__name__)
TRUSTED = "EXEGESIS_TRUST_EMAILS"
"""Environment variable: 1 if the provider verifies all addresses but does not report whether one is verified."""
TRIES = AttemptLimit()
"""The attempts of all sessions. They are not in Streamlit's cache, which any browser can clear."""
HERE = "this machine"
FORWARDED = {"forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip"}
"""Headers that a proxy adds, in addition to those that begin with x-forwarded."""
UNLOCKED_KEY, PASSWORD_KEY, FAILURE_KEY = "organizer_known", "organizer.password", "organizer_said"
NOT_OPEN = (
    "Exegesis opens only in a browser on the machine that runs it. To open it from elsewhere, set "
    f"{PASSWORD} there and start Exegesis again, or let everybody in with: exegesis app --open."
)
OPEN_HERE = f"Only reachable from this machine. Set {PASSWORD} before exposing it."
CLOSED = (
    "This page is the organizer's, and opens only in a browser on the machine that runs Exegesis. To open it from "
    f"elsewhere, set {PASSWORD} there and start Exegesis again."
)
NOT_LISTED = (
    f"You are logged in, but not as an organizer. Log in with an address that is listed in {ADMINS} on the server."
)
BACK = "Logging in with an account leads back to Home: open this page from there."


@dataclass(frozen=True)
class Visit:
    """A browser's connection. `address`: None for this machine. `headers`: by their names in lower case."""

    address: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def current_visit() -> Visit:
    """Return the connection of the page that is being drawn."""
    headers = st.context.headers
    return Visit(st.context.ip_address, {name.lower(): ", ".join(headers.get_all(name)) for name in headers})


def is_organizer() -> bool:
    """Whether the visitor has logged in as the organizer or, if no log-in is configured, is on this machine."""
    user = _user()
    if not has_password() and user is None:
        return is_local(current_visit())
    return _knows_password() or (user is not None and is_admin(user))


def is_stranger() -> bool:
    """Whether a page is being drawn for a visitor other than the organizer."""
    return get_script_run_ctx(suppress_warning=True) is not None and not is_organizer()


def admit_visitor(entry: PageEntry) -> bool:
    """Whether the visitor may open a page of models. If not, draw the log-in or the reason."""
    locked = has_password() or _user() is not None
    if is_organizer():
        return admit_organizer() if locked else True
    if not locked and os.environ.get(OPEN) == "1":
        return True
    use_styles()
    heading(entry)
    if locked:
        return admit_organizer()
    show_error(NOT_OPEN)
    return False


def admit_organizer() -> bool:
    """Whether the visitor may open a page of the organizer. If not, draw the log-in or the reason."""
    user = _user()
    if not has_password() and user is None:
        if not is_local(current_visit()):
            show_error(CLOSED)
            return False
        show_note(OPEN_HERE)
        return True
    if not is_organizer():
        _draw_log_in(user)
        return False
    _draw_log_out(_lock if _knows_password() else st.logout)
    return True


def _knows_password() -> bool:
    return has_password() and st.session_state.get(UNLOCKED_KEY) is True


def _user() -> Mapping[str, object] | None:
    """Return the visitor's claims from the log-in provider, or None if none is configured."""
    user = st.user.to_dict()
    return user if "is_logged_in" in user else None


def _draw_log_in(user: Mapping[str, object] | None) -> None:
    with st.container(width=420):
        if has_password():
            with st.form("organizer", border=False):
                st.text_input(
                    "The organizer's password", type="password", key=PASSWORD_KEY, autocomplete="current-password"
                )
                st.form_submit_button("Log in", type="primary", on_click=_check_password)
        if user is not None and user.get("is_logged_in"):
            show_error(NOT_LISTED)
            _draw_log_out(st.logout)
        elif user is not None:
            for label, name in providers(st.secrets["auth"]).items():
                if st.button(label, key=f"organizer.provider.{name or ''}", icon=":material/login:"):
                    _log_in_with(name)
            st.caption(BACK)
        if failure := st.session_state.pop(FAILURE_KEY, ""):
            show_error(failure)


def _check_password() -> None:
    typed = st.session_state.pop(PASSWORD_KEY, "")
    try:
        st.session_state[UNLOCKED_KEY] = is_password(typed, current_visit(), TRIES)
        if not st.session_state[UNLOCKED_KEY]:
            st.session_state[FAILURE_KEY] = f"This is not the password. It is what {PASSWORD} is on the server."
    except ExegesisError as error:
        st.session_state[FAILURE_KEY] = describe_error(error)


def _log_in_with(provider: str | None) -> None:
    try:
        st.login(provider)
    except Exception as error:
        show_error(f"Logging in is set up wrongly: {error}. It needs the packages of exegesis[login] too.")


def _draw_log_out(action: Callable[[], None]) -> None:
    with st.container(horizontal=True, horizontal_alignment="right"):
        st.button("Log out", key="organizer.out", type="tertiary", on_click=action)


def _lock() -> None:
    st.session_state.pop(UNLOCKED_KEY, None)


def is_local(visit: Visit) -> bool:
    """Whether the browser runs on this machine, without a proxy in between, and opened a local address.

    The opened address reveals a proxy that sends no headers, and DNS rebinding.
    """
    opened = [visit.headers[name] for name in ("host", "origin") if name in visit.headers]
    direct = _is_local_address(visit.address) and not is_forwarded(visit)
    return direct and all(_is_local_address(_host(name)) for name in opened)


def is_forwarded(visit: Visit) -> bool:
    """Whether a header shows that the request came through a proxy."""
    return any(name in FORWARDED or name.startswith("x-forwarded") for name in visit.headers)


def client_of(visit: Visit) -> str:
    """Return the source by which attempts are limited; behind a local proxy, the address that the proxy reports."""
    if not _is_local_address(visit.address):
        return access.attempt_source(visit.address)
    behind = visit.headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
    return access.attempt_source(behind) if behind else HERE


def has_password() -> bool:
    """Whether the organizer has set a password."""
    return bool(os.environ.get(PASSWORD))


def is_password(typed: str, visit: Visit, tries: AttemptLimit) -> bool:
    """Whether `typed` is the organizer's password; a wrong one is logged without its text. Errors: `TooManyAttempts`.

    Digests are compared, so that the time reveals neither the length nor the position of the first wrong letter.
    """
    source, password = client_of(visit), os.environ.get(PASSWORD, "")
    try:
        begun = tries.begin(source)
    except TooManyAttempts:
        LOG.warning("organizer: too many wrong passwords from %r", source)
        raise
    if not password or not hmac.compare_digest(_digest(typed), _digest(password)):
        LOG.warning("organizer: wrong password from %r", source)
        return False
    tries.withdraw(begun)
    return True


def is_admin(user: Mapping[str, object]) -> bool:
    """Whether a user of a log-in provider is an organizer, that is, has a verified and listed address."""
    verified = user.get("email_verified", os.environ.get(TRUSTED) == "1")
    if user.get("is_logged_in") is not True or str(verified).lower() != "true":
        return False
    admins = {address.strip().casefold() for address in os.environ.get(ADMINS, "").split(",") if address.strip()}
    return str(user.get("email") or "").strip().casefold() in admins


def providers(auth: Mapping[str, object]) -> dict[str, str | None]:
    """Return the label of each log-in provider's button and its name for Streamlit; None is the unnamed provider."""
    unnamed: dict[str, str | None] = {"Log in with an account": None} if "client_id" in auth else {}
    return unnamed | {f"Log in with {name}": name for name, value in auth.items() if isinstance(value, Mapping)}


def _is_local_address(address: str | None) -> bool:
    if address is None or address == "localhost":
        return True
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return (getattr(parsed, "ipv4_mapped", None) or parsed).is_loopback


def _host(name: str) -> str:
    """Return the host in `localhost:8501`, `[::1]:8501` or `http://localhost:8501`, or "unknown"."""
    try:
        return urlsplit(name if "//" in name else f"//{name}").hostname or "unknown"
    except ValueError:
        return "unknown"


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
