"""Jobs: for each kind what a small specification is called, its units with keys, labels, batches and steps, and which
specifications are refused in which words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.frozen import doors
from tests.frozen.golden import summary

TEXTS = [{"text": "Warm and funny."}, {"text": "Never dull, said nobody.", "text_pair": None}]
PAIRS = [{"text": "A man plays.", "text_pair": "He is silent."}]
PICTURES = [{"dataset": "digits", "index": 3}, {"dataset": "digits", "index": 0, "split": "test"}]
RECIPE = {"epochs": 2, "batch_size": 8, "held_out": 10, "validation": 10, "test": 10}
SPECS: dict[str, list[dict[str, Any]]] = {
    "explain": [
        {"model": "reviews-minilm", "methods": ["gradient", "lime"], "examples": TEXTS},
        {"model": "nli-minilm", "methods": ["ensemble_top3"], "examples": PAIRS, "target": 1, "seed": 4,
         "dtype": "float64"},
        {"model": "reviews-minilm", "methods": ["lime", "kernel_shap"], "examples": TEXTS, "target": "negative",
         "params": {"lime": {"n_samples": 64}}},
        {"model": "digits-vit", "methods": ["occlusion", "grad_cam"], "examples": PICTURES},
        {"model": "digits-vit", "methods": ["random"], "examples": [{"dataset": "digits", "index": 10**9}]},
    ],
    "predict": [
        {"model": "reviews-minilm", "data": "reviews-marked"},
        {"model": "reviews-minilm", "data": "reviews-marked", "methods": ["gradient", "occlusion"], "dtype": "float64"},
        {"model": "photos-vit", "data": "photos"},
        {"model": "digits-vit", "data": "digits", "split": "test"},
    ],
    "evaluate": [
        {"models": ["reviews-minilm"], "dataset": "reviews", "methods": ["gradient", "lime"], "examples": 2},
        {"models": ["reviews-minilm", "bert-reviews"], "dataset": "reviews", "methods": ["ensemble_top3"],
         "examples": 2, "seed": 7, "metrics": ["comprehensiveness", "sensitivity"], "shares": [10, 30], "unit": "word",
         "removal": "pad", "samples": 3, "k": 2, "dtype": "float64"},
        {"models": ["bert-marked"], "dataset": "reviews-marked", "methods": ["occlusion"], "examples": 3,
         "params": {"occlusion": {"window": 2}}},
        {"models": ["nli-minilm"], "dataset": "nli", "methods": ["attention_mean"], "examples": 1},
        {"models": ["digits-vit"], "dataset": "digits", "methods": ["grad_cam"], "examples": 2, "split": "test"},
        {"models": ["scenes-marked-vit"], "dataset": "scenes-marked", "methods": ["gradient"], "examples": 2,
         "removal": "blur"},
    ],
    "behavior": [
        {"models": ["bert-reviews"], "dataset": "reviews", "methods": ["lime"], "examples": 2},
        {"models": ["bert-reviews", "bert-marked"], "dataset": "reviews-marked", "examples": 2, "seed": 5,
         "methods": ["gradient_l2", "occlusion"], "task": "feature", "feature": "positive", "dtype": "float64",
         "params": {"occlusion": {"window": 2}}},
        {"models": ["bert-reviews"], "dataset": "reviews", "methods": ["gradient_l2"], "examples": 1, "edit": "delete"},
    ],
    "randomize": [
        {"models": ["bert-reviews"], "dataset": "reviews", "examples": 2, "seeds": 1},
        {"models": ["reviews-minilm"], "dataset": "reviews", "examples": 3, "seeds": 2, "seed": 5,
         "methods": ["lime", "gradient"], "modes": ["independent"], "head": True, "embeddings": True,
         "dtype": "float64", "params": {"lime": {"n_samples": 32}}},
        {"models": ["digits-vit", "scenes-vit"], "dataset": "digits", "examples": 1, "seeds": 1, "split": "test",
         "methods": ["attention_rollout"], "modes": ["cascading"]},
    ],
    "corpus": [
        {"models": ["reviews-minilm"], "dataset": "reviews", "methods": ["gradient"], "examples": 2},
        {"models": ["digits-vit", "scenes-vit"], "dataset": "digits", "methods": ["occlusion"], "examples": 2,
         "split": "test", "seed": 3, "least": 2, "dtype": "float64", "params": {"occlusion": {"window": 2}}},
    ],
    "rules": [
        {"models": ["reviews-minilm"], "dataset": "reviews", "rules": ["negation -> negative"], "examples": 4},
        {"models": ["reviews-minilm"], "dataset": "reviews", "rules": ['"not" -> negative', '"great" -> positive'],
         "methods": ["lime"], "examples": 3, "removal": "mask", "params": {"lime": {"n_samples": 32}}},
        {"models": ["scenes-vit"], "dataset": "scenes", "rules": ["object -> any"], "methods": ["gradient"],
         "examples": 2},
    ],
    "compare": [
        {"dataset": "reviews", "pairs": ["gradient@reviews-minilm", "lime@bert-reviews"], "examples": 2},
        {"dataset": "reviews", "pairs": ["lime@reviews-minilm", "lime,n_samples=64@reviews-minilm"], "examples": 2,
         "seed": 3, "target": "positive"},
        {"dataset": "digits", "pairs": ["gradient@digits-vit", "occlusion@digits-vit"], "kind": "image",
         "split": "test", "examples": 2},
    ],
    "attack": [
        {"models": ["reviews-minilm"], "dataset": "reviews", "methods": ["gradient"], "examples": 2},
        {"models": ["bert-reviews"], "dataset": "reviews", "methods": ["gradient", "gradient_x_input"], "examples": 1,
         "objectives": ["constrained"], "attack": {"steps": 5, "starts": 1}, "transfer": ["lime", "gradient"],
         "params": {"lime": {"n_samples": 32}}, "seed": 2, "dtype": "float64"},
        {"models": ["digits-vit"], "dataset": "digits", "methods": ["gradient"], "examples": 1, "split": "test",
         "attack": {"place": "pixels"}},
    ],
    "scaffold": [
        {"teacher": "bert-reviews", "dataset": "reviews-generated", "train_sizes": [20, 40], "seeds": [0, 9],
         "recipe": RECIPE},
        {"teacher": "bert-quality", "dataset": "quality", "settings": ["smat", "none"], "train_sizes": [20],
         "seeds": [3], "recipe": {**RECIPE, "normalisation": "entmax15", "soft_targets": True}},
        {"teacher": "digits-vit", "dataset": "digits", "settings": ["smat"], "train_sizes": [20], "seeds": [0],
         "base": "bases/vit-narrow", "split": "train", "recipe": RECIPE},
    ],
    "reproduce": [
        {"examples": 2},
        {"examples": 2, "topic": "sanity", "seed": 3},
        {"scale": "full", "examples": 2},
    ],
    "reproduce_smat": [{}, {"examples": 5, "seed": 1}],
}  # fmt: skip
HOSTILE: list[Any] = [
    {}, {"model": 1}, {"models": "bert-reviews", "dataset": "reviews", "methods": ["lime"], "pairs": "x"},
    {"<b>": "x"}, {"model": "no-such-model", "methods": ["lime"], "examples": TEXTS, "data": "reviews"},
]  # fmt: skip
REFUSED: dict[str, list[dict[str, Any]]] = {
    "explain": [
        {"methods": []}, {"methods": "lime"}, {"methods": ["no_such"]}, {"methods": [3]}, {"examples": []},
        {"examples": [{"text": 3}]}, {"examples": [*TEXTS, *PICTURES]}, {"examples": PICTURES}, {"examples": [{}]},
        {"params": {"gradient": {}, "other": {}}}, {"params": {"lime": {"n_samples": "x"}}}, {"params": []},
        {"target": 1.5}, {"seed": -1}, {"seed": True}, {"dtype": "int8"}, {"model": "digits-vit"}, {"extra": 1},
        {"examples": [{"dataset": "no-such", "index": 0}], "model": "digits-vit", "methods": ["random"], "params": {}},
        {"examples": [{"text": "x" * 1_000_001}]},
    ],
    "predict": [
        {"data": "no-such-set"}, {"data": 3}, {"split": "test"}, {"methods": ["lime"]}, {"methods": "lime"},
        {"methods": ["lime", "ensemble_all"]}, {"dtype": "x"}, {"model": "digits-vit", "data": "no-such-pictures"},
        {"model": "digits-vit", "data": "digits", "methods": ["lime", "gradient"]}, {"extra": 1},
        {"model": "digits-vit", "data": "digits", "split": 3},
    ],
    "evaluate": [
        {"models": []}, {"models": ["reviews-minilm", "digits-vit"]}, {"models": ["a", "a"]}, {"methods": []},
        {"methods": ["no_such"]}, {"metrics": ["no_such"]}, {"metrics": ["gt_overlap", "gt_overlap"]},
        {"examples": 0}, {"examples": "2"}, {"seed": -1}, {"k": 0}, {"samples": 0}, {"shares": []}, {"shares": [0]},
        {"shares": [101]}, {"unit": "patch"}, {"removal": "blur"}, {"dtype": "x"}, {"params": {"other": {}}},
        {"params": {"lime": {"n_samples": 0}}}, {"dataset": 3}, {"split": 3}, {"extra": 1}, {"shares": 10},
    ],
    "behavior": [
        {"models": []}, {"models": ["reviews-minilm", "digits-vit"]}, {"methods": []}, {"methods": ["no_such"]},
        {"task": "other"},
        {"edit": "mask"}, {"draws": 0}, {"margin": -1}, {"size": 4}, {"size": "2"}, {"feature": 3}, {"examples": 0},
        {"task": "feature", "feature": ","}, {"dtype": "x"}, {"params": {"other": {}}}, {"extra": 1},
    ],
    "randomize": [
        {"models": []}, {"methods": []}, {"methods": ["random"]}, {"methods": ["lime", "lime"]}, {"modes": ["upwards"]},
        {"modes": []}, {"seeds": 0}, {"examples": 0}, {"head": 1}, {"embeddings": "yes"}, {"dtype": "x"},
        {"params": {"other": {}}}, {"extra": 1}, {"models": ["bert-reviews", "digits-vit"]}, {"seed": -3},
    ],
    "corpus": [
        {"models": []}, {"methods": ["no_such"]}, {"least": 1}, {"examples": 0}, {"seed": -1}, {"dtype": "x"},
        {"params": {"other": {}}}, {"extra": 1}, {"models": ["bert-reviews", "digits-vit"]}, {"dataset": 3},
    ],
    "rules": [
        {"rules": []}, {"rules": ["good -> positive"]}, {"rules": ['"good" -> fine']}, {"rules": ["object -> any"]},
        {"rules": ['"a" -> 0'] * 2}, {"removal": "blur"}, {"models": ["digits-vit"]}, {"extra": 1}, {"examples": 0},
    ],
    "compare": [
        {"pairs": []}, {"pairs": ["lime"]}, {"pairs": ["lime@no-such"]}, {"pairs": ["no_such@reviews-minilm"]},
        {"pairs": ["lime@reviews-minilm"]}, {"pairs": [3]}, {"pairs": "lime@reviews-minilm"}, {"kind": "sound"},
        {"examples": 0}, {"seed": -1}, {"target": 3}, {"extra": 1}, {"pairs": ["lime,n_samples=x@reviews-minilm"]},
        {"pairs": ["lime@digits-vit", "gradient@digits-vit"]}, {"dataset": 3},
    ],
    "attack": [
        {"methods": ["lime"]}, {"methods": ["attention_mean"]}, {"objectives": []}, {"objectives": ["other"]},
        {"attack": {"objective": "constrained"}}, {"attack": {"steps": 0}}, {"attack": {"no_such": 1}}, {"attack": 3},
        {"transfer": ["no_such"]}, {"transfer": ["lime", "lime"]}, {"attack": {"place": "pixels"}}, {"examples": 0},
        {"params": {"other": {}}}, {"extra": 1}, {"seed": -1}, {"dtype": "x"}, {"dataset": 3},
    ],
    "scaffold": [
        {"settings": []}, {"settings": ["no_such"]}, {"settings": "none"}, {"train_sizes": [0]}, {"seeds": [-1]},
        {"seeds": [1, 1]}, {"recipe": {"epochs": 0}}, {"recipe": {"no_such": 1}}, {"recipe": 3}, {"teacher": 3},
        {"base": 3}, {"extra": 1}, {"recipe": {"normalisation": "max"}}, {"teacher": "no-such-model"},
    ],
    "reproduce": [
        {"scale": "huge"}, {"claims": ["no-such"]}, {"claims": "all"}, {"examples": 1}, {"seed": -1}, {"places": 3},
        {"topic": "other"}, {"extra": 1},
    ],
    "reproduce_smat": [
        {"scale": "huge"}, {"claims": ["no-such"]}, {"claims": "all"}, {"examples": 1}, {"seed": -1}, {"places": 3},
        {"extra": 1},
    ],
}  # fmt: skip


def parts() -> dict[str, Callable[[], Any]]:
    """Each golden file of this subject."""
    return {
        "units": lambda: {kind: [_job(kind, spec) for spec in specs] for kind, specs in SPECS.items()},
        "refused_jobs": lambda: {kind: _refusals(kind) for kind in SPECS},
    }


def _job(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    """A job as the runner sees it."""
    try:
        units = summary(doors.units(kind, spec), 40)
    except doors.ExegesisError as error:
        units = f"refused: {doors.told(error)}"
    return {"spec": spec, "title": doors.title(kind, spec), "units": units}


def _refusals(kind: str) -> list[list[Any]]:
    """Changes to the first good specification, and what is said to them."""
    changed = [{**SPECS[kind][0], **change} for change in REFUSED[kind]]
    said = [[change, doors.refusal(kind, spec)] for change, spec in zip(REFUSED[kind], changed, strict=True)]
    return [[_short(given), why] for given, why in [*said, *([one, doors.refusal(kind, one)] for one in HOSTILE)]]


def _short(value: Any) -> Any:
    text = str(value)
    return value if len(text) < 500 else f"{text[:80]}… ({len(text)} characters)"
