"""How often the host waits for the GPU: for a pass or a step always as often, however many rows it has."""

from __future__ import annotations

import collections

import pytest

from engine.attacks.attack import attack_many
from engine.attacks.plan import AttackRequest
from engine.request import Example
from engine.scaffold.plan import NONE, SMAT
from tests.explaining import CHEAP, run, task_for
from tests.unit.gpu.machine import folder, loaded, waits
from tests.unit.scaffold.making import course, teaching

ALIKE = ("the plot drags on", "good bad food is", "lovely view over it", "warm and funny too", "the film is warm", "a")
"""Texts that fit one pass."""
A_STEP = 60
"""Of an attack, at most: a pass forward and two back are some thousand kernels, which these few do not hold up."""
A_LESSON = 40
"""Of a step of teaching, at most: two batches are made and three losses read."""
Waits = collections.Counter[str]


@pytest.fixture(autouse=True, scope="module")
def ready() -> None:
    """What is looked up but once is known."""
    waits(lambda: task_for(loaded("bert", labels=2), ALIKE))


def explained(method: str, count: int, **params: int | str) -> Waits:
    task = []
    waits(lambda: task.append(task_for(loaded("bert", labels=2), ALIKE[:count])))
    return waits(lambda: run(method, task[0], **params))


@pytest.mark.parametrize(
    ("method", "rows", "more"),
    [
        ("smoothgrad", "n_samples", {}),
        ("integrated_gradients", "n_steps", {"steps": "fixed"}),
        ("lime", "n_samples", {}),
        ("kernel_shap", "n_samples", {}),
    ],
)
def test_more_rows_cost_no_more_waits(method: str, rows: str, more: dict[str, str]) -> None:
    few, many = (explained(method, 2, **{rows: number}, **more) for number in (4, 14))
    assert many == few


BATCHED = (
    "gradient_l2",
    "integrated_gradients",
    "lime",
    "kernel_shap",
    "occlusion",
    "attention_x_gradient",
    "attn_lrp",
)


@pytest.mark.parametrize("method", BATCHED)
def test_more_examples_cost_no_more_waits(method: str) -> None:
    few, many = (explained(method, count, **CHEAP.get(method, {})) for count in (2, 6))
    assert many == few


@pytest.mark.parametrize("method", ["smoothgrad", "attention_mean"])
def test_of_some_methods_each_example_costs_a_few(method: str) -> None:
    """They are prepared, or attention is read, one by one."""
    few, many = (explained(method, count, **CHEAP.get(method, {})) for count in (2, 6))
    assert (many - few).total() <= 8 * (6 - 2)


@pytest.mark.parametrize(
    ("method", "objective"), [("gradient_x_input", "unconstrained"), ("integrated_gradients", "constrained")]
)
@pytest.mark.usefixtures("home")
def test_a_step_of_an_attack_waits_as_often_for_one_input_as_for_many(method: str, objective: str) -> None:
    """What is kept of an input at the end is read once more where a later step was better."""

    def steps(inputs: int, number: int) -> Waits:
        attack = {"objective": objective, "steps": number, "starts": 2}
        examples = [Example(text) for text in ALIKE[:inputs]]
        return waits(lambda: attack_many([AttackRequest(folder("bert", 2), method, one, attack) for one in examples]))

    one, many = (steps(inputs, 4) - steps(inputs, 2) for inputs in (1, 4))
    assert (many - one).total() < 4, (many - one).most_common()
    assert one.total() / 2 <= A_STEP, one.most_common()


@pytest.mark.parametrize("setting", [SMAT, NONE])
def test_a_step_of_teaching_waits_as_often_for_few_examples_as_for_many(setting: str) -> None:
    def step(rows: int) -> Waits:
        taught = []
        waits(lambda: taught.append(teaching(setting, given=course(loaded("bert", labels=2)))))
        return waits(lambda: taught[0]._step(range(rows), range(rows)))

    few, many = step(2), step(5)
    assert many == few
    assert few.total() <= A_LESSON, few.most_common()
