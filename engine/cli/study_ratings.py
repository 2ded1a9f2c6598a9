"""`exegesis study results`, `simulate` and `rate`: ratings of a study's, of made-up and of imported votes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import values
from engine.cli.study_guesses import accuracies, draw_guesses, simulate_guesses
from engine.errors import UsageError, not_allowed, unknown
from engine.study.design import MODES, PREDICT, RANK

if TYPE_CHECKING:
    from engine.study.ratings.matches import Match
    from engine.study.ratings.simulation import Made
    from engine.study.ratings.summary import Summary
    from engine.study.results import Results

MOST_VOTES = 5_000
STRENGTH = "How good each is; predict: share of right guesses. [default: all 0; predict: all 0.5]"

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Seed = Annotated[str, typer.Option(metavar="N", help="Seed of what is random.")]
Placebo = Annotated[str, typer.Option(metavar="M", help="The method that all others should beat.")]


def results(
    number: Annotated[str, typer.Argument(metavar="ID", help="The study's number.")],
    as_json: Json = False,
) -> None:
    """What a study found so far: ratings, agreement, and what its rules left out."""
    from engine.cli.output import only_ours, print_json
    from engine.study.exports import results_plain
    from engine.study.results import results

    with only_ours():
        found = results(values.number_of(number))
    if as_json:
        print_json(results_plain(found))
    else:
        _tell(found)


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
    from engine.study.forward.simulation import MadeGuesses
    from engine.study.ratings.simulation import Made, simulated

    if mode not in MODES:
        raise unknown("--mode", mode, MODES)
    known = _strengths(methods, strength, 0.5 if mode == PREDICT else 0.0)
    people, each = values.whole("--annotators", annotators, low=1), values.whole("--items", items, low=1)
    if people * each > MOST_VOTES:
        raise not_allowed("--annotators times --items", f"at most {MOST_VOTES:,}", people * each)
    apart, drawn, count = _distance("--taste", taste), values.whole("--seed", seed), values.whole("--studies", studies)
    if mode == PREDICT:
        skills = accuracies(list(known), list(known.values()), values.numbers("--alone", alone))
        return simulate_guesses(MadeGuesses(skills, people, each, apart, seed=drawn), count, placebo, as_json)
    made = Made(known, people, each, apart, _distance("--ties", ties), drawn)
    if count:
        return _say_share(made, count, as_json)
    return _say(simulated(made), placebo, made.seed, as_json)


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
    from engine.study.exchange import read_rankings

    named = values.names("--methods", methods) if methods else []
    _say(read_rankings(Path(file), named), placebo, values.whole("--seed", seed), as_json)


def _say(votes: list[Match], placebo: str, seed: int, as_json: bool) -> None:
    from engine.cli.output import print_json
    from engine.study.exchange import summary_plain
    from engine.study.ratings.summary import summary

    found = summary(votes, placebo or None, seed)
    if as_json:
        print_json(summary_plain(found))
    else:
        _draw(found)


def _tell(found: Results) -> None:
    from engine.cli.output import visible

    print(
        visible(
            f"{found.study.design.title}: {found.study.state}, {found.answers:,} answers of {found.annotators:,} "
            f"people, {found.cannot_tell:,} could not tell, {found.answers - len(found.kept):,} left out."
        )
    )
    if found.summary is not None:
        _draw(found.summary)
    elif found.forward is not None:
        draw_guesses(found.forward)
    else:
        print("There is nothing to rate yet.")
    for out in found.excluded:
        where = "" if out.item is None else f" on item {out.item}"
        print(f"left out: {out.annotator}{where}. {out.reason}")


def _draw(found: Summary) -> None:
    from engine.cli.output import console, table, visible

    columns = ["skill", "interval", "place", "as SMaT"]
    made = table(["method", *columns], right=columns)
    plain = {rating.method: rating for rating in found.smat}
    for rating in sorted(found.ratings, key=lambda one: (one.rank, -one.skill)):
        place = str(rating.rank) if rating.rank == rating.last else f"{rating.rank}-{rating.last}"
        low, high = rating.interval
        cells = (f"{rating.skill:.2f}", f"{low:.2f} to {high:.2f}", place, f"{plain[rating.method].skill:.2f}")
        made.add_row(visible(rating.method), *cells)
    console().print(made)
    print(f"{found.votes:,} votes of {found.annotators:,} annotators on {found.items:,} items.")
    for part in ("ratings", "placebo", "worths", "concordance", "alpha", "consistency", "needed"):
        print(visible(found.meanings[part]))


def _say_share(made: Made, studies: int, as_json: bool) -> None:
    from engine.cli.output import print_json
    from engine.cli.progress import shown
    from engine.study.ratings.simulation import false_claims

    with shown("simulating studies") as report:
        share = false_claims(made, studies, report=report)
    if as_json:
        print_json({"studies": studies, "share_with_any_difference": share, **_plain(made)})
    else:
        print(f"{share:.1%} of {studies:,} studies tell any two methods apart.")


def _plain(made: Made) -> dict[str, Any]:
    return {
        "strength": dict(made.strength),
        "annotators": made.annotators,
        "items": made.items,
        "taste": made.taste,
        "ties": made.ties,
        "seed": made.seed,
    }


def _strengths(methods: str, strength: str, otherwise: float) -> dict[str, float]:
    from engine.study.ratings.matches import MOST_METHODS

    named = values.names("--methods", methods)
    if not 2 <= len(named) <= MOST_METHODS:
        raise not_allowed("--methods", f"2 to {MOST_METHODS} different names between commas", methods)
    given = values.numbers("--strength", strength) if strength else [otherwise] * len(named)
    if len(given) != len(named):
        raise UsageError(f"--strength: must be one number for each of {', '.join(named)}, got {len(given)}.")
    return dict(zip(named, given, strict=True))


def _distance(option: str, value: str) -> float:
    [number, *more] = values.numbers(option, value)
    if more or number < 0:
        raise not_allowed(option, "a number of at least 0", value)
    return number
