"""`exegesis study simulate --mode predict`: guesses of people whose skill is known."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from engine.errors import not_allowed

if TYPE_CHECKING:
    from engine.study.forward.simulation import MadeGuesses
    from engine.study.forward.summary import ForwardSummary
    from engine.study.ratings.partial_order import Interval


def simulate_guesses(made: MadeGuesses, studies: int, placebo: str, as_json: bool) -> None:
    """One study, or how often many of them tell a method from no explanation, or miss what is true."""
    from engine.cli.output import print_json
    from engine.study.forward.plain import forward_plain
    from engine.study.forward.simulation import simulated_guesses
    from engine.study.forward.summary import forward_summary

    if studies:
        return _say_shares(made, studies, as_json)
    found = forward_summary(simulated_guesses(made), tuple(made.accuracy)[1:], placebo or None)
    if as_json:
        print_json(forward_plain(found))
    else:
        draw_guesses(found)


def draw_guesses(found: ForwardSummary) -> None:
    """A row a condition, and what it means."""
    from engine.cli.output import console, table, visible

    columns = ["right", "interval", "sure", "answers"]
    made = table(["explanation", *columns, "more than without"], right=columns)
    for one in found.conditions:
        right = (f"{one.share.accuracy:.0%}", _range(one.share.interval)) if one.share else ("", "")
        gain = f"{one.gain.accuracy:+.0%} ({_range(one.gain.interval)})" if one.gain else ""
        sure = "" if one.sure is None else f"{one.sure:.1f}"
        made.add_row(visible(one.name), *right, sure, f"{one.answers:,}", gain)
    console().print(made)
    for part in ("helpful", "plausible", "leak", "placebo"):
        print(visible(found.meanings[part]))


def accuracies(methods: list[str], given: list[float], alone: list[float]) -> dict[str, float]:
    """By condition; the one without an explanation comes first."""
    from engine.study.forward.guesses import WITHOUT

    if len(alone) != 1:
        raise not_allowed("--alone", "a number between 0 and 1", ",".join(f"{one:g}" for one in alone))
    return {WITHOUT: alone[0], **dict(zip(methods, given, strict=True))}


def _say_shares(made: MadeGuesses, studies: int, as_json: bool) -> None:
    from engine.cli.output import print_json
    from engine.cli.progress import shown
    from engine.study.forward.simulation import coverage

    with shown("simulating studies") as report:
        found = coverage(made, studies, report)
    if as_json:
        print_json({"studies": studies, **asdict(found), **asdict(made)})
    else:
        print(f"{found.alone:.1%} of the intervals hold the true accuracy.")
        print(f"In {found.together:.1%} of {studies:,} studies all intervals of differences hold the true ones.")


def _range(interval: Interval) -> str:
    return f"{interval[0]:.0%} to {interval[1]:.0%}"
