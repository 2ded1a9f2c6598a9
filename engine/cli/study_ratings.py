"""`exegesis study results`, `simulate` and `rate`: results of a study, of simulated and of imported votes."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli import values
from engine.cli.output import console, only_ours, print_json, table, visible
from engine.cli.progress import shown as progress
from engine.errors import UsageError, not_allowed, unknown
from engine.lazy import LazyModule
from engine.study.design import MODES, PREDICT, RANK

if TYPE_CHECKING:
    from engine.study import counted_votes, exports, guesses, rankings, ratings, simulation, summary
    from engine.study import results as study_results
else:  # numpy, scipy and the database take long to import, which help does not need
    counted_votes, exports = LazyModule("engine.study.counted_votes"), LazyModule("engine.study.exports")
    guesses, rankings = LazyModule("engine.study.guesses"), LazyModule("engine.study.rankings")
    simulation = LazyModule("engine.study.simulation")
    summary, study_results = LazyModule("engine.study.summary"), LazyModule("engine.study.results")

MAX_VOTES = 5_000
STRENGTH = "How good each is; predict: share of right guesses. [default: all 0; predict: all 0.5]"

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Seed = Annotated[str, typer.Option(metavar="N", help="Seed of what is random.")]
Placebo = Annotated[str, typer.Option(metavar="M", help="The method that all others should beat.")]


def results(
    number: Annotated[str, typer.Argument(metavar="ID", help="The study's number.")],
    as_json: Json = False,
) -> None:
    """What a study found so far: ratings, agreement, and what its rules left out."""
    with only_ours():
        current = study_results.results(values.number_of(number))
    if as_json:
        print_json(exports.results_to_json(current))
    else:
        _print_results(current)


def simulate(
    methods: Annotated[str, typer.Option(metavar="A,B", help="Names of methods between commas.")] = "",
    mode: Annotated[str, typer.Option(metavar="rank|predict", help="What people do.")] = RANK,
    strength: Annotated[str, typer.Option(metavar="X,Y", help=STRENGTH)] = "",
    alone: Annotated[str, typer.Option(metavar="P", help="predict: right guesses without an explanation.")] = "0.5",
    annotators: Annotated[str, typer.Option(metavar="N", help="How many people vote.")] = "20",
    items: Annotated[str, typer.Option(metavar="M", help="How many items each ranks.")] = "20",
    taste: Annotated[str, typer.Option(metavar="S", help="How far people's own strengths lie from these.")] = "0.5",
    ties: Annotated[str, typer.Option(metavar="T", help="Two looks closer than this are a tie.")] = "0.25",
    studies: Annotated[str, typer.Option(metavar="K", help="Say in how many of K studies any methods differ.")] = "0",
    placebo: Placebo = "",
    seed: Seed = "0",
    as_json: Json = False,
) -> None:
    """Rate votes, or sum up guesses, of made-up annotators whose preferences or skills are known."""
    if mode not in MODES:
        raise unknown("--mode", mode, MODES)
    strengths = _read_strengths(methods, strength, 0.5 if mode == PREDICT else 0.0)
    people, each = values.whole("--annotators", annotators, low=1), values.whole("--items", items, low=1)
    if people * each > MAX_VOTES:
        raise not_allowed("--annotators times --items", f"at most {MAX_VOTES:,}", people * each)
    spread, number = _read_distance("--taste", taste), values.whole("--seed", seed)
    count = values.whole("--studies", studies)
    if mode == PREDICT:
        baseline = values.numbers("--alone", alone)
        if len(baseline) != 1:
            raise not_allowed("--alone", "a number between 0 and 1", ",".join(f"{one:g}" for one in baseline))
        accuracy = {counted_votes.WITHOUT: baseline[0], **strengths}
        guessing = simulation.GuessSimulation(accuracy, people, each, spread, seed=number)
        return _simulate_guesses(guessing, count, placebo, as_json)
    ranking = simulation.RankingSimulation(strengths, people, each, spread, _read_distance("--ties", ties), number)
    if count:
        return _simulate_differences(ranking, count, as_json)
    return _print_rankings(simulation.simulate_rankings(ranking), placebo, number, as_json)


def rate(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A CSV file: a row a vote.")],
    methods: Annotated[str, typer.Option(metavar="A,B", help="Methods, in the order of the rank strings.")] = "",
    placebo: Placebo = "",
    seed: Seed = "0",
    as_json: Json = False,
) -> None:
    """Rate the rankings of a file: rank strings such as 1,1,3,4 in a column 'ranks', or a column a method.

    Of a person's rankings of one item the first is rated; repeats tell how steadily people rank.
    """
    names = values.names("--methods", methods) if methods else []
    _print_rankings(rankings.read_rankings(Path(file), names), placebo, values.whole("--seed", seed), as_json)


def _print_rankings(votes: list[rankings.Ranking], placebo: str, seed: int, as_json: bool) -> None:
    found = summary.summarize_rankings(votes, placebo or None, seed)
    if as_json:
        print_json(exports.rankings_to_json(found))
    else:
        _print_summary(found)


def _print_results(current: study_results.Results) -> None:
    print(
        visible(
            f"{current.study.design.title}: {current.study.state}, {current.answers:,} answers of "
            f"{current.annotators:,} people, {current.cannot_tell:,} could not tell, "
            f"{current.answers - len(current.votes):,} left out."
        )
    )
    if current.summary is not None:
        _print_summary(current.summary)
    elif current.forward is not None:
        _print_guesses(current.forward)
    else:
        print("There is nothing to rate yet.")
    for exclusion in current.excluded:
        where = "" if exclusion.item is None else f" on item {exclusion.item}"
        print(f"left out: {exclusion.annotator}{where}. {exclusion.reason}")


def _print_summary(found: summary.RankingSummary) -> None:
    columns = ["skill", "interval", "place", "as SMaT"]
    rows = table(["method", *columns], right=columns)
    smat = {rating.method: rating for rating in found.smat}
    for rating in sorted(found.ratings, key=lambda rating: (rating.rank, -rating.skill)):
        place = str(rating.rank) if rating.rank == rating.last else f"{rating.rank}-{rating.last}"
        low, high = rating.interval
        cells = (f"{rating.skill:.2f}", f"{low:.2f} to {high:.2f}", place, f"{smat[rating.method].skill:.2f}")
        rows.add_row(visible(rating.method), *cells)
    console().print(rows)
    print(f"{found.votes:,} votes of {found.annotators:,} annotators on {found.items:,} items.")
    for part in ("ratings", "placebo", "worths", "concordance", "alpha", "consistency", "needed"):
        print(visible(found.meanings[part]))


def _print_guesses(found: guesses.GuessSummary) -> None:
    """A row a condition, and sentences about it."""
    columns = ["right", "interval", "sure", "answers"]
    rows = table(["explanation", *columns, "more than without"], right=columns)
    for condition in found.conditions:
        share, gain = condition.share, condition.gain
        right = (f"{share.accuracy:.0%}", _percentages(share.interval)) if share else ("", "")
        more = f"{gain.accuracy:+.0%} ({_percentages(gain.interval)})" if gain else ""
        sure = "" if condition.sure is None else f"{condition.sure:.1f}"
        rows.add_row(visible(condition.name), *right, sure, f"{condition.answers:,}", more)
    console().print(rows)
    for part in ("helpful", "plausible", "leak", "placebo"):
        print(visible(found.meanings[part]))


def _percentages(interval: ratings.Interval) -> str:
    return f"{interval[0]:.0%} to {interval[1]:.0%}"


def _simulate_differences(ranking: simulation.RankingSimulation, studies: int, as_json: bool) -> None:
    """Print the share of many simulated studies that find a difference."""
    with progress("simulating studies") as report:
        share = simulation.false_difference_rate(ranking, studies, report=report)
    if as_json:
        print_json({"studies": studies, "share_with_any_difference": share, **asdict(ranking)})
    else:
        print(f"{share:.1%} of {studies:,} studies tell any two methods apart.")


def _simulate_guesses(guessing: simulation.GuessSimulation, studies: int, placebo: str, as_json: bool) -> None:
    """Print the results of one study, or how often the intervals of many studies contain the truth."""
    if not studies:
        answers = simulation.simulate_guesses(guessing)
        found = guesses.summarize_guesses(answers, tuple(guessing.accuracy)[1:], placebo or None)
        print_json(exports.guesses_to_json(found)) if as_json else _print_guesses(found)
        return
    with progress("simulating studies") as report:
        coverage = simulation.measure_coverage(guessing, studies, report)
    if as_json:
        print_json({"studies": studies, **asdict(coverage), **asdict(guessing)})
    else:
        print(f"{coverage.alone:.1%} of the intervals hold the true accuracy.")
        print(f"In {coverage.together:.1%} of {studies:,} studies all intervals of differences hold the true ones.")


def _read_strengths(methods: str, strength: str, default: float) -> dict[str, float]:
    names = values.names("--methods", methods)
    if not 2 <= len(names) <= rankings.MAX_METHODS:
        raise not_allowed("--methods", f"2 to {rankings.MAX_METHODS} different names between commas", methods)
    strengths = values.numbers("--strength", strength) if strength else [default] * len(names)
    if len(strengths) != len(names):
        raise UsageError(f"--strength: must be one number for each of {', '.join(names)}, got {len(strengths)}.")
    return dict(zip(names, strengths, strict=True))


def _read_distance(option: str, value: str) -> float:
    [number, *more] = values.numbers(option, value)
    if more or number < 0:
        raise not_allowed(option, "a number of at least 0", value)
    return number
