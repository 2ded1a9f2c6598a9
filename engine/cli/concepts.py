"""`exegesis concepts`: test whether a prediction depends on concepts given by examples (TCAV)."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from engine.cli.experiments import command_of
from engine.cli.output import table, visible
from engine.concepts.experiment import LEAST_CLASS, ConceptScores
from engine.concepts.plan import CONCEPTS
from engine.experiments.base import ExperimentResult
from engine.format import count_text

LEGEND = (
    "Score: the share of the class's examples whose logit rises along the concept's vector, with its 95% interval over "
    "vectors. Random: the same of random examples. p: a t-test, adjusted over concepts, layers and classes "
    "(Holm). Accuracy: of the vectors on held-out examples; below 0.6 the score says nothing."
)


def sections(result: ExperimentResult) -> Iterator[RenderableType]:
    """Yield, per model, the findings by concept, class and layer."""
    for one in result.models:
        sizes = ", ".join(f"{name} ({size:,})" for name, size in zip(one.concepts, one.sizes, strict=True))
        yield Text(visible(f"{one.model} on {one.dataset}: {sizes}, {one.pool:,} random examples"), style="bold")
        yield _findings(one)
        for label, size in zip(one.classes, one.class_sizes, strict=True):
            if size < LEAST_CLASS:
                yield Text(visible(f"{label} has {count_text(size, 'example')}; {LEAST_CLASS} are needed."))
        if one.failed:
            why = next(iter(one.failed.values()))
            yield Text(visible(f"{count_text(len(one.failed), 'example')} left out: {why}"))
        yield ""
    yield Text(LEGEND, style="dim")


def _findings(one: ConceptScores) -> RenderableType:
    numbers = ["layer", "score", "from", "to", "random", "p", "accuracy"]
    rows = table(["concept", "class", *numbers, ""], right=numbers)
    for own in one.findings:
        verdict = "significant" if own.significant else "" if own.separates else "separates nothing"
        values = (f"{own.score:.2f}", f"{own.low:.2f}", f"{own.high:.2f}", f"{own.random:.2f}", f"{own.p_holm:.4f}")
        cells = (own.concept, own.label, str(own.layer), *values, f"{own.accuracy:.2f}", verdict)
        rows.add_row(*(Text(visible(cell)) for cell in cells))
    return rows


concepts = command_of(CONCEPTS, sections)
