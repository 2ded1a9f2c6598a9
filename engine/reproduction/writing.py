"""The report in Markdown: the same bytes for the same numbers, so without folders, and without a date of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.reproduction.asked import FILE
from engine.reproduction.claims import FILES, TOPICS, Claim, Declared
from engine.reproduction.outcome import ExperimentFound, ModelFound, Number, Outcome, Reproduction
from engine.reproduction.scales import Scale, scale_of
from engine.reproduction.words import (
    ABOUT,
    FLAT,
    INSIDE,
    LEVEL,
    NO_FINDINGS,
    decides,
    interval_told,
    name_told,
    number_told,
    quantities_told,
    right_told,
    rule_told,
    same_data_told,
    seen_told,
    sentence,
    settled_told,
    statistic_told,
    wide_told,
)


def markdown(found: Reproduction, declared: Declared, made: str = "") -> str:
    """The whole report. Its first line names command, seed, versions and the digest of what was declared.

    `made`: when and with what, of a report that is kept.
    """
    claims = {claim.id: claim for claim in declared.claims}
    scale, topic = scale_of(found.scale), declared.topic
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    lines = [
        f"`{found.command}`, seed {found.seed}, {versions}, claims {found.digest}",
        "",
        f"# Claims of the thesis, {found.scale} scale{'' if topic == TOPICS[0] else f', {topic}'}",
        "",
        f"{declared.source}. {sentence(found)}",
        "",
        *([made, ""] if made else []),
        quantities_told(found, topic),
        "",
        *([right, ""] if (right := right_told(found)) else []),
        ABOUT[topic],
        "",
        *table(
            ["section", "claim", "verdict", "rule", "what decides"],
            [_row(claims[one.id], one, scale) for one in found.outcomes],
        ),
        "",
        "## How numbers become a verdict",
        "",
        f"{LEVEL} {NO_FINDINGS} The claims, their statistics, bounds and number of examples were declared before the "
        f"run, in `engine/reproduction/{FILES[topic].name}`; the digest above is the SHA-256 of its content. "
        f"{declared.revised}",
        "",
        *(f"{said}\n" for said in _of_what(found, topic)),
        "## Claim by claim",
        *(line for one in found.outcomes for line in _claim(claims[one.id], one, scale)),
        "",
        "## Models",
        "",
        *table(
            ["model", "revision", "data set", "accuracy on the examples", "n"], [_model(one) for one in found.models]
        ),
        "",
        "## Evaluations" if topic == TOPICS[0] else "## Experiments",
        "",
        *(line for one in found.experiments for line in _experiment(one)),
    ]
    return "\n".join(lines) + "\n"


def _of_what(found: Reproduction, topic: str) -> Iterator[str]:
    """What the numbers rest on that their names do not say."""
    if same := same_data_told(scale_of(found.scale), topic):
        yield same
    if topic == TOPICS[0]:
        yield FLAT
    if found.given:
        yield f"`{FILE}` names folders for: {', '.join(found.given)}."


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Its lines."""
    return [_line(head), _line(["---"] * len(head)), *map(_line, rows)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(' '.join(cell.replace('|', '/').split()) for cell in cells)} |"


def _row(claim: Claim, outcome: Outcome, scale: Scale) -> list[str]:
    title = f"[{claim.title}](#{claim.id})"
    return [claim.section, title, outcome.verdict, rule_told(claim), decides(claim, outcome, scale)]


def _claim(claim: Claim, outcome: Outcome, scale: Scale) -> Iterator[str]:
    yield from ("", f'<a id="{claim.id}"></a>', "", f"### {claim.title}: {outcome.verdict}", "")
    yield f"Section {claim.section}, `{claim.id}`. {claim.says}"
    yield from ("", f"Statistic: {statistic_told(claim)}. Rule: {rule_told(claim)}.", "")
    if outcome.why:
        yield from (f"Why: {outcome.why}", "")
    if not outcome.numbers:
        return
    if seen := seen_told(outcome):
        yield from (f"Seen: {seen}.", "")
    if outcome.verdict == "undecided":
        yield from (f"To tell: {settled_told(outcome)}.", "")
    head = ["what", "value", "95 % interval", "widened", "n", "inside"]
    yield from table(head, [_number(one, scale) for one in outcome.numbers])


def _number(one: Number, scale: Scale) -> list[str]:
    intervals = [interval_told(one), wide_told(one)]
    return [name_told(one.name, scale) or "all", number_told(one.value), *intervals, f"{one.n:,}", INSIDE[one.verdict]]


def _model(one: ModelFound) -> list[str]:
    accuracy = (
        f"not there: {one.why}" if one.why else "not known" if one.accuracy is None else number_told(one.accuracy)
    )
    return [one.name, one.revision, one.data, accuracy, str(one.n) if one.n else ""]


def _experiment(one: ExperimentFound) -> Iterator[str]:
    if one.why:
        yield f"* {one.name}: not run, {one.why}"
        return
    plan = one.plan
    said = f"{len(plan['models'])} models, up to {plan['examples']} examples, {_how(one)}"
    yield f"* {one.name}: {said}; methods {', '.join(plan['methods'])}; examples with a value missing: {one.skipped}"


def _how(one: ExperimentFound) -> str:
    plan = one.plan
    if one.source == "randomization":
        return f"each part made random {plan['seeds']} times, {' and '.join(plan['modes'])}"
    if one.source == "attack":
        chosen = (f"{name} {value}" for name, value in plan["attack"].items())
        return f"attacked {' and '.join(plan['objectives'])}, {', '.join(chosen)}"
    return ", ".join(plan["metrics"])
