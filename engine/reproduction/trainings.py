"""Verdicts over several trainings of the same models, from one report of each training.

`python -m engine.reproduction.trainings TOPIC WHICH REPORT REPORT` compares a topic's shipped report with reports of
the same command on other trainings of its models (`--places`), and writes their verdicts into the topic's examination.
Earlier verdicts in the examination on claims that are not in these reports are kept.
"""

from __future__ import annotations

import json
import math
import statistics
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.errors import UsageError
from engine.metrics.results import Interval
from engine.reproduction.claims import FOLDER, Claim
from engine.reproduction.estimates import student_quantile
from engine.reproduction.papers import TOPICS
from engine.reproduction.report import (
    CEILING,
    CONSTRUCTION,
    ERROR_RATE,
    OPPOSED,
    ClaimNumber,
    ClaimOutcome,
    Margin,
    Reproduction,
    Verdict,
    best_margin,
    error_rates,
    judge_margins,
    margin,
    report_from_plain,
)
from engine.reproduction.shipped import default_query, shipped_report, write_shipped


def over_trainings(claim: Claim, outcomes: Sequence[ClaimOutcome]) -> Verdict | None:
    """Judge a claim over trainings and examples; None if a training has no numbers. `outcomes`: one per training.

    Each number of the claim is averaged over trainings; its intervals are those of `training_interval`.
    """
    if not all(outcome.numbers for outcome in outcomes):
        return None
    entries = [list(zip(*own, strict=True)) for own in zip(*(outcome.entries for outcome in outcomes), strict=True)]
    rates = error_rates(len(entries), max(map(len, entries)), claim.least or len(entries))
    margins = [best_margin([_margin(claim, numbers, rates) for numbers in entry]) for entry in entries]
    verdict = judge_margins(margins, claim.least).verdict
    if verdict == "holds" and claim.by_construction:
        return CONSTRUCTION
    return CEILING if all(number.at_best for outcome in outcomes for number in outcome.numbers) else verdict


def training_interval(values: Sequence[float], intervals: Sequence[Interval], error_rate: float) -> Interval:
    """Return the interval, over trainings and examples, of a number's mean over trainings.

    `values`: one per training. `intervals`: intervals over the examples, which all trainings share, at the same error
    rate.

    The squares of two half widths are added, as for independent parts (Zou and Donner, 2008): that of Student's t over
    trainings, and the mean half width over examples. The latter is at least the half width of the mean, so the interval
    is conservative. A bootstrap over trainings would be too short: with three trainings, one draw in nine consists of
    the same training three times.
    """
    mean = statistics.fmean(values)
    spread = student_quantile(error_rate, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    below = statistics.fmean(value - low for value, (low, _) in zip(values, intervals, strict=True))
    above = statistics.fmean(high - value for value, (_, high) in zip(values, intervals, strict=True))
    return mean - math.hypot(spread, below), mean + math.hypot(spread, above)


def _margin(claim: Claim, numbers: Sequence[ClaimNumber], rates: tuple[float, float]) -> Margin:
    values = [number.value for number in numbers]
    plain = training_interval(values, [(number.low, number.high) for number in numbers], ERROR_RATE)
    wide = training_interval(values, [(number.wide_low, number.wide_high) for number in numbers], rates[1])
    inner = plain if rates[0] == ERROR_RATE else wide
    n = min(number.n for number in numbers)
    return margin(statistics.fmean(values), inner, wide, claim.bounds, n, claim.strict, rates)


def examine_trainings(
    topic: str, which: str, reports: Sequence[Reproduction], before: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the section of an examination about other trainings. `reports`: of the same command, one per training.

    `before`: the previous section; its claims are kept if the reports lack them, so that one run need not include all.
    Errors: a report whose claims or number of examples differ from the shipped one; trainings other than in `before`.
    """
    query, shipped = default_query(topic), shipped_report(topic)
    assert shipped is not None, topic
    for report in reports:
        if (report.digest, report.examples) != (shipped.report.digest, shipped.report.examples):
            raise UsageError(f"REPORT: must be of the claims of `{query.command()}`, got `{report.command}`.")
    if before is not None and before["which"] != which:
        raise UsageError(
            f"WHICH: must be {before['which']!r}, as of the claims that were judged before, got {which!r}. Use those "
            "trainings, or remove what is there."
        )
    by_id = [{outcome.id: outcome for outcome in report.outcomes} for report in (shipped.report, *reports)]
    claims = [claim for claim in query.selected_claims if all(claim.id in own for own in by_id)]
    outcomes = {claim: [own[claim.id] for own in by_id] for claim in claims}
    judged = {claim.id: [outcome.verdict for outcome in own[1:]] for claim, own in outcomes.items()}
    overall = {claim.id: verdict for claim, own in outcomes.items() if (verdict := over_trainings(claim, own))}
    accuracies = [one.accuracy for report in reports for one in report.models if one.accuracy is not None]
    verdicts = dict(judged)
    if before is not None:
        verdicts = before["verdicts"] | judged
        overall = {id: own for id, own in before["overall"].items() if id not in judged} | overall
        accuracies += before["accuracies"]
    order = [claim.id for claim in query.selected_claims if claim.id in verdicts]
    return {
        "which": which,
        "how": _how(topic, which, {id: [by_id[0][id].verdict, *verdicts[id]] for id in order}, overall, accuracies),
        "accuracies": [min(accuracies), max(accuracies)],
        "verdicts": {id: verdicts[id] for id in order},
        "overall": {id: overall[id] for id in order if id in overall},
    }


def _how(
    topic: str,
    which: str,
    verdicts: Mapping[str, Sequence[Verdict]],
    overall: Mapping[str, Verdict],
    accuracies: Sequence[float],
) -> str:
    same = [id for id, own in verdicts.items() if len(set(own)) == 1]
    against = [id for id, own in verdicts.items() if set(own) >= OPPOSED]
    rest = [id for id in verdicts if id not in same and id not in against]
    counts, count = Counter(overall.values()), len(next(iter(verdicts.values())))
    texts = [
        f"Other trainings: {len(verdicts)} claims were also judged on {count - 1} other trainings of each of their "
        f"models: the commands of their cards with {which}, then `exegesis reproduce thesis --topic {topic} --claims "
        f"IDS --places FILE`, whose file names their folders. The models are right on {min(accuracies):.3f} to "
        f"{max(accuracies):.3f} of the examples.",
        f"{len(same)} of the claims have the same verdict with all {count} trainings.",
        f"Verdicts of {len(against)} are opposed: they hold with one training and fail with another ({_ids(against)})."
        if against
        else "",
        f"Of the other {len(rest)}, some trainings decide and others do not ({_ids(rest)})." if rest else "",
        f"Over trainings and examples together {counts['holds']} hold, {counts['does not hold']} do not, and "
        f"{counts['undecided']} are undecided. With {count} trainings only large differences are certain: an interval "
        "is as long as Student's t over trainings and the interval over examples, added as squares. The other claims "
        "of this report rest on one training of each model.",
    ]
    return " ".join(filter(None, texts))


def _ids(ids: Sequence[str]) -> str:
    return ", ".join(f"`{id}`" for id in ids)


def main() -> None:
    parser = ArgumentParser("python -m engine.reproduction.trainings", description=__doc__.partition("\n")[0])
    parser.add_argument("topic", metavar="TOPIC", choices=TOPICS, help=f"one of {', '.join(TOPICS)}")
    parser.add_argument("which", metavar="WHICH", help="the other trainings in a few words, such as 'seeds 1 and 2'")
    parser.add_argument("files", metavar="REPORT", nargs="+", type=Path, help="JSON report of another training")
    asked = parser.parse_args()
    reports = [report_from_plain(json.loads(file.read_text(encoding="utf-8"))) for file in asked.files]
    file = FOLDER / TOPICS[asked.topic].reasons
    examination = json.loads(file.read_text(encoding="utf-8"))
    examination["trainings"] = examine_trainings(asked.topic, asked.which, reports, examination.get("trainings"))
    file.write_text(json.dumps(examination, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    shipped = shipped_report(asked.topic)
    assert shipped is not None
    write_shipped(asked.topic, shipped)


if __name__ == "__main__":
    main()
