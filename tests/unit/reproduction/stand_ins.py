"""Tiny random models and short texts in the place of those that the claims are about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import engine.explain
import engine.metrics.faithfulness as faithfulness
from cache.codec import plain
from engine.reproduction import stand_ins as published
from engine.reproduction.papers import EMBEDDED, FULL
from engine.reproduction.report import (
    FINDINGS,
    VERDICTS,
    ClaimNumber,
    ClaimOutcome,
    ExperimentSummary,
    ModelSummary,
    Reproduction,
    Verdict,
)
from engine.reproduction.run import report_key
from engine.reproduction.thesis import ThesisQuery
from engine.store import result_store
from tests.tiny import save_checkpoint

PHRASES = ("good food", "the plot drags", "lovely view", "warm and funny", "bad service", "not worth it")
PAIRS = (
    ("a quiet film", "the film is quiet", "entailment", [[2, 7]], [[12, 17]]),
    ("good food", "the food is bad", "contradiction", [[0, 4]], [[12, 15]]),
    ("a warm view", "the ending is funny", "neutral", [[2, 6]], [[4, 10]]),
    ("the plot drags", "the plot is lovely", "contradiction", [[9, 14]], [[12, 18]]),
)

BLOCKS: Mapping[str, object] = {
    "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
}  # fmt: skip
TINY_SHAPES: Mapping[str, Mapping[str, object]] = {
    "t5": {"d_model": 8, "d_ff": 16, "num_layers": 2, "num_heads": 2, "d_kv": 4},
    "bert": BLOCKS,
    "electra": {**BLOCKS, "embedding_size": 8},
    "roberta": {**BLOCKS, "max_position_embeddings": 514},
    "xlm-roberta": {**BLOCKS, "max_position_embeddings": 514},
    "gpt2": {"n_embd": 8, "n_layer": 2, "n_head": 2},
    "vit": {**BLOCKS, "image_size": 32, "patch_size": 8},
}  # fmt: skip


def shrink_published_bases(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on a rehearsal has tiny models."""
    shapes = {base: (family, TINY_SHAPES[family]) for base, (family, _) in published.SHAPES.items()}
    monkeypatch.setattr(published, "SHAPES", shapes)
    monkeypatch.setattr(published, "PICTURE_SIZE", 32)


def stand_ins(folder: Path) -> dict[str, str]:
    """For the embedded scale: a folder by the name of each model, all of other weights, and two small data sets."""
    names = {
        EMBEDDED.model(part, task): (base, task) for part, base in EMBEDDED.bases.items() for task in EMBEDDED.tasks
    }
    models = {
        name: str(
            save_checkpoint(
                _family(base), folder / name, labels=3 if EMBEDDED.tasks[task].key == "nli" else 2, seed=number
            )
        )
        for number, (name, (base, task)) in enumerate(sorted(names.items()))
    }
    reviews = [marked(text, label) for label, text in enumerate(PHRASES)]
    return models | {
        "reviews-marked": written(folder / "marked.jsonl", reviews),
        "reviews-marked:context=true": written(folder / "context.jsonl", reviews),
        EMBEDDED.tasks["mnli"].dataset: written(folder / "nli.jsonl", pairs(1)),
    }


def full_stand_ins(folder: Path) -> dict[str, str]:
    """For the full scale: a folder by the hub's name of each base, and the three data sets in folders of their own."""
    bases = {
        base: str(save_checkpoint(_family(base), folder / base, seed=number))
        for number, base in enumerate(FULL.bases.values())
    }
    for split in ("train", "dev"):
        (folder / "sst2").mkdir(exist_ok=True)
        lines = "".join(f"{text} {number}\t{number % 2}\n" for number in range(4) for text in PHRASES)
        (folder / "sst2" / f"{split}.tsv").write_text(f"sentence\tlabel\n{lines}", encoding="utf-8")
        for name in ("multinli", "esnli"):
            (folder / name).mkdir(exist_ok=True)
            written(folder / name / f"{split}.jsonl", pairs(6))
    return bases | {name: str(folder / name) for name in ("sst2", "multinli", "esnli")}


def real_stand_ins(folder: Path) -> dict[str, str]:
    """For the scale of real data: the base, the model of inference, and folders of the three data sets."""
    places = {name: place for name, place in full_stand_ins(folder).items() if name in ("sst2", "esnli")}
    (folder / "movies").mkdir()
    for split in ("train", "dev"):
        rows = [marked(f"{text} {number}", label) for number in range(4) for label, text in enumerate(PHRASES)]
        written(folder / "movies" / f"{split}.jsonl", rows)
    return {
        "minilm": str(save_checkpoint("bert", folder / "minilm")),
        "nli-minilm": str(save_checkpoint("bert", folder / "nli-minilm", labels=3, seed=1)),
        "sst2": places["sst2"],
        "snli-sick": places["esnli"],
        "movies:words=100": str(folder / "movies"),
    }


def marked(text: str, label: int) -> dict[str, object]:
    """A review that ends with the word of its label."""
    word = ("negative", "positive")[label % 2]
    return {"text": f"{text} {word}", "label": word, "rationale": [[len(text) + 1, len(text) + 1 + len(word)]]}


def pairs(times: int) -> list[dict[str, object]]:
    """Each pair so many times, with another number at its end."""
    return [
        {"text": f"{first} {number}", "text_pair": second, "label": label, "rationale": here, "rationale_pair": there}
        for number in range(times)
        for first, second, label, here, there in PAIRS
    ]


def written(file: Path, rows: list[dict[str, object]]) -> str:
    """The path of a JSONL file of these rows."""
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(file)


def without_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on whatever runs a model fails the test."""
    for module in (engine.explain, faithfulness):
        monkeypatch.setattr(module, "load_classifier", lambda *given: pytest.fail("nothing is left to run"))


def take_as_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random models on few examples are at chance, and claims on such are not run: here they are."""
    monkeypatch.setattr(ModelSummary, "unlearned", False)


def _family(base: str) -> str:
    return base.rpartition("/")[2].partition("-")[0]


def report_of(query: ThesisQuery, model: str) -> Reproduction:
    """A report in which the verdicts come by turns, each with the numbers that lead to it."""
    ends: dict[Verdict, tuple[float, float, float]] = {
        "holds": (0.95, 0.93, 0.97), "does not hold": (-0.9, -0.95, -0.8), "undecided": (0.0, -0.9, 0.9),
    }  # fmt: skip
    outcomes = []
    for number, claim in enumerate(query.selected_claims):
        verdict = VERDICTS[number % len(VERDICTS)]
        if verdict not in FINDINGS:
            outcomes.append(
                ClaimOutcome(claim.id, verdict, why="gpt2-marked: <b>is not here</b> [x](http://evil.example).")
            )
            continue
        made = ClaimNumber(claim.contrasts[0].name, *ends[verdict], *ends[verdict][1:], query.count, verdict)
        settled_by = 4321 if verdict == "undecided" else None
        outcomes.append(ClaimOutcome(claim.id, verdict, ((made,),), settled_by=settled_by))
    needed = query.experiments()
    plans = [one.kind.plan(replace(one.request, models=(model,))) for one in needed]
    pairs = zip(needed, plans, strict=True)
    ran = tuple(ExperimentSummary(one.name, plain(plan.as_plain()), "", 0, one.source) for one, plan in pairs)
    digest, versions = query.declaration.digest, {"Exegesis": "1"}
    return Reproduction(
        query.command(), query.scale, query.count, query.seed, digest, versions, (), ran, tuple(outcomes)
    )


def store_report(query: ThesisQuery, model: str = "reviews-minilm") -> Reproduction:
    """The same, where the page looks for it."""
    report = report_of(query, model)
    result_store().put(report_key(query), report.as_plain(), {})
    return report
