"""The Adversarial page on a tiny model: a run on request, its result, what cannot be attacked, many examples."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from components.adversarial.controls import MANY, key
from components.adversarial.state import engine_settings, parse_settings
from engine.attacks.plan import AttackPlan
from engine.attacks.saliency import PointValues, SaliencyMapper
from engine.experiments.run import carry_out
from tests.app.options import open_options
from tests.project import ROOT
from tests.tiny import save_checkpoint
from tests.unit.attacks.making import leaving
from tests.unit.evaluation.making import REVIEWS, written

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
    assert "2 attacks, 3 starts each, at most 4 steps: 24 forward passes" in said(page)
    assert "Rank change" not in said(page)
    [run] = button(page, "Run the attack")
    run.click()  # type: ignore[attr-defined]
    page.run()
    assert not page.exception
    told = said(page)
    for title in ("Before", "After, unconstrained", "After, constrained"):
        assert f'aria-label="{title}"' in told
    assert len(re.findall("top.3 tokens|top 3 tokens", told)) >= 2
    assert "Ghorbani, Abid and Zou, 2019" in told
    assert not button(page, "Run the attack")
    again = opened(model=model, text=TEXT, steps="4", top_k="3")
    assert "After, constrained" in said(again), "a finished attack opens from its link"
    assert "; cached" in said(again)


def test_what_does_not_count_as_fooled_is_said_in_red_with_a_sign(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaving(monkeypatch)
    data = written(tmp_path / "reviews.jsonl", REVIEWS[:2])
    page = opened(model=model, data=data, steps="4", examples="2", attacked="gradient_x_input", asked="none")
    told = run_it(page)
    assert '<p class="xg-small xg-error" role="alert"><b>✗ Attack failed:</b> no solution was found' in told
    assert '<p class="xg-small xg-error" role="alert"><b>✗ Class changed, not fooled:</b>' in told
    assert '<dd class="xg-broken">✗ changed to' in told
    assert "allows a change of up to" in told
    carry_out(AttackPlan((model,), data, ("gradient_x_input",), examples=2,
                         attack=engine_settings(parse_settings("text", {"steps": "4"}))))  # fmt: skip
    page = opened(model=model, data=data, steps="4", examples="2", attacked="gradient_x_input", asked="none")
    assert not page.exception
    for words in ("failed (no solution", "changed the class"):
        line = f"{model}: 2 of 2 attacks {words}"
        assert any("xg-error" in one.proto.body and line in one.proto.body for one in page.get("html"))


def test_the_mixture_tells_its_scales_where_it_is_chosen(model: str) -> None:
    assert "The penalty has little effect unless beta" not in said(opened(model=model, text=TEXT, steps="2"))
    page = opened(model=model, text=TEXT, steps="2", quantity="mixed", objective="constrained")
    assert "The penalty has little effect unless beta" in said(open_options(page, key("text", "options")))
    assert page.query_params["quantity"] == "mixed"


def test_epsilon_zero_and_a_k_larger_than_the_text_are_said(model: str) -> None:
    page = opened(model=model, text=TEXT, steps="2", top_k="99", epsilon="0", objective="constrained")
    [run] = button(page, "Run the attack")
    run.click()  # type: ignore[attr-defined]
    told = said(page.run())
    assert "Epsilon is 0, so the input cannot change" in told
    assert "top_k is 99, but there are only" in told


def test_what_cannot_be_attacked_is_said_with_what_can(model: str) -> None:
    told = said(opened(model=model, text=TEXT, method="attention_rollout"))
    assert "attention_rollout cannot be attacked" in told
    assert "Methods that can be attacked: gradient, gradient_l2, gradient_x_input, integrated_gradients" in told
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
    assert "Scores of its own top 3" in said(page)


def test_many_examples_are_attacked_by_a_job_that_says_what_it_costs(model: str) -> None:
    page = opened(model=model, text=TEXT, steps="4", examples="2", attacked="gradient_l2")
    assert not page.exception
    assert "2 examples, 1 method, 2 objectives, 1 model: 4 attacks, 3 starts each, at most 4 steps, then 8" in said(
        page
    )
    assert button(page, "Attack all examples")


def run_it(page: AppTest) -> str:
    """What the page says after the attack."""
    [run] = button(page, "Run the attack")
    run.click()  # type: ignore[attr-defined]
    page.run()
    assert not page.exception
    return said(page)


def notes(page: AppTest) -> str:
    return "\n".join(one.value for one in [*page.info, *page.warning, *page.error])


def test_a_gradient_that_is_no_number_stops_the_attack_and_is_said(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate, calls = SaliencyMapper.evaluate, []

    def broken(self: SaliencyMapper, delta: torch.Tensor, items: np.ndarray, objective: Any = None) -> PointValues:
        found = evaluate(self, delta, items, objective)
        calls.append(items)
        if len(calls) == 4 and found.gradient is not None:  # the map of the input itself, then steps 0 to 2
            found.gradient[0] = torch.nan
        return found

    monkeypatch.setattr(SaliencyMapper, "evaluate", broken)
    page = opened(model=model, text=TEXT, steps="6", seed="3", objective="constrained", starts="1")
    told = run_it(page)
    assert "Stopped at step 2: the gradient of the objective was not finite." in told + notes(page)
    assert 'aria-label="After, constrained"' in told


def test_an_example_that_the_model_gets_wrong_is_attacked_and_said(model: str, tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"text": TEXT, "label": label} for label in ("negative", "positive")]
    data = written(tmp_path / "two.jsonl", rows)
    query = {"model": model, "data": data, "steps": "2", "objective": "constrained"}
    page = opened(**query, index="0")
    told = [run_it(page) + notes(page)]
    page = opened(**query, index="1")
    told.append(said(page) + notes(page))
    assert sum("The model is wrong on this example before the attack" in one for one in told) == 1
    assert sum("exegesis attack" in one.value for one in page.code) == 1
    assert "--index 1" in page.code[0].value


def test_the_path_of_integrated_gradients_is_chosen_and_counted(model: str) -> None:
    page = opened(model=model, text=TEXT, steps="2", method="integrated_gradients", points="3", start="zero")
    assert "3 points on the path: 36 forward passes" in said(page)
    open_options(page, key("text", "options")).number_input(key=key("text", "points")).set_value(5).run()
    assert "5 points on the path: 60 forward passes" in said(page)
    assert page.query_params["points"] == "5"
    assert page.query_params["start"] == "zero"


def test_means_over_examples_show_the_methods_that_it_transfers_to(model: str, tmp_path: Path) -> None:
    data = written(tmp_path / "reviews.jsonl", REVIEWS[:2])
    query = {"model": model, "data": data, "steps": "2", "examples": "2", "attacked": "gradient_l2"}
    settings = engine_settings(parse_settings("text", {"steps": "2"}))
    plan = AttackPlan((model,), data, ("gradient_l2",), examples=2, attack=settings, transfer=("attention_mean",))
    carry_out(plan)
    page = opened(**query, asked="attention_mean")
    assert not page.exception
    bar = page.selectbox(key=key("text", "view.bar"))
    assert len(bar.options) == 2
    page.selectbox(key=key("text", f"{MANY}of")).select("gradient_l2").run()
    assert not page.exception
    options = page.selectbox(key=key("text", "view.bar")).options
    assert len(options) == 4
    assert sum("Average attention" in option for option in options) == 2
    assert page.query_params["of"] == "gradient_l2"


def test_whole_numbers_have_their_limits_and_fractions_none_above(model: str) -> None:
    page = open_options(opened(model=model, text=TEXT), key("text", "options"))
    fields = {one.label: one for one in page.number_input}
    assert {name: (fields[name].min, fields[name].max, fields[name].proto.format) for name in ("Steps", "Starts")} == {
        "Steps": (1, 100_000, "%d"),
        "Starts": (1, 100, "%d"),
    }
    for name in ("Top k", "α", "β", "Learning rate"):
        assert (fields[name].min, fields[name].proto.has_max, fields[name].proto.format) == (0.0, False, "%g")
