"""SMaT's report in Markdown and its numbers as CSV: the same bytes for the same numbers, without folders and dates."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, fields

from engine.reproduction.outcome import ModelFound, Number, Outcome
from engine.reproduction.scales import scale_of
from engine.reproduction.smat.asked import FILE
from engine.reproduction.smat.claims import ACTIVE, AUC, DEPTH, SIMULABILITY, Claim, Declared
from engine.reproduction.smat.examined import Examined, examined_told
from engine.reproduction.smat.naming import NORMALISATIONS, SIDES, TASKS, setting_named
from engine.reproduction.smat.report import Row, SmatReport
from engine.reproduction.smat.words import ABOUT, LEVEL, QUANTITY, statistic_told
from engine.reproduction.words import (
    INSIDE,
    NO_FINDINGS,
    decides,
    interval_told,
    number_told,
    right_told,
    rule_told,
    seen_told,
    sentence,
    settled_told,
    wide_told,
)
from engine.reproduction.writing import table

TABLES = {
    SIMULABILITY: ("Simulability (tables 1, 3, 5 and 7)", "median", "quartiles", "seeds"),
    AUC: ("Plausibility (tables 2 and 6)", "mean AUC", "95 % interval", "examples"),
    ACTIVE: ("Share of heads with a weight above 0 (figure 5)", "median", "quartiles", "seeds"),
    DEPTH: ("Mean layer of the weight, 0 the first and 1 the last (figure 5)", "median", "quartiles", "seeds"),
}


def markdown(
    found: SmatReport,
    declared: Declared,
    claims: Sequence[Claim],
    known: Mapping[str, Examined],
    made: str = "",
) -> str:
    """The whole report. Its first line names command, seed, versions and the digest of what was declared.

    `claims`: those of the outcomes. `known`: why claims fail. `made`: when and with what, of a report that is kept.
    """
    by_id = {claim.id: claim for claim in claims}
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    places = f"`{FILE}` names folders for: {', '.join(found.given)}." if found.given else ""
    lines = [
        f"`{found.command}`, seed {found.seed}, {versions}, claims {found.digest}",
        "",
        f"# Claims of SMaT, {found.scale} scale",
        "",
        f"{declared.source}. {sentence(found)}",
        "",
        *([made, ""] if made else []),
        QUANTITY,
        "",
        *([right, ""] if (right := right_told(found)) else []),
        ABOUT,
        "",
        *table(
            ["section", "claim", "verdict", "rule", "what decides"],
            [_row(by_id[one.id], one, found) for one in found.outcomes],
        ),
        "",
        "## How numbers become a verdict",
        "",
        f"{LEVEL} {NO_FINDINGS} The claims, their statistics and bounds were declared before the run, in "
        f"`engine/reproduction/smat.json`; the digest above is the SHA-256 of its content. {declared.revised}",
        "",
        *([places, ""] if places else []),
        "## Claim by claim",
        *(line for one in found.outcomes for line in _claim(by_id[one.id], one, found, known)),
        "",
        *(line for id in TABLES for line in _rows(id, found.rows)),
        "## Teachers",
        "",
        *table(
            ["teacher", "revision", "data set", "accuracy or correlation on the test examples", "n"],
            [_model(one) for one in found.models],
        ),
        "",
        "## Students",
        "",
        *(line for one in found.experiments for line in [_students(one.name, one.plan, one.why, one.skipped)]),
    ]
    return "\n".join(lines) + "\n"


def numbers_csv(found: SmatReport) -> str:
    """A line a number of the tables."""
    return _csv([field.name for field in fields(Row)], (astuple(row) for row in found.rows))


def claims_csv(found: SmatReport, claims: Sequence[Claim]) -> str:
    """A line a number of the claims; one without numbers has a line with its verdict alone."""
    sections = {claim.id: claim.section for claim in claims}
    head = ["claim", "section", "verdict", "number", "value", "low", "high", "wide_low", "wide_high", "n", "inside"]
    lines: list[Sequence[object]] = []
    for one in found.outcomes:
        start = (one.id, sections[one.id], one.verdict)
        lines += [
            (*start, n.name, n.value, n.low, n.high, n.wide_low, n.wide_high, n.n, INSIDE[n.verdict])
            for n in one.numbers
        ] or [start]
    return _csv(head, (tuple(line) + ("",) * (len(head) - len(line)) for line in lines))


def _csv(head: Sequence[str], rows: Iterator[Sequence[object]]) -> str:
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return made.getvalue()


def _row(claim: Claim, outcome: Outcome, found: SmatReport) -> list[str]:
    title = f"[{claim.title}](#{claim.id})"
    rule = rule_told(claim) if claim.contrasts else ""
    return [claim.section, title, outcome.verdict, rule, decides(claim, outcome, scale_of(found.scale))]


def _claim(claim: Claim, outcome: Outcome, found: SmatReport, known: Mapping[str, Examined]) -> Iterator[str]:
    yield from ("", f'<a id="{claim.id}"></a>', "", f"### {claim.title}: {outcome.verdict}", "")
    yield f"Section {claim.section}, `{claim.id}`. {claim.says}"
    rule = f" Rule: {rule_told(claim)}." if claim.contrasts else ""
    yield from ("", f"Statistic: {statistic_told(claim)}.{rule}", "")
    if outcome.why:
        yield from (f"Why: {outcome.why}", "")
    if not outcome.numbers:
        return
    if seen := seen_told(outcome):
        yield from (f"Seen: {seen}.", "")
    if outcome.verdict == "undecided":
        yield from (f"To tell: {settled_told(outcome)}.", "")
    if told := examined_told(outcome, known):
        yield from (told, "")
    yield from table(["what", "value", *_ends(claim), "n", "inside"], [_number(one, claim) for one in outcome.numbers])


def _ends(claim: Claim) -> list[str]:
    return ["quartiles"] if claim.by_seeds else ["95 % interval", "widened"]


def _number(one: Number, claim: Claim) -> list[str]:
    ends = [interval_told(one), *([] if claim.by_seeds else [wide_told(one)])]
    return [one.name or "all", number_told(one.value), *ends, f"{one.n:,}", INSIDE[one.verdict]]


def _rows(id: str, rows: Sequence[Row]) -> Iterator[str]:
    own = [row for row in rows if row.table == id]
    if not own:
        return
    title, value, ends, n = TABLES[id]
    yield from (f"## {title}", "")
    yield from table(["of", "setting", value, ends, n, "note"], [_cell(row) for row in own])
    yield ""


def _cell(row: Row) -> list[str]:
    where = [TASKS[row.task], SIDES.get(row.side, ""), f"{row.train_size:,} examples" if row.train_size else ""]
    where.append("" if row.normalisation == "sparsemax" else NORMALISATIONS[row.normalisation])
    ends = f"{number_told(row.low)} to {number_told(row.high)}"
    of = ", ".join(filter(None, where))
    return [of, setting_named(row.what), number_told(row.value), ends, f"{row.n:,}", row.note]


def _model(one: ModelFound) -> list[str]:
    score = one.accuracy if one.correlation is None else one.correlation
    told = "not known" if score is None else number_told(score)
    return [one.name, f"not there: {one.why}" if one.why else one.revision, one.data, told, f"{one.n:,}"]


def _students(name: str, plan: Mapping[str, object], why: str, missing: int) -> str:
    task, normalisation = name.split(", ")
    told = f"* {TASKS[task]}, {NORMALISATIONS[normalisation]}"
    if why:
        return f"{told}: not run, {why}"
    settings, sizes, seeds = plan["settings"], plan["train_sizes"], plan["seeds"]
    assert isinstance(settings, list)
    assert isinstance(sizes, list)
    assert isinstance(seeds, list)
    listed = ", ".join(f"{size:,}" for size in sizes)
    return (
        f"{told}: {len(settings)} settings, train sizes {listed}, {len(seeds)} seeds; students not finished: {missing}"
    )
