"""The link of a finished job opens the page of its result in the state of the job, for every kind of job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from components.adversarial.state import read_state as read_attack
from components.compare.state import read_state as read_comparison
from components.experiment.state import NoView, plan_of, read_state
from components.inputs.datasets import open_texts
from components.library.jobs import LINKS, result_link
from components.links import Query
from components.reproduction.state import read as read_reproduction
from components.scaffold.state import plan_of as scaffold_plan
from components.scaffold.state import read_state as read_scaffold
from engine import jobs
from engine.comparison.plan import ComparisonPlan
from engine.comparison.plan import plan_of as comparison_plan
from engine.experiments.base import experiment
from engine.input_kinds import list_models
from engine.jobs.kinds import known_ids
from engine.registry import all_explainers
from engine.reproduction.run import check
from engine.scaffold.plan import plan_from_json
from tests.alerts import errors
from tests.project import ROOT

pytestmark = pytest.mark.usefixtures("own_home")

SECONDS = 120.0
MODEL = "reviews-minilm"
PLAN = {"models": [MODEL], "dataset": "reviews", "examples": 3, "seed": 5}
ATTACK = {
    "place": "embedding", "top_k": 0.2, "quantity": "logit", "alpha": 1.0, "beta": 1.0, "starts": 3, "steps": 7,
    "learning_rate": 0.1, "sign_steps": False, "specials": False,
}  # fmt: skip
SPECS: dict[str, dict[str, Any]] = {
    "attack": {**PLAN, "methods": ["gradient"], "objectives": ["constrained"], "attack": ATTACK},
    "concepts": {**PLAN, "texts": "\n".join(f"not {word}" for word in "abcdefghij"), "layers": [1], "runs": 3},
    "corpus": {**PLAN, "methods": ["random"], "least": 2},
    "behavior": {**PLAN, "methods": ["gradient_x_input"], "task": "recourse", "size": 1},
    "compare": {
        "dataset": "reviews", "pairs": [f"random@{MODEL}", f"occlusion,window=2@{MODEL}"], "examples": 10, "seed": 5,
        "target": "positive", "kind": "text",
    },
    "empirical": {
        "model": MODEL, "method": "kernel_shap", "dataset": "reviews", "out": "mine", "train_size": 12, "held_out": 4,
    },
    "evaluate": {**PLAN, "methods": ["random", "lime"], "params": {"lime": {"n_samples": 50}}, "shares": [10, 30]},
    "explain": {"model": MODEL, "methods": ["random"], "examples": [{"text": "good"}], "seed": 5},
    "predict": {"model": MODEL, "data": "reviews"},
    "randomize": {**PLAN, "methods": ["gradient"], "modes": ["independent"], "seeds": 1, "head": True},
    "reproduce": {"examples": 40, "seed": 5},
    "rules": {**PLAN, "rules": ['"not" -> negative', "negation -> negative"], "methods": ["random"]},
    "reproduce_smat": {},
    "scaffold": {
        "teacher": MODEL, "dataset": "reviews", "settings": ["none", "smat"], "train_sizes": [16], "seeds": [1],
    },
}  # fmt: skip


def experiment_plans(kind: str, query: Query, spec: Mapping[str, Any]) -> tuple[object, object]:
    state, wrong = read_state(experiment(kind), NoView, "text", query, all_explainers("text"))
    assert not wrong
    return plan_of(state), experiment(kind).plan_of(spec)


def attack_plans(kind: str, query: Query, spec: Mapping[str, Any]) -> tuple[object, object]:
    state, wrong = read_attack("text", query, list_models("text"), all_explainers("text"), open_texts("reviews"))
    assert not wrong
    return state.plan(), experiment(kind).plan_of(spec)


def comparison_plans(kind: str, query: Query, spec: Mapping[str, Any]) -> tuple[object, object]:
    state, wrong = read_comparison("text", query, list_models("text"), open_texts("reviews"))
    assert not wrong
    assert state.open_sections == ("search",)
    shown = ComparisonPlan(
        state.focus.data, state.columns, state.kind, None, state.view.examples, state.seed, state.target
    )  # fmt: skip
    return shown, comparison_plan(spec)


def scaffold_plans(kind: str, query: Query, spec: Mapping[str, Any]) -> tuple[object, object]:
    state, wrong = read_scaffold("text", query)
    assert not wrong
    return scaffold_plan(state), plan_from_json(spec)


def reproduction_plans(kind: str, query: Query, spec: Mapping[str, Any]) -> tuple[object, object]:
    state, wrong = read_reproduction(query)
    assert not wrong
    command = check(kind, spec).command()
    return [one.command() for one in state.queries if one.command() == command], [command]


PLANS: dict[str, Callable[[str, Query, Mapping[str, Any]], tuple[object, object]]] = {
    "attack": attack_plans,
    "behavior": experiment_plans,
    "concepts": experiment_plans,
    "corpus": experiment_plans,
    "compare": comparison_plans,
    "evaluate": experiment_plans,
    "randomize": experiment_plans,
    "reproduce": reproduction_plans,
    "rules": experiment_plans,
    "reproduce_smat": reproduction_plans,
    "scaffold": scaffold_plans,
}
"""By kind of job: the plan of its page when it was opened by the link, and the plan of the job."""


def test_every_kind_of_job_is_tried() -> None:
    assert set(SPECS) == set(LINKS) == known_ids() - {"sample", "toy"}


@pytest.mark.parametrize("kind", SPECS)
def test_the_link_of_a_job_opens_its_page_in_the_state_of_the_job(kind: str) -> None:
    job = jobs.create(kind, SPECS[kind])
    link = result_link(job)
    assert not isinstance(link, str), link
    page, query = link
    if kind in PLANS:
        shown, wanted = PLANS[kind](kind, query, job.spec)
        assert shown == wanted
    app = AppTest.from_file(str(ROOT / page.file), default_timeout=SECONDS)
    for name, values in query.items():
        app.query_params[name] = values
    app.run()
    assert not app.exception
    assert not errors(app)
    address = {name: [values] if isinstance(values, str) else values for name, values in app.query_params.items()}
    assert address == query
