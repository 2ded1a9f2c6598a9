"""The tests of rules that come with the project: there, small, and those that are computed."""

from __future__ import annotations

import pytest

from engine import shipped
from engine.experiments.run import carry_out, finished
from engine.rules.plan import RULES
from engine.rules.result import score_rule

LARGEST_FILE = 40_000

pytestmark = pytest.mark.usefixtures("home")


@pytest.mark.parametrize("kind", ["text", "image"])
def test_the_page_opens_with_what_is_computed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXEGESIS_DEVICE", "cpu")
    plan = RULES.opens_with[kind]
    result = finished(plan)
    assert result is not None, "run python -m engine.shipped.make"
    with shipped.ignore_entries():
        computed = carry_out(plan)
    for one, other in zip(result.models[0].rules, computed.models[0].rules, strict=True):
        assert (one.rule, one.method, one.word) == (other.rule, other.method, other.word)
        assert [own.holds for own in one.examples] == [own.holds for own in other.examples]
        first, second = score_rule(one), score_rule(other)
        assert first.share == second.share
        assert first.fall.value == pytest.approx(second.fall.value, abs=1e-4)
        assert first.rise.value == pytest.approx(second.rise.value, abs=1e-4)


def test_they_are_small() -> None:
    assert shipped.RULES.stat().st_size < LARGEST_FILE
