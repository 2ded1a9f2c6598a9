"""The Adversarial page on a tiny model: a run on request, its result, what cannot be attacked, many examples."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from tests.project import ROOT
from tests.tiny import save_checkpoint

TEXT = "a slow film with a fine and funny end"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


def opened(**query: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "adversarial.py"), default_timeout=240)
    for name, value in query.items():
        page.query_params[name] = value
    return page.run()


def said(page: AppTest) -> str:
    return "\n".join([element.proto.body for element in page.get("html")] + [one.value for one in page.caption])


def button(page: AppTest, label: str) -> list[object]:
    return [one for one in page.button if one.label == label]


def test_an_attack_runs_when_it_is_asked_for_and_shows_both_objectives(model: str) -> None:
    page = opened(model=model, text=TEXT, steps="4", top_k="3")
    assert not page.exception
    assert "2 attacks of at most 4 steps: 8 passes" in said(page)
    assert "Rank change" not in said(page)
    [run] = button(page, "Run the attack")
    run.click()  # type: ignore[attr-defined]
    page.run()
    assert not page.exception
    told = said(page)
    for title in ("Before", "After, unconstrained", "After, constrained"):
        assert f'aria-label="{title}"' in told
    assert told.count("of the first 3 places") == 2
    assert "Ghorbani, Abid and Zou, 2019" in told
    assert not button(page, "Run the attack")
    again = opened(model=model, text=TEXT, steps="4", top_k="3")
    assert "After, constrained" in said(again), "a finished attack opens from its link"
    assert "from the cache" in said(again)


def test_epsilon_zero_and_a_k_larger_than_the_text_are_said(model: str) -> None:
    page = opened(model=model, text=TEXT, steps="2", top_k="99", epsilon="0", objective="constrained")
    [run] = button(page, "Run the attack")
    run.click()  # type: ignore[attr-defined]
    told = said(page.run())
    assert "Epsilon is 0: nothing may move" in told
    assert "top_k is 99, but there are only" in told


def test_what_cannot_be_attacked_is_said_with_what_can(model: str) -> None:
    told = said(opened(model=model, text=TEXT, method="attention_rollout"))
    assert "attention_rollout cannot be attacked" in told
    assert "Can be attacked: gradient, gradient_l2, gradient_x_input, integrated_gradients" in told
    told = said(opened(model=model, text=TEXT, epsilon="wide", top_k="1.5"))
    assert "a number, or a fraction such as 8/255" in told
    assert "a whole number of features" in told


def test_other_methods_are_asked_of_the_attacked_input(model: str) -> None:
    page = opened(model=model, text=TEXT, steps="4", top_k="3", objective="constrained", open="others",
                  other="attention_mean")  # fmt: skip
    for run in button(page, "Run the attack"):
        run.click()  # type: ignore[attr-defined]
        page.run()
    assert not page.exception
    assert "of its own first 3" in said(page)


def test_many_examples_are_attacked_by_a_job_that_says_what_it_costs(model: str) -> None:
    page = opened(model=model, text=TEXT, steps="4", examples="2", attacked="gradient_l2")
    assert not page.exception
    assert "2 examples, 1 method, 2 objectives, 1 model: 4 attacks of at most 4 steps." in said(page)
    assert button(page, "Attack them all")
