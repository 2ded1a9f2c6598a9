"""How to cite explanations and make them again, whatever was explained."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from html import escape

from components.request_link import differing
from engine.home import product_version
from engine.registry import Explainer
from engine.result import Explanation, Provenance

Shown = tuple[tuple[Explainer, Explanation], ...]
"""Each method that is shown with its explanation: all of one model, one input and one class."""


def json_of(shown: Shown) -> str:
    """What `exegesis explain --json` prints: a list, one object a method."""
    from engine.serialization import explanation_to_json

    return (
        json.dumps([explanation_to_json(made) for _, made in shown], indent=2, ensure_ascii=False, allow_nan=False)
        + "\n"
    )


def arguments_of(shown: Shown, looked_at: list[str]) -> list[str]:
    """The command's arguments. What is not said is what the command takes by itself."""
    first = shown[0][1]
    origin = first.provenance
    given = ["explain", "--model", origin.model, "--method", ",".join(method.id for method, _ in shown), *looked_at]
    given += target_arguments(first)
    for method, made in shown:
        for name, value in differing(method, made.provenance.params).items():
            given += ["--param", f"{method.id}.{name}={value}"]
    return [*given, *run_arguments(origin, origin.seed), "--json"]


def target_arguments(made: Explanation) -> list[str]:
    """The class, where it is not the one that the command takes by itself."""
    if made.prediction.regression or made.provenance.target == made.prediction.index:
        return []
    return ["--target", _target(made)]


def run_arguments(origin: Provenance, seed: int) -> list[str]:
    """How the model ran: its scaled heads, the seed, the precision."""
    given = [part for layer, head, scale in origin.heads for part in ("--head", f"{layer}.{head}={scale:g}")]
    given += [] if seed == 0 else ["--seed", str(seed)]
    return given + ([] if origin.dtype == "float32" else ["--dtype", origin.dtype])


def cite_html(shown: Shown) -> str:
    """Product, version, model and revision, and a reference for each method. Everything foreign is escaped."""
    return cited_html(cite(shown), references(shown))


def cited_html(sentence: str, lines: Iterable[str]) -> str:
    """What to cite: a sentence, and below it a line for each reference."""
    listed = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<div class="xg"><p>{escape(sentence)}</p><ul class="xg-small">{listed}</ul></div>'


def cite(shown: Shown) -> str:
    """One sentence: what made these numbers, of which model, in which run."""
    return origin_of(shown[0][1])


def origin_of(made: Explanation) -> str:
    """The same of one explanation, with the heads that were scaled."""
    origin = made.provenance
    explained = "its score" if made.prediction.regression else f"class {origin.target_label}"
    heads = ", ".join(f"{layer}.{head} x {scale:g}" for layer, head, scale in origin.heads)
    return (
        f"Exegesis {product_version()}. Model {origin.model}, revision {origin.revision}, {explained}, "
        f"{origin.dtype} on {origin.device}, seed {origin.seed}{f', heads scaled: {heads}' if heads else ''}."
    )


def references(shown: Shown) -> Iterator[str]:
    """Each method with its version and its paper."""
    for method, made in shown:
        yield f"{method.title} ({method.id}, version {made.provenance.version}): {method.citation.rstrip('.')}."


def _target(made: Explanation) -> str:
    """The class by its label, or by its number where the label stands for another class too."""
    index, labels = made.provenance.target, made.prediction.labels
    return labels[index] if labels.index(labels[index]) == index else str(index)
