"""A learned explainer as two files: what is written is read, and which one a name stands for on a model."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from engine.errors import ExegesisError, UsageError
from engine.models import catalog
from engine.registry import explainer
from engine.scaffold import learned_explainer
from engine.scaffold.learned_explainer import (
    MOST_BYTES,
    SHIPPED,
    SimulabilitySummary,
    explainer_reference,
    explainers_folder,
    explainers_for,
    find_explainer,
    load,
    median_explainer,
    save,
    save_to_home,
)
from engine.scaffold.plan import Recipe, ScaffoldPlan, StudentRun
from engine.scaffold.result import ScaffoldResult, StudentResult
from tests.explaining import checkpoint
from tests.learned import GOOD, for_model, made_up
from tests.tiny import save_checkpoint


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_written_is_read(tmp_path: Path, dtype: type) -> None:
    made = made_up(phi=np.linspace(-1, 1, 12).astype(dtype))
    written = save(made, tmp_path / "new")
    assert [file.name for file in sorted((tmp_path / "new").iterdir())] == ["made-up.json", "made-up.safetensors"]
    for name in ("made-up", "made-up.json", "made-up.safetensors"):
        read = load(tmp_path / "new" / name)
        assert (read.name, read.card, read.digest) == ("made-up", made.card, written.digest)
        assert read.phi.dtype == dtype
        np.testing.assert_array_equal(read.phi, made.phi)


def test_the_digest_is_of_the_coefficients_and_of_the_card(tmp_path: Path) -> None:
    phi = np.linspace(-1, 1, 12)
    digests = {
        save(made, tmp_path).digest
        for made in (made_up(phi=phi), made_up(phi=phi * 2), made_up(phi=phi, normalisation="softmax"))
    }
    assert len(digests) == 3
    assert save(made_up(phi=phi), tmp_path).digest in digests


def test_weights_are_the_normalised_coefficients(tmp_path: Path) -> None:
    made = save(made_up(phi=[3.0, 0, 0, 0, *[-9.0] * 8]), tmp_path)
    np.testing.assert_allclose(made.weights, [[1, 0, 0, 0], [0] * 4, [0] * 4])
    soft = save(made_up(phi=np.zeros(12), normalisation="softmax"), tmp_path).weights
    np.testing.assert_allclose(soft, np.full((3, 4), 1 / 12))


def broken(folder: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    save(made_up(), folder)
    card = json.loads((folder / "made-up.json").read_text(encoding="utf-8"))
    (folder / "made-up.json").write_text(json.dumps(change(card)), encoding="utf-8")
    return folder / "made-up"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 2}, "format must be 1, got 2"),
        ({"shape": [3, 5]}, "must be 15 numbers in float32 or float64, one for each of the 5 heads of 3 layers"),
        ({"shape": [3, 0]}, "shape must be a whole number of at least 1, got 0"),
        ({"shape": "3 x 4"}, r"shape must be \[layers, heads in each\], got '3 x 4'"),
        ({"normalisation": "relu"}, "normalisation must be one of sparsemax, softmax, entmax15, none, got 'relu'"),
        ({"train_size": True}, "train_size must be a whole number of at least 1, got True"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"metric": "F1"}, "metric must be one of accuracy, pearson, got 'F1'"),
        ({"teacher": " "}, "teacher must be a text, got ' '"),
        ({"simulability": {}}, "simulability must be an object by setting that includes smat"),
        (
            {"simulability": {"smat": {"low": 0.5}}},
            "simulability.smat must be an object of low, median, high and seeds",
        ),
        (
            {"simulability": {"smat": {"low": 0.9, "median": 0.5, "high": 1, "seeds": 5}}},
            "low, median and high in that order",
        ),
        (
            {"simulability": {"smat": {"low": 0.5, "median": float("nan"), "high": 1, "seeds": 5}}},
            "low, median and high in that order, from -1 to 1",
        ),
        ({"more": 1}, "unknown fields more"),
    ],
)
def test_a_card_with_a_wrong_field_is_refused(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    with pytest.raises(ExegesisError, match=rf"explainer made-up: .*{words}"):
        load(broken(tmp_path, lambda card: {**card, **change}))


def test_a_card_that_lacks_fields_names_them(tmp_path: Path) -> None:
    with pytest.raises(ExegesisError, match=r"explainer made-up: dataset, seed is missing\. Train the explainer again"):
        load(broken(tmp_path, lambda card: {k: v for k, v in card.items() if k not in ("seed", "dataset")}))
    with pytest.raises(ExegesisError, match="it must be a JSON object, got"):
        load(broken(tmp_path, lambda card: [card]))


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ({"phi": np.full(12, np.nan)}, "its coefficients are not finite numbers"),
        ({"phi": np.zeros(11)}, r"must be 12 numbers .* got shape \(11,\)"),
        ({"phi": np.zeros((3, 4))}, r"got shape \(3, 4\)"),
        ({"phi": np.zeros(12, dtype=np.int64)}, "in int64"),
        ({"theta": np.zeros(12)}, "must contain phi only, got theta"),
        ({"phi": np.zeros(12), "more": np.zeros(1)}, "must contain phi only, got more, phi"),
    ],
)
def test_other_coefficients_are_refused(tmp_path: Path, tensors: dict[str, np.ndarray], words: str) -> None:
    save(made_up(), tmp_path)
    save_file(tensors, tmp_path / "made-up.safetensors")
    with pytest.raises(ExegesisError, match=words):
        load(tmp_path / "made-up")


def test_damaged_and_missing_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nothing\.safetensors cannot be read \(No such file or directory\)"):
        load(tmp_path / "nothing")
    save(made_up(), tmp_path)
    weights, card = tmp_path / "made-up.safetensors", tmp_path / "made-up.json"
    whole = weights.read_bytes()
    for content in (b"", whole[:20], whole[:-1], b"\xff" * 100):
        weights.write_bytes(content)
        with pytest.raises(ExegesisError, match=r"its \.safetensors is damaged"):
            load(weights)
    weights.write_bytes(b"\0" * (MOST_BYTES + 1))
    with pytest.raises(ExegesisError, match="is too large for a learned explainer"):
        load(weights)
    weights.write_bytes(whole)
    for content in (b"{", b"\xff\xfe", b"[" * 100_000):
        card.write_bytes(content)
        with pytest.raises(ExegesisError, match="its card is not valid JSON"):
            load(card)


def test_nothing_is_written_that_could_not_be_read(tmp_path: Path) -> None:
    for made in (made_up(phi=[np.inf] * 12), made_up(phi=[0.0] * 3), made_up(metric="F1")):
        with pytest.raises(ExegesisError):
            save(made, tmp_path)
    for name in ("../out", "a/b", ".hidden", " "):
        with pytest.raises(UsageError, match="name of an explainer: must be letters, digits, dots, - and _"):
            save(made_up(), tmp_path, name)
    assert list(tmp_path.iterdir()) == []


QUARTILES = {"low": (0.80, 0.82, 0.84), "middle": (0.83, 0.85, 0.87), "high": (0.90, 0.91, 0.92)}


def worth(mine: str, other: str, seeds: int = 5) -> str:
    taught = {
        "smat": SimulabilitySummary(*QUARTILES[mine], seeds),
        "none": SimulabilitySummary(*QUARTILES[other], seeds),
    }
    return dataclasses.replace(GOOD, simulability=taught).worth


def test_what_it_is_worth_is_said_only_as_far_as_quartiles_tell() -> None:
    said = worth("high", "low")
    assert said.startswith("taught better than no explainer (simulability 0.910, quartiles 0.900 to 0.920, against 0.8")
    assert worth("middle", "low").startswith("taught neither clearly better nor clearly worse than no explainer")
    assert worth("low", "middle").startswith("taught neither clearly better nor clearly worse than no explainer")
    assert worth("low", "high").startswith("taught worse than no explainer")
    few = worth("high", "low", seeds=2)
    assert few == "was trained with too few seeds to tell whether it teaches better than no explainer"
    alone = dataclasses.replace(GOOD, simulability={"smat": SimulabilitySummary(0.9, 0.9, 0.9, 5)})
    assert alone.worth.startswith("was compared with no other setting")


def outcome(setting: str, seed: int, simulability: float) -> StudentResult:
    phi = np.arange(12) / 100 + seed if setting == "smat" else None
    return StudentResult(StudentRun(setting, 500, seed), simulability, 2, 10, 1.0, "patience", (), phi)


@pytest.fixture
def found() -> ScaffoldResult:
    plan = ScaffoldPlan(str(checkpoint("bert")), "reviews", seeds=(0, 9, 11), recipe=Recipe(normalisation="entmax15"))
    values = {"smat": (0.9, 0.8, 0.7), "none": (0.5, 0.6, 0.4), "attention_logits": (0.7, 0.6, 0.65)}
    rows = [outcome(s, seed, v) for s, of in values.items() for seed, v in zip(plan.seeds, of, strict=True)]
    rows.append(outcome("gradient_l2", 0, 0.3))
    return ScaffoldResult(plan, (3, 4), tuple(rows))


def test_the_median_student_gives_the_explainer(found: ScaffoldResult) -> None:
    made = median_explainer(found, 500)
    np.testing.assert_allclose(made.phi, np.arange(12) / 100 + 9)
    card = made.card
    assert (card.seed, card.train_size, card.shape, card.family) == (9, 500, (3, 4), "bert")
    assert (card.normalisation, card.metric, card.dataset) == ("entmax15", "accuracy", "reviews")
    assert list(card.simulability) == ["smat", "none", "attention_logits"]
    mine = card.simulability["smat"]
    assert [mine.low, mine.median, mine.high, mine.seeds] == pytest.approx([0.75, 0.8, 0.85, 3])
    begins = f"exegesis scaffold --teacher {found.plan.teacher} --dataset reviews --seeds "
    assert card.made_by.startswith(begins)
    assert card.made_by.endswith("--seeds 0,9,11 --normalisation entmax15")
    with pytest.raises(UsageError, match="has learned one from 1,000 examples"):
        median_explainer(found, 1000)


def test_it_is_kept_at_home_under_a_free_name(found: ScaffoldResult, home: Path) -> None:
    made = median_explainer(found, 500)
    first = save_to_home(made)
    assert load(explainers_folder() / first.name).digest == first.digest
    assert save_to_home(made).name == first.name
    other = dataclasses.replace(made, phi=made.phi + 1)
    assert save_to_home(other).name == f"{first.name}-2"
    assert save_to_home(made, "mine").name == "mine"
    with pytest.raises(UsageError, match="name of an explainer: mine is taken"):
        save_to_home(other, "mine")


@pytest.fixture
def model(home: Path) -> str:
    return str(save_checkpoint("bert", home / "model"))


def names(model: str) -> list[str]:
    return [learned.name for learned in explainers_for(model)]


def test_those_of_the_model_shipped_ones_first_then_the_newest(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert names(model) == []
    monkeypatch.setattr(learned_explainer, "SHIPPED", tmp_path / "shipped")
    for_model(model, "old", date="2026-01-01")
    for_model(model, "new", date="2026-02-01")
    for_model(model, "carried", folder=tmp_path / "shipped", date="2025-01-01")
    save(made_up("of-another"), explainers_folder())
    assert names(model) == ["carried", "new", "old"]
    assert find_explainer("", model).name == "carried"
    assert find_explainer("old", model).name == "old"


def test_a_model_that_was_changed_has_none(model: str) -> None:
    for_model(model)
    assert names(model) == ["made-up"]
    save_checkpoint("bert", Path(model), seed=1)
    assert names(model) == []
    assert find_explainer("made-up", model).card.teacher == model


def test_files_that_cannot_be_read_are_left_out_and_told_when_named(model: str) -> None:
    for_model(model, "good")
    (explainers_folder() / "bad.json").write_text("{", encoding="utf-8")
    assert names(model) == ["good"]
    with pytest.raises(UsageError, match=r"bad\.safetensors cannot be read"):
        find_explainer("bad", model)


def test_without_one_it_is_said_how_to_train_one(model: str) -> None:
    with pytest.raises(UsageError, match=r"no learned explainer for .*`exegesis scaffold --teacher .*Scaffold"):
        find_explainer("", model)
    with pytest.raises(UsageError, match=r"smat\.explainer: unknown name 'made-ip'\..*Or give a file"):
        find_explainer("made-ip", model)
    assert explainer("smat").why_not(model).startswith("smat: there is no learned explainer")
    for_model(model)
    assert explainer("smat").why_not(model) == ""


def test_another_shape_is_refused_and_both_are_named(model: str, tmp_path: Path) -> None:
    save(made_up("large", shape=(12, 6), teacher="a-large-one"), explainers_folder())
    words = r"large was trained for 12 layers of 6 heads \(a-large-one\), but .* has 3 layers of 4 heads"
    for name in ("large", str(explainers_folder() / "large.json")):
        with pytest.raises(UsageError, match=rf"smat\.explainer: {words}"):
            find_explainer(name, model)


def test_a_name_with_a_digest_is_that_content_or_nothing(model: str) -> None:
    first = for_model(model)
    settled = explainer_reference(first, "")
    assert settled == f"made-up@{first.digest}"
    assert find_explainer(settled, model).digest == first.digest
    assert explainer_reference(first, settled) == settled
    second = for_model(model, phi=[0.5] * 12)
    assert find_explainer("made-up", model).digest == second.digest
    with pytest.raises(UsageError, match=rf"made-up has changed \(now {second.digest}, requested"):
        find_explainer(settled, model)


def test_each_shipped_one_is_of_a_model_that_is_here() -> None:
    for card in SHIPPED.glob("*.json"):
        learned = load(card)
        assert learned.card.revision == catalog.revision(learned.card.teacher), learned.name
        assert learned.name in names(learned.card.teacher)


def test_a_checkpoint_of_another_family_has_a_shape_too() -> None:
    for family in ("distilbert", "gpt2", "t5", "roberta"):
        assert find_explainer(str(_kept(family)), str(checkpoint(family))).card.shape == (3, 4)


def _kept(family: str) -> Path:
    folder = checkpoint(family).parent / f"{family}-explainer"
    save(made_up(), folder)
    return folder / "made-up"
