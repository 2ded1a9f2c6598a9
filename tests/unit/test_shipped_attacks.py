"""The attacks that come with the project: those that their page opens with, current, found without a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.adversarial.state import read_text
from components.text.open_data import open_data
from engine import runtime, shipped
from engine.attacks.attack import attack_many, key_of
from engine.registry import all_explainers
from engine.shipped import attacked

LARGEST_FILE = 200_000


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache on the CPU, whatever the machine has."""
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path))
    monkeypatch.setenv("EXEGESIS_DEVICE", "cpu")
    runtime.device.cache_clear()
    runtime._only_cpu.cache_clear()


def test_the_shipped_attacks_are_those_that_the_page_opens_with() -> None:
    state, said = read_text({}, [attacked.MODEL], all_explainers("text"), open_data(attacked.DATA))
    assert said == []
    asked = [key_of(state.request(objective)) for objective in state.objectives]
    assert asked == list(attacked.keys())
    assert set(asked) <= set(shipped.entries()), "run python -m engine.shipped.make"
    assert shipped.ATTACKS.stat().st_size < LARGEST_FILE


def test_they_are_found_and_their_top_changes_while_the_class_stays() -> None:
    found = attack_many(attacked.requests())
    assert all(one.cached for one in found)
    assert [one.attack["objective"] for one in found] == ["unconstrained", "constrained"]
    assert all(one.class_kept and one.rank_change > 0.5 for one in found)
