"""Organizers log in with a real OpenID provider, from the Study page to the Study page; others do not get in."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from components.navigation import STUDY
from components.organizer import ADMINS, BACK, NOT_LISTED, PASSWORD
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.provider import CLIENT, Provider, providing
from tests.browser.server import Server, running
from tests.browser.waiting import go_to

ADA = {"email": "Ada@lab.example", "email_verified": True}
EVE = {"email": "eve@lab.example", "email_verified": True}
NEW, LOG_IN = "New blank study", "Log in with an account"
SETTINGS = """
[auth]
redirect_uri = "http://localhost:{{port}}/oauth2callback"
cookie_secret = "{cookie}"
client_id = "{client}"
client_secret = "{secret}"
server_metadata_url = "{metadata}"
"""


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with providing() as started:
        yield started


@pytest.fixture(autouse=True)
def sound(provider: Provider) -> None:
    """Its tokens are signed by the key that it shows, and nobody has logged out."""
    provider.signs, provider.ended = None, []


@pytest.fixture(scope="module")
def server(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose account on the machine has the secrets of a log-in, and that lists one organizer."""
    account = tmp_path_factory.mktemp("account")
    _set_up(account / ".streamlit" / "secrets.toml", provider)
    told = {"HOME": str(account), ADMINS: "ada@lab.example", PASSWORD: ""}
    with running(tmp_path_factory.mktemp("server"), environment=told) as started:
        yield started


def _set_up(path: Path, provider: Provider) -> None:
    path.parent.mkdir()
    known = {"client": CLIENT, "secret": provider.secret, "metadata": provider.metadata_url}
    path.write_text(SETTINGS.format(cookie=secrets.token_urlsafe(32), **known), encoding="utf-8")
    path.chmod(0o600)


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def log_in(page: Page, server: Server) -> None:
    """Through the provider and back to Home, then on to the Study page, as the page says.

    Streamlit shows a page before it writes its address: who then waits for another one waits for this one first.
    """
    expect(page.get_by_text(BACK)).to_be_visible(timeout=TIMEOUT_MS)
    button(page, LOG_IN).click()
    page.wait_for_url(f"{server.url}/", timeout=TIMEOUT_MS)
    go_to(page, STUDY)
    page.wait_for_url(f"{server.url}/study", timeout=TIMEOUT_MS)


def log_out(page: Page, server: Server) -> None:
    """Through the provider and back to Home."""
    button(page, "Log out").click()
    page.wait_for_url(f"{server.url}/", timeout=TIMEOUT_MS)


def expect_inside(page: Page) -> None:
    expect(button(page, NEW)).to_be_visible(timeout=TIMEOUT_MS)


def expect_outside(page: Page, said: str) -> None:
    expect(page.get_by_text(said)).to_be_visible(timeout=TIMEOUT_MS)
    expect(button(page, NEW)).to_have_count(0)


def test_an_organizer_logs_in_and_out(server: Server, provider: Provider, open_page: Callable[..., Page]) -> None:
    provider.claims = ADA
    page = open_page(f"{server.url}/study")
    log_in(page, server)
    expect_inside(page)
    stranger = open_page(f"{server.url}/study", apart=True)
    expect(button(stranger, LOG_IN)).to_be_visible(timeout=TIMEOUT_MS)
    expect(button(stranger, NEW)).to_have_count(0)

    log_out(page, server)
    assert provider.ended == [CLIENT]
    page.goto(f"{server.url}/study")
    expect(button(page, LOG_IN)).to_be_visible(timeout=TIMEOUT_MS)
    expect(button(page, NEW)).to_have_count(0)


def test_others_stay_out_and_may_log_in_as_somebody_else(
    server: Server, provider: Provider, open_page: Callable[..., Page]
) -> None:
    provider.claims = EVE
    page = open_page(f"{server.url}/study")
    log_in(page, server)
    expect_outside(page, NOT_LISTED)
    log_out(page, server)
    assert provider.ended == [CLIENT]
    provider.claims = ADA
    page.goto(f"{server.url}/study")
    log_in(page, server)
    expect_inside(page)


def test_a_token_that_somebody_else_signed_lets_nobody_in(
    server: Server, provider: Provider, open_page: Callable[..., Page]
) -> None:
    provider.claims, provider.signs = ADA, Provider("").shown
    page = open_page(f"{server.url}/study")
    log_in(page, server)
    expect(button(page, LOG_IN)).to_be_visible(timeout=TIMEOUT_MS)
    expect(button(page, NEW)).to_have_count(0)
    assert "BadSignatureError" in server.log
