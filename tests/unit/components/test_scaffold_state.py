"""The Scaffold page's link: what it says is read, written back the same, and what is wrong in it is told."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from components.scaffold.controls import default_dataset
from components.scaffold.export import rows_command
from components.scaffold.state import (
    ScaffoldView,
    opening_state,
    parse_numbers,
    plan_of,
    read_numbers,
    read_state,
    state_of,
    write_state,
)
from engine.cli.root import app
from engine.errors import UsageError
from engine.scaffold.plan import Recipe, ScaffoldPlan
from engine.scaffold.presets import OPENING_PLANS
from tests.tiny import save_checkpoint

OTHER = ScaffoldPlan(
    "owner/model", "my data.csv", ("none", "smat"), (20, 40), (3, 5), base="bases/bert", split="test",
    recipe=Recipe(normalisation="softmax", inner_rate=0.02, soft_targets=True),
)  # fmt: skip


@pytest.mark.parametrize("kind", ["text", "image"])
def test_the_usual_state_has_a_short_link(kind: str) -> None:
    assert write_state(opening_state(kind)) == {"input": [kind]}
    assert read_state(kind, write_state(opening_state(kind))) == (opening_state(kind), [])


@pytest.mark.parametrize("plan", [OTHER, *OPENING_PLANS.values()], ids=lambda plan: plan.teacher)
def test_a_plan_becomes_a_link_and_the_same_plan_again(plan: ScaffoldPlan) -> None:
    state, said = read_state("text", write_state(state_of(plan, "text")))
    assert said == []
    assert plan_of(state) == plan


def test_how_students_are_looked_at_is_in_the_link() -> None:
    query = {"size": ["500"], "curve": ["none"], "measure": ["loss"]}
    state, said = read_state("text", query)
    assert said == []
    assert (state.view.size, state.view.curve, state.view.measure) == (500, "none", "loss")
    assert write_state(state) == {"input": ["text"], **query}


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"setting": ["lime"]}, "setting: unknown name 'lime'"),
        ({"recipe.epochs": ["many"]}, "recipe.epochs: must be a whole number"),
        ({"recipe.color": ["red"]}, "parameter of recipe: unknown name 'color'"),
        ({"curve": ["zero"]}, "curve: unknown name 'zero'"),
        ({"size": ["-1"]}, "size: must be a train size of the plan"),
        ({"measure": ["x"]}, "measure: unknown name 'x'"),
    ],
)
def test_what_is_wrong_in_a_link_is_told_and_left_as_usual(query: dict[str, list[str]], told: str) -> None:
    state, said = read_state("text", query)
    assert len(said) == 1
    assert told in said[0]
    assert plan_of(state).recipe == OPENING_PLANS["text"].recipe
    assert state.view == ScaffoldView()


def test_settings_come_in_their_own_order() -> None:
    state, _ = read_state("text", {"setting": ["smat", "none"]})
    assert state.settings == ("none", "smat")


@pytest.mark.parametrize(
    ("typed", "error"),
    [
        ("", "Train sizes: the list is empty."),
        ("a", "Train sizes: 'a' is not a whole number from 1 to 9,999,999."),
        ("250,,x", "Train sizes: entry 2 is empty; 'x' is not a whole number from 1 to 9,999,999."),
        ("-3,0,1.5", "Train sizes: '-3', '0' and '1.5' are not whole numbers from 1 to 9,999,999."),
        ("10000000", "Train sizes: '10000000' is not a whole number from 1 to 9,999,999."),
        ("5,5,005,7", "Train sizes: 5 appears more than once."),
        (",1,2,", "Train sizes: entries 1 and 4 are empty."),
        ("a,b,c,d,e", "Train sizes: 'a', 'b', 'c' and 2 more are not whole numbers from 1 to 9,999,999."),
        ("5,x,5", "Train sizes: 'x' is not a whole number from 1 to 9,999,999; 5 appears more than once."),
    ],
)
def test_a_list_says_which_entries_are_wrong_and_keeps_the_last_valid_one(typed: str, error: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_numbers("sizes", typed)
    assert str(raised.value) == error
    errors: list[str] = []
    assert read_numbers("sizes", typed, "250,500", errors) == "250,500"
    assert errors == [f"{error} Still using 250,500."]


def test_a_list_of_numbers_is_read_and_written_in_one_way() -> None:
    assert parse_numbers("seeds", " 3, 0 ") == (3, 0)
    assert read_numbers("seeds", " 3, 007 ", "1", []) == "3,7"
    errors: list[str] = []
    assert read_numbers("sizes", "9" * 5000, "1", errors) == "1"
    assert errors == [f"Train sizes: '{'9' * 20}…' is not a whole number from 1 to 9,999,999. Still using 1."]


def test_a_wrong_list_in_a_link_is_reported_and_the_opening_list_is_used() -> None:
    state, errors = read_state("text", {"sizes": ["250,,x"], "seeds": ["1,1"]})
    seeds = ",".join(map(str, OPENING_PLANS["text"].seeds))
    assert (state.sizes, state.seeds) == ("250,500,1000", seeds)
    assert errors == [
        "Train sizes: entry 2 is empty; 'x' is not a whole number from 1 to 9,999,999. Still using 250,500,1000.",
        f"Seeds: 1 appears more than once. Still using {seeds}.",
    ]


@pytest.mark.parametrize("plan", [OTHER, *OPENING_PLANS.values()], ids=lambda plan: plan.teacher)
def test_the_command_asks_for_the_same_plan(plan: ScaffoldPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def noted(command: str, doing: str, work: object, spec: dict[str, Any] | None) -> None:
        asked.append(spec)
        raise SystemExit

    monkeypatch.setattr("engine.cli.scaffold.worked", noted)
    name, *given = shlex.split(rows_command(plan))
    assert name == "exegesis"
    CliRunner().invoke(app, [*given, "--job"])
    assert asked == [plan.as_plain()]


def test_the_form_opens_with_the_training_set_or_one_of_the_models_task(tmp_path: Path) -> None:
    own = save_checkpoint("bert", tmp_path / "own", labels=3)
    config = json.loads((own / "config.json").read_text())
    names = dict(enumerate(("entailment", "neutral", "contradiction")))
    (own / "config.json").write_text(json.dumps({**config, "id2label": names}))
    wanted = {"bert-reviews": "reviews-generated", "nli-minilm": "snli-sick", str(own): "nli"}
    assert {teacher: default_dataset(teacher) for teacher in wanted} == wanted
