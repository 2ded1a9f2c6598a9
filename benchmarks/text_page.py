"""The Text page with nine methods, as benchmarks open it: its address, its cached answers, when it has settled."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page

from tests.browser.server import Server

MODEL = "reviews-minilm"
DATA = "reviews"
TIMEOUT_MS = 300_000
QUICK = ("gradient_x_input", "gradient_l2", "gradient", "attention_mean", "attention_rollout", "attention_last_layer",
         "attention_logits", "attention_logits_last", "random")  # fmt: skip
"""Nine methods that are quick on long texts too."""
NINTH = "lime"
SETTLED = '[data-testid="stApp"][data-test-script-state="notRunning"]'
MAP = ".st-key-text_rows .xg-map"
TROUBLE = '[data-testid="stException"], [data-testid="stAlert"], .xg-error'
SMALL = {"kernel_shap.n_samples": "32", "lime.n_samples": "32", "integrated_gradients.steps": "fixed",
         "integrated_gradients.n_steps": "4"}  # fmt: skip
"""Budgets for where the numbers do not matter, as a link says them."""


def nine() -> tuple[str, ...]:
    """The methods that the page starts with and one more."""
    from components.text.state import START

    return (*START, NINTH)


def query(
    focus: Mapping[str, str], methods: Sequence[str] | None = None, budgets: Mapping[str, str] | None = None
) -> str:
    """The query of a link, for the nine methods by default. `focus`: as `text_choice.write_text_focus`."""
    named = [("method", id) for id in methods or nine()]
    return urlencode([("model", MODEL), *focus.items(), *named, *(budgets or {}).items()])


def address(server: Server, focus: Mapping[str, str], methods: Sequence[str] | None = None) -> str:
    return f"{server.url}/text?{query(focus, methods)}"


def example(index: int) -> dict[str, str]:
    """A link's words for an example of the data set."""
    return {"data": DATA, "index": str(index)}


def use_home(home: Path) -> None:
    """This process computes and keeps in the server's home."""
    os.environ["EXEGESIS_HOME"] = str(home)


def fill_cache(indexes: Iterable[int]) -> None:
    """Computes what the page shows of these examples, at the default parameters."""
    from engine.data.datasets import load
    from engine.explain import explain_many
    from engine.request import Request

    data = load(DATA)
    explain_many([Request(MODEL, method, data[index].example) for index in indexes for method in nine()])


def long_text(words: int, seed: int = 0) -> str:
    """Words of the data set's texts, shuffled."""
    from engine.data.datasets import load

    data = load(DATA)
    found = [word for index in range(len(data)) for word in data[index].text.split()]
    return " ".join(random.Random(seed).choices(found, k=words))


def wait_for_maps(page: Page) -> None:
    """Until the script has ended and all nine maps are there."""
    page.locator(MAP).nth(len(nine()) - 1).wait_for(timeout=TIMEOUT_MS)
    page.locator(SETTLED).wait_for(timeout=TIMEOUT_MS)


def change_unit(page: Page, unit: str) -> None:
    """`word` or `token`, by the control above the maps."""
    page.get_by_test_id("stButtonGroup").get_by_text(f"{unit.title()}s", exact=True).click()
    page.wait_for_url(lambda url: ("unit=word" in url) == (unit == "word"), timeout=TIMEOUT_MS)
    wait_for_maps(page)


def change_example(page: Page, index: int) -> None:
    """Another example of the data set, by its number."""
    box = page.get_by_role("spinbutton", name="Example, 0 to")
    box.fill(str(index))
    box.press("Enter")
    page.wait_for_url(lambda url: f"index={index}&" in f"{url}&", timeout=TIMEOUT_MS)
    wait_for_maps(page)
