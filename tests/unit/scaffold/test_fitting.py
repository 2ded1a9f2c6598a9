"""Which learned explainer stands for a name on a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import UsageError
from engine.models import catalog
from engine.registry import explainer
from engine.scaffold import fitting
from engine.scaffold.artefact import SHIPPED, explainers_folder, load, save
from engine.scaffold.fitting import explainers_for, find, reference
from tests.explaining import checkpoint
from tests.learned import for_model, made_up
from tests.tiny import save_checkpoint


@pytest.fixture
def model(home: Path) -> str:
    return str(save_checkpoint("bert", home / "model"))


def names(model: str) -> list[str]:
    return [learned.name for learned in explainers_for(model)]


def test_those_of_the_model_shipped_ones_first_then_the_newest(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert names(model) == []
    monkeypatch.setattr(fitting, "SHIPPED", tmp_path / "shipped")
    for_model(model, "old", date="2026-01-01")
    for_model(model, "new", date="2026-02-01")
    for_model(model, "carried", folder=tmp_path / "shipped", date="2025-01-01")
    save(made_up("of-another"), explainers_folder())
    assert names(model) == ["carried", "new", "old"]
    assert find("", model).name == "carried"
    assert find("old", model).name == "old"


def test_a_model_that_was_changed_has_none(model: str) -> None:
    for_model(model)
    assert names(model) == ["made-up"]
    save_checkpoint("bert", Path(model), seed=1)
    assert names(model) == []
    assert find("made-up", model).card.teacher == model


def test_files_that_cannot_be_read_are_left_out_and_told_when_named(model: str) -> None:
    for_model(model, "good")
    (explainers_folder() / "bad.json").write_text("{", encoding="utf-8")
    assert names(model) == ["good"]
    with pytest.raises(UsageError, match=r"bad\.safetensors cannot be read"):
        find("bad", model)


def test_without_one_it_is_said_how_to_train_one(model: str) -> None:
    with pytest.raises(UsageError, match=r"no learned explainer for .*`exegesis scaffold --teacher .*Scaffold"):
        find("", model)
    with pytest.raises(UsageError, match=r"smat\.explainer: unknown name 'made-ip'\..*Or give a file"):
        find("made-ip", model)
    assert explainer("smat").why_not(model).startswith("smat: there is no learned explainer")
    for_model(model)
    assert explainer("smat").why_not(model) == ""


def test_another_shape_is_refused_and_both_are_named(model: str, tmp_path: Path) -> None:
    save(made_up("large", shape=(12, 6), teacher="a-large-one"), explainers_folder())
    words = r"large was learned for 12 layers of 6 heads \(a-large-one\), and .* has 3 layers of 4 heads"
    for name in ("large", str(explainers_folder() / "large.json")):
        with pytest.raises(UsageError, match=rf"smat\.explainer: {words}"):
            find(name, model)


def test_a_name_with_a_digest_is_that_content_or_nothing(model: str) -> None:
    first = for_model(model)
    settled = reference(first, "")
    assert settled == f"made-up@{first.digest}"
    assert find(settled, model).digest == first.digest
    assert reference(first, settled) == settled
    second = for_model(model, phi=[0.5] * 12)
    assert find("made-up", model).digest == second.digest
    with pytest.raises(UsageError, match=rf"made-up is no longer what it was \(now {second.digest}, asked for"):
        find(settled, model)


def test_each_shipped_one_is_of_a_model_that_is_here() -> None:
    for card in SHIPPED.glob("*.json"):
        learned = load(card)
        assert learned.card.revision == catalog.revision(learned.card.teacher), learned.name
        assert learned.name in names(learned.card.teacher)


def test_a_checkpoint_of_another_family_has_a_shape_too() -> None:
    for family in ("distilbert", "gpt2", "t5", "roberta"):
        assert find(str(_kept(family)), str(checkpoint(family))).card.shape == (3, 4)


def _kept(family: str) -> Path:
    folder = checkpoint(family).parent / f"{family}-explainer"
    save(made_up(), folder)
    return folder / "made-up"
