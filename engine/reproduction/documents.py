"""Reports as Markdown and CSV. Equal numbers give equal bytes, so the files contain no local folders and no date."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from pathlib import Path
from typing import Any

from engine.errors import UsageError
from engine.reproduction import wording
from engine.reproduction.claims import FOLDER, PLACES_FILE, Claim, Declaration, ReproductionQuery, declaration
from engine.reproduction.papers import (
    ACTIVE,
    AUC,
    DEPTH,
    NON_FINDING_RULES,
    NORMALIZATIONS,
    SIDES,
    SIMULABILITY,
    TASKS,
    Scale,
    Source,
    Topic,
    scale_of,
    setting_name,
)
from engine.reproduction.report import (
    OPPOSED,
    VERDICTS,
    ClaimNumber,
    ClaimOutcome,
    ExperimentSummary,
    ModelSummary,
    Reproduction,
    TableRow,
    Verdict,
)

NOT_EXAMINED = "not examined"
NO_TRAININGS: Mapping[str, Any] = {"which": "", "how": "", "verdicts": {}, "overall": {}}
TABLES = {
    SIMULABILITY: ("Simulability (tables 1, 3, 5 and 7)", "median", "quartiles", "seeds"),
    AUC: ("Plausibility (tables 2 and 6)", "mean AUC", "95% interval", "examples"),
    ACTIVE: ("Share of heads with a weight above 0 (figure 5)", "median", "quartiles", "seeds"),
    DEPTH: ("Mean layer of the weight, 0 the first and 1 the last (figure 5)", "median", "quartiles", "seeds"),
}
"""Title, and the columns for value, interval and n, of the tables of the SMaT paper."""


@dataclass(frozen=True)
class FailureReason:
    """Why a claim fails here, as examined after a run; or which further tests a claim that holds has passed.

    `reason`: the cause, such as code or scale. `how`: how it is known.
    """

    reason: str
    how: str


@dataclass(frozen=True)
class Examination:
    """The examination of a topic's claims after their run. `reasons`: by claim.

    `trainings`: by claim, its verdicts on other trainings of its models. `which`: a description of these trainings.
    `how`: how they were judged. `overall`: by claim, its verdict over all trainings and examples.
    """

    reasons: Mapping[str, FailureReason] = field(default_factory=dict)
    trainings: Mapping[str, tuple[Verdict, ...]] = field(default_factory=dict)
    which: str = ""
    how: str = ""
    overall: Mapping[str, Verdict] = field(default_factory=dict)

    def is_opposed(self, outcome: ClaimOutcome) -> bool:
        """Whether a claim that was measured holds with one training and fails with another."""
        return bool(outcome.numbers) and {outcome.verdict, *self.trainings.get(outcome.id, ())} >= OPPOSED


def topic_examination(topic: Topic, digest: str) -> Examination | None:
    """Return the topic's examination, or None if it has none. `digest`: of the claims of the report."""
    return read_examination(FOLDER / topic.reasons, declaration(topic.id), digest) if topic.reasons else None


def read_examination(file: Path, declared: Declaration, digest: str) -> Examination:
    """Read an examination; an empty one if the file does not exist or its claims have another digest.

    Errors: a file of another structure, or one that names an undeclared claim or an unknown verdict.
    """
    if not file.exists():
        return Examination()
    plain = json.loads(file.read_text(encoding="utf-8"))
    try:
        bound, others = plain["digest"], plain.get("trainings", NO_TRAININGS)
        reasons = {id: FailureReason(one["reason"], one["how"]) for id, one in plain["claims"].items()}
        trainings = {id: tuple(map(_verdict, own)) for id, own in others["verdicts"].items()}
        overall = {id: _verdict(own) for id, own in others["overall"].items()}
        examination = Examination(reasons, trainings, others["which"], others["how"], overall)
    except (KeyError, TypeError, AttributeError, ValueError):
        raise UsageError(
            f"{file.name}: must be an object of digest and claims, each with reason and how, and perhaps of trainings: "
            "which, how, verdicts, a list for each claim, and overall, a verdict for each. Write it again."
        ) from None
    if strange := sorted((reasons.keys() | trainings.keys()) - set(declared.ids)):
        raise UsageError(f"{file.name}: {', '.join(strange)} is not a claim of {declared.source}. Remove it.")
    return examination if bound == digest else Examination()


def _verdict(name: object) -> Verdict:
    return VERDICTS[VERDICTS.index(name)]


def examination_text(outcome: ClaimOutcome, examination: Examination | None) -> str:
    """Return why a claim fails, or how one that holds was tested further, and the verdicts on other trainings."""
    if examination is None:
        return ""
    one, others = examination.reasons.get(outcome.id), examination.trainings.get(outcome.id, ())
    texts = []
    if outcome.verdict == "does not hold":
        texts.append(
            f"Why it fails here: {NOT_EXAMINED}." if one is None else f"Why it fails here: {one.reason} {one.how}"
        )
    elif outcome.verdict == "holds" and one is not None:
        texts.append(f"Examined further: {one.reason} {one.how}")
    if others:
        texts.append(f"With other trainings of its models ({examination.which}): {', '.join(others)}.")
    if overall := examination.overall.get(outcome.id):
        texts.append(f"Over all {len(others) + 1} trainings and the examples: {overall}.")
    return " ".join(texts)


def report_files(report: Reproduction, query: ReproductionQuery, provenance: str = "") -> dict[str, Callable[[], str]]:
    """Return the files of a report: a function for the content of each, by suffix. `provenance`: see `markdown`."""
    files: dict[str, Callable[[], str]] = {
        ".md": lambda: markdown(report, query, provenance),
        ".json": lambda: json.dumps(report.as_plain(), indent=1, ensure_ascii=False) + "\n",
    }
    if report.rows is not None:
        files |= {".csv": lambda: claims_csv(report, query.selected_claims), "-tables.csv": lambda: tables_csv(report)}
    return files


def markdown(
    report: Reproduction, query: ReproductionQuery, provenance: str = "", examination: Examination | None = None
) -> str:
    """Return the report as Markdown. Its first line states command, seed, versions and the digest of the claims.

    `query`: the query that the report answers. `provenance`: when and with what a shipped report was made.
    `examination`: None for the one that ships with the project.
    """
    claims = {claim.id: claim for claim in query.selected_claims}
    scale, topic, declared = scale_of(report.scale), query.about, query.declaration
    examination = topic_examination(topic, report.digest) if examination is None else examination
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    suffix = f", {topic.id}" if topic.stem != topic.paper else ""
    places = f"`{PLACES_FILE}` names folders for: {', '.join(report.given)}." if report.given else ""
    lines = [
        f"`{report.command}`, seed {report.seed}, {versions}, claims {report.digest}",
        "",
        f"# Claims of {topic.heading}, {report.scale} scale{suffix}",
        "",
        f"{declared.source}. {wording.summary_sentence(report)}",
        "",
        *_paragraph(provenance),
        *_paragraph(wording.quantity_text(report, topic)),
        *_paragraph(wording.accuracy_text(report)),
        *_paragraph(topic.about),
        *table(
            ["section", "claim", "verdict", "rule", "deciding number"],
            [_overview_row(claims[one.id], one, scale) for one in report.outcomes],
        ),
        "",
        "## How a verdict is reached",
        "",
        f"{topic.level} {NON_FINDING_RULES} {topic.declared} were declared before the run, in "
        f"`engine/reproduction/{topic.declaration}`; the digest above is the SHA-256 of its content. "
        f"{declared.revised}",
        "",
        *_paragraph(wording.shared_data_text(scale, topic)),
        *_paragraph(topic.note),
        *_paragraph(places),
        *_paragraph(examination.how if examination else ""),
        "## Claim by claim",
        *(line for one in report.outcomes for line in _claim(claims[one.id], one, scale, examination)),
        "",
        *(line for id in TABLES for line in _paper_table(id, report.rows or ())),
        f"## {topic.models}",
        "",
        *table(topic.columns, [MODEL_CELLS[topic.paper](one) for one in report.models]),
        "",
        f"## {topic.experiments}",
        "",
        *(f"* {_experiment(one)}" for one in report.experiments),
    ]
    return "\n".join(lines) + "\n"


def tables_csv(report: Reproduction) -> str:
    """Return the numbers of the paper's tables as CSV, one row each."""
    return _csv([field.name for field in fields(TableRow)], (astuple(row) for row in report.rows or ()))


def claims_csv(report: Reproduction, claims: Sequence[Claim]) -> str:
    """Return the claims' numbers as CSV, one row each; a claim without numbers has a row with its verdict only."""
    sections = {claim.id: claim.section for claim in claims}
    head = [
        "claim",
        "section",
        "verdict",
        "number",
        "value",
        "low",
        "high",
        "wide_low",
        "wide_high",
        "n",
        "inside",
        "least",
    ]
    lines: list[Sequence[object]] = []
    for one in report.outcomes:
        start = (one.id, sections[one.id], one.verdict)
        lines += [
            (
                *start,
                n.name,
                n.value,
                n.low,
                n.high,
                n.wide_low,
                n.wide_high,
                n.n,
                wording.INSIDE[n.verdict],
                n.smallest_gain or "",
            )
            for n in one.numbers
        ] or [start]
    return _csv(head, (tuple(line) + ("",) * (len(head) - len(line)) for line in lines))


def _csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    return [_line(head), _line(["---"] * len(head)), *map(_line, rows)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(' '.join(cell.replace('|', '/').split()) for cell in cells)} |"


def _paragraph(text: str) -> list[str]:
    """Return the text followed by an empty line; an empty list if there is no text."""
    return [text, ""] if text else []


def _overview_row(claim: Claim, outcome: ClaimOutcome, scale: Scale) -> list[str]:
    title = f"[{claim.title}](#{claim.id})"
    rule = wording.rule_text(claim) if claim.contrasts else ""
    return [claim.section, title, outcome.verdict, rule, wording.decision_text(claim, outcome, scale)]


def _claim(claim: Claim, outcome: ClaimOutcome, scale: Scale, examination: Examination | None) -> Iterator[str]:
    yield from ("", f'<a id="{claim.id}"></a>', "", f"### {claim.title}: {outcome.verdict}", "")
    yield f"Section {claim.section}, `{claim.id}`. {claim.says}"
    rule = f" Rule: {wording.rule_text(claim)}." if claim.contrasts else ""
    trainings = wording.trainings_text(claim, scale)
    yield from ("", f"Statistic: {wording.statistic_text(claim)}.{rule}{trainings and ' '}{trainings}", "")
    if outcome.why:
        yield from (f"Why: {outcome.why}", "")
    if not outcome.numbers:
        return
    if distribution := wording.distribution_text(outcome):
        yield from (f"Distribution: {distribution}.", "")
    if outcome.verdict == "undecided":
        yield from (f"Undecided: {wording.settling_text(outcome)}.", "")
    yield from _paragraph(examination_text(outcome, examination))
    has_gain = any(one.smallest_gain for one in outcome.numbers)
    columns = ["what", "value", "95% interval", "widened", *["smallest gain that counts"] * has_gain, "n", "inside"]
    yield from table(columns, [_number(one, scale, has_gain) for one in outcome.numbers])


def _number(one: ClaimNumber, scale: Scale, has_gain: bool) -> list[str]:
    """Return the table row of a number. `has_gain`: whether there is a column for the smallest gain that counts."""
    name = wording.number_title(one.name, scale) or "all"
    ends = [wording.interval_text(one), wording.wide_interval_text(one)]
    gain = [wording.format_number(one.smallest_gain)] * has_gain
    return [name, wording.format_number(one.value), *ends, *gain, f"{one.n:,}", wording.INSIDE[one.verdict]]


def _paper_table(id: str, rows: Sequence[TableRow]) -> Iterator[str]:
    own = [row for row in rows if row.table == id]
    if not own:
        return
    title, value, ends, n = TABLES[id]
    yield from (f"## {title}", "")
    yield from table(["of", "setting", value, ends, n, "note"], [_paper_row(row) for row in own])
    yield ""


def _paper_row(row: TableRow) -> list[str]:
    where = [TASKS[row.task], SIDES.get(row.side, ""), f"{row.train_size:,} examples" if row.train_size else ""]
    where.append("" if row.normalisation == "sparsemax" else NORMALIZATIONS[row.normalisation])
    ends = f"{wording.format_number(row.low)} to {wording.format_number(row.high)}"
    of = ", ".join(filter(None, where))
    return [of, setting_name(row.what), wording.format_number(row.value), ends, f"{row.n:,}", row.note]


def _model(one: ModelSummary) -> list[str]:
    accuracy = "unknown" if one.accuracy is None else wording.format_number(one.accuracy)
    return [one.name, one.revision, one.data, f"missing: {one.why}" if one.why else accuracy, str(one.n or "")]


def _teacher(one: ModelSummary) -> list[str]:
    score = one.accuracy if one.correlation is None else one.correlation
    text = "unknown" if score is None else wording.format_number(score)
    if one.correlation is not None:
        p = one.p_value or 0.0
        text += f" (p {'< 0.001' if p < 0.001 else f'= {p:.3f}'}{', no better than chance' if one.unlearned else ''})"
    return [one.name, f"missing: {one.why}" if one.why else one.revision, one.data, text, f"{one.n:,}"]


MODEL_CELLS: Mapping[str, Callable[[ModelSummary], list[str]]] = {"thesis": _model, "smat": _teacher}
"""Functions for the row of a model, by paper."""


def _attack_settings(plan: Mapping[str, Any]) -> str:
    chosen = (f"{name} {value}" for name, value in plan["attack"].items())
    return f"attacked {' and '.join(plan['objectives'])}, {', '.join(chosen)}"


SETTINGS: Mapping[Source, Callable[[Mapping[str, Any]], str]] = {
    "evaluation": lambda plan: ", ".join(plan["metrics"]),
    "randomization": lambda plan: f"each part randomized {plan['seeds']} times, {' and '.join(plan['modes'])}",
    "attack": _attack_settings,
}
"""Functions that describe the settings of an experiment, by its kind."""


def _experiment(one: ExperimentSummary) -> str:
    if one.source == "scaffold":
        return _students(one)
    if one.why:
        return f"{one.name}: not run, {one.why}"
    plan = one.plan
    text = f"{len(plan['models'])} models, up to {plan['examples']} examples, {SETTINGS[one.source](plan)}"
    return f"{one.name}: {text}; methods {', '.join(plan['methods'])}; examples with a missing value: {one.skipped}"


def _students(one: ExperimentSummary) -> str:
    task, normalization = one.name.split(", ")
    name = f"{TASKS[task]}, {NORMALIZATIONS[normalization]}"
    if one.why:
        return f"{name}: not run, {one.why}"
    settings, sizes, seeds = (one.plan[field] for field in ("settings", "train_sizes", "seeds"))
    counts = f"{len(settings)} settings, train sizes {', '.join(f'{size:,}' for size in sizes)}, {len(seeds)} seeds"
    return f"{name}: {counts}; unfinished students: {one.skipped}"
