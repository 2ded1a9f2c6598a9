"""A learned explainer as two files: what is written is read, and nothing else is taken for one."""

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
from engine.scaffold.artefact import MOST_BYTES, artefact_of, explainers_folder, load, save, save_to_home
from engine.scaffold.card import Taught
from engine.scaffold.plan import Plan, Pupil, Recipe
from engine.scaffold.result import Outcome, Scaffold
from tests.explaining import checkpoint
from tests.learned import GOOD, made_up


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
        ({"simulability": {}}, "simulability must be an object by setting, smat among them"),
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
        ({"theta": np.zeros(12)}, "must hold phi alone, got theta"),
        ({"phi": np.zeros(12), "more": np.zeros(1)}, "must hold phi alone, got more, phi"),
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
        with pytest.raises(ExegesisError, match="its card cannot be read as JSON"):
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
    taught = {"smat": Taught(*QUARTILES[mine], seeds), "none": Taught(*QUARTILES[other], seeds)}
    return dataclasses.replace(GOOD, simulability=taught).worth


def test_what_it_is_worth_is_said_only_as_far_as_quartiles_tell() -> None:
    said = worth("high", "low")
    assert said.startswith("taught better than no explainer (simulability 0.910, quartiles 0.900 to 0.920, against 0.8")
    assert worth("middle", "low").startswith("taught no better, as far as can be told, than no explainer")
    assert worth("low", "middle").startswith("taught no better, as far as can be told, than no explainer")
    assert worth("low", "high").startswith("taught worse than no explainer")
    few = worth("high", "low", seeds=2)
    assert few == "was learned with few seeds: whether it teaches better than no explainer cannot be told"
    alone = dataclasses.replace(GOOD, simulability={"smat": Taught(0.9, 0.9, 0.9, 5)})
    assert alone.worth.startswith("was compared with no other setting")


def outcome(setting: str, seed: int, simulability: float) -> Outcome:
    phi = np.arange(12) / 100 + seed if setting == "smat" else None
    return Outcome(Pupil(setting, 500, seed), simulability, 2, 10, 1.0, "patience", (), phi)


@pytest.fixture
def found() -> Scaffold:
    plan = Plan(str(checkpoint("bert")), "reviews", seeds=(0, 9, 11), recipe=Recipe(normalisation="entmax15"))
    values = {"smat": (0.9, 0.8, 0.7), "none": (0.5, 0.6, 0.4), "attention_logits": (0.7, 0.6, 0.65)}
    rows = [outcome(s, seed, v) for s, of in values.items() for seed, v in zip(plan.seeds, of, strict=True)]
    rows.append(outcome("gradient_l2", 0, 0.3))
    return Scaffold(plan, (3, 4), tuple(rows))


def test_the_median_student_gives_the_explainer(found: Scaffold) -> None:
    made = artefact_of(found, 500)
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
        artefact_of(found, 1000)


def test_it_is_kept_at_home_under_a_free_name(found: Scaffold, home: Path) -> None:
    made = artefact_of(found, 500)
    first = save_to_home(made)
    assert load(explainers_folder() / first.name).digest == first.digest
    assert save_to_home(made).name == first.name
    other = dataclasses.replace(made, phi=made.phi + 1)
    assert save_to_home(other).name == f"{first.name}-2"
    assert save_to_home(made, "mine").name == "mine"
    with pytest.raises(UsageError, match="name of an explainer: mine is taken"):
        save_to_home(other, "mine")
