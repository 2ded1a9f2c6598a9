"""The experiment of concepts: activations and gradients beside plain passes, the result, its cache, and refusals."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from engine import runtime, shipped
from engine.concepts.activations import activations, gradients
from engine.concepts.experiment import LEAST_CLASS, PASTED, concept_name, parse_texts, rows, to_json
from engine.concepts.plan import CONCEPTS, ConceptsPlan, parse_classes, parse_concepts, parse_layers
from engine.data.sources import load_source
from engine.errors import ExegesisError, UsageError
from engine.experiments.run import carry_out, check, finished
from engine.inside.sites import Tap, rewriting
from engine.models.loading import load_image_model, load_model
from engine.request import Example, Picture
from tests.tiny import CORPUS, save_checkpoint
from tests.unit.cli.conftest import Run, run
from tests.unit.vision.tiny_vit import vit_folder

__all__ = ["run"]
MODEL = "bert-reviews"
NOUNS = ("film", "book", "food", "plot", "hotel", "dish", "room", "trip", "cast", "menu")
TEXTS = "\n".join(f"I did not like the {noun}." for noun in NOUNS)

pytestmark = pytest.mark.usefixtures("home")


def tiny(kind: str, tmp_path: Path) -> tuple[Any, list[Any]]:
    """A random model in double precision and three inputs of several lengths."""
    if kind == "vit":
        model = load_image_model(str(vit_folder()), "float64")
        values = np.random.default_rng(0).integers(0, 256, (3, 24, 32, 3), dtype=np.uint8)
        return model, [model.encode(Picture(one)) for one in values]
    model = load_model(str(save_checkpoint(kind, tmp_path / kind)), "float64")
    return model, [model.encode(Example(text)) for text in sorted(CORPUS, key=len)[::-1][:3]]


@pytest.mark.parametrize("kind", ["bert", "t5", "vit"])
def test_activations_and_derivatives_are_those_of_single_passes(kind: str, tmp_path: Path) -> None:
    """Each input alone, without padding; derivatives by central differences."""
    model, encoded = tiny(kind, tmp_path)
    width, tolerance = (1e-4, 1e-3) if kind == "t5" else (1e-6, 1e-5)  # the norms of T5 are in float32
    with runtime.turn():
        means, slopes = activations(model, encoded), gradients(model, encoded, 1)
        assert len(means) == len(slopes) == len(model.blocks)
        for layer, block in enumerate(model.blocks):
            vector = torch.randn(means[layer].shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
            for place, one in enumerate(encoded):
                logits: list[float] = []
                for step in (width, -width, 0.0):
                    read: list[torch.Tensor] = []

                    def add(_: int, value: torch.Tensor, step: float = step, read: Any = read) -> torch.Tensor:
                        read.append(value)
                        return value + step * vector  # noqa: B023

                    with torch.inference_mode(), rewriting([Tap(block)], add):
                        logits.append(float(model.logits(model.collate([one]))[0, 1]))
                np.testing.assert_allclose(means[layer][place], read[0][0].mean(0).numpy(), atol=1e-9)
                derivative = float(slopes[layer][place] @ vector.numpy())
                assert derivative == pytest.approx((logits[0] - logits[1]) / (2 * width), rel=tolerance, abs=1e-6)


def test_the_included_result_is_what_is_computed() -> None:
    plan = CONCEPTS.opens_with["image"]
    included = finished(plan)
    assert included is not None, "run python -m engine.shipped.make"
    with shipped.ignore_entries():
        computed = carry_out(plan)
    for one, other in zip(included.models[0].findings, computed.models[0].findings, strict=True):
        assert (one.concept, one.label, one.layer) == (other.concept, other.label, other.layer)
        assert one.score == pytest.approx(other.score, abs=0.02)  # a score is a share of examples
        assert one.accuracy == pytest.approx(other.accuracy, abs=0.02)
        assert one.significant == other.significant


def test_the_result_has_its_vectors_its_rows_and_a_place_in_the_cache() -> None:
    plan = ConceptsPlan(
        (MODEL,), "reviews", ("reviews:slice=first,rows=0-19",), TEXTS, layers=(1,), examples=40, runs=4
    )
    assert finished(plan) is None
    result = carry_out(plan)
    [one] = result.models
    assert one.concepts == (PASTED, "first")
    assert (one.sizes, one.layers, one.grouping) == ((10, 20), (1,), "label")
    source = load_source("text", "reviews")
    assert one.class_sizes == tuple(
        sum(source.read(index).label == label for index in one.examples) for label in one.classes
    )
    assert one.scores.shape == (2, 1, 2, 4)
    assert np.isfinite(one.scores).all()
    assert one.random_scores.shape[-1] == 12
    assert len(one.findings) == 4
    first = one.findings[0]
    assert first.score == pytest.approx(one.scores[0, 0, 0].mean())
    assert first.accuracy == pytest.approx(one.accuracy[0, 0].mean())
    assert first.separates
    assert all(own.p <= own.p_holm for own in one.findings)
    again = finished(plan)
    np.testing.assert_array_equal(again.models[0].scores, one.scores)
    assert len(list(rows(one))) == np.isfinite(one.scores).sum() + np.isfinite(one.random_scores).sum()
    assert json.loads(json.dumps(to_json(result)))["models"][0]["concepts"] == {PASTED: 10, "first": 20}
    assert len(one.examples) >= LEAST_CLASS


def test_the_command_prints_the_findings(run: Run) -> None:
    concept = "reviews:slice=first,rows=0-19"
    given = ("--models", MODEL, "--dataset", "reviews", "--concepts", concept, "--layers", "0", "--examples", "30")
    done = run("concepts", *given, "--runs", "3")
    assert (done.code, done.err) == (0, "")
    assert f"{MODEL} on reviews: first (20), 200 random examples" in done.out
    printed = run("concepts", *given, "--runs", "3", "--json").json
    assert len(printed["models"][0]["findings"]) == 2
    assert (
        run("concepts", "--models", MODEL, "--dataset", "reviews").complaint(2).startswith("concepts: must be 1 to 8")
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"texts": "one\ntwo"}, "pasted texts must have at least 10 examples, got 2"),
        ({"concepts": ("reviews:slice=few,rows=0-8",)}, "few must have at least 10 examples, got 9"),
        ({"texts": "# a\nx\n# a\ny"}, "two concepts are called 'a'"),
        ({"texts": TEXTS, "classes": ("fine",)}, "class"),
        ({"texts": TEXTS, "layers": (-1,)}, "layers"),
        ({"texts": TEXTS, "models": ("digits-vit",), "dataset": "digits"}, "texts: the models read pictures"),
        ({"texts": TEXTS, "models": ("bert-quality",), "dataset": "quality"}, "predicts a score"),
        ({"texts": TEXTS, "models": ("tiny-llama",)}, "is a language model"),
        ({"texts": TEXTS, "models": ("nli-minilm?labels=travel|food",)}, "reads a text once per label"),
        ({"texts": "same\n" * 12}, "pasted texts must have at least 10 examples, got 1"),
        ({"texts": f"# negation\n{TEXTS}", "concepts": ("negation",)}, "concepts: two are called 'negation'"),
        ({"concepts": ("boats",)}, "concepts: boats: scenes holds pictures, but the models read texts"),
        (
            {"concepts": ("negatoin",)},
            r"concepts: unknown name 'negatoin'.*Included concepts: praise, .*, boats\.$",
        ),
        ({"texts": TEXTS, "runs": 1}, "runs"),
    ],
)
def test_what_cannot_be_tested_is_refused_before_a_model_is_loaded(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check(ConceptsPlan(**{"models": (MODEL,), "dataset": "reviews", **fields}))


def test_concept_files_of_another_kind_damaged_or_of_copies_are_refused(tmp_path: Path) -> None:
    pictures, texts = ConceptsPlan(("scenes-vit",), "scenes"), ConceptsPlan((MODEL,), "reviews", examples=10)
    table, copies, pairs, empty = (tmp_path / f"{name}.csv" for name in ("table", "copies", "pairs", "empty"))
    table.write_text("text\n" + "".join(f"not {at}\n" for at in range(12)), encoding="utf-8")
    copies.write_text("text\n" + "not good\n" * 12, encoding="utf-8")
    pairs.write_text("text,text_pair\n" + "".join(f"not {at},good\n" for at in range(12)), encoding="utf-8")
    empty.write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match=r"concepts: .*table.csv holds texts, but the models read pictures"):
        check(replace(pictures, concepts=(str(table),)))
    Image.new("RGB", (8, 8)).save(tmp_path / "one.png")
    with zipfile.ZipFile(tmp_path / "pictures.zip", "w") as archive:
        archive.write(tmp_path / "one.png", "a/one.png")
    with pytest.raises(UsageError, match=r"concepts: .*pictures.zip holds pictures, but the models read texts"):
        check(replace(texts, concepts=(str(tmp_path / "pictures.zip"),)))
    with pytest.raises(ExegesisError, match=r"concepts: empty.csv: is empty"):
        check(replace(texts, concepts=(str(empty),)))
    with pytest.raises(UsageError, match=r"copies\.csv must have at least 10 different examples .*, got 1"):
        carry_out(replace(texts, concepts=(str(copies),)))
    with pytest.raises(UsageError, match=r"pairs\.csv has pairs, but reviews single texts"):
        carry_out(replace(texts, concepts=(str(pairs),)))


def test_a_concept_of_all_examples_leaves_none_to_compare_with() -> None:
    with pytest.raises(UsageError, match=r"dataset: must have at least 20 examples besides .*, got 0"):
        carry_out(ConceptsPlan((MODEL,), "reviews:rows=0-19", ("reviews:slice=all,rows=0-19",)))


def test_a_layer_that_the_model_lacks_is_refused() -> None:
    with pytest.raises(ExegesisError, match="layers: must be layers from 0 to"):
        carry_out(ConceptsPlan((MODEL,), "reviews", texts=TEXTS, layers=(99,), examples=10))


def test_lists_are_read_as_they_are_typed() -> None:
    assert parse_layers("0, 3") == (0, 3)
    assert parse_layers("") == parse_classes(" ") == ()
    assert parse_concepts("reviews:slice=a,rows=1+2,nli") == ("reviews:slice=a,rows=1+2", "nli")
    assert concept_name("reviews:slice=a,rows=1+2") == "a"
    assert parse_texts("x\n\n# b\ny\nz") == {PASTED: ["x"], "b": ["y", "z"]}
    for wrong in ("1,1", "-1", "x"):
        with pytest.raises(UsageError, match="different layers"):
            parse_layers(wrong)
