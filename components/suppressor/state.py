"""The state of the Suppressor page: the Gaussian problem and its seed, in the widgets and in the link."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass

from components.links import Query, read_record, seed_option, write_record
from components.state import PageSession, apart, control_values
from engine.params import option
from engine.suppressor.gaussian import GaussianProblem

SESSION = PageSession("suppressor", apart("suppressor"), ())
key = SESSION.key


@dataclass(frozen=True)
class SuppressorState:
    """The state of the page: the measured problem, and the seed of its examples."""

    problem: GaussianProblem = option(GaussianProblem())
    seed: int = seed_option()


def load() -> tuple[SuppressorState, list[str]]:
    """Fill the widgets that have no value yet. Return the state of the last link and its errors."""
    link, fresh = SESSION.follow()
    errors: list[str] = []
    state = read_record(SuppressorState(), link, errors)
    SESSION.fill({**control_values("", state.problem), "seed": state.seed})
    return state, SESSION.tell(errors, fresh, lambda: write(state), state)


def write(state: SuppressorState) -> Query:
    """Return the link that reopens the state, with the values that differ from their defaults."""
    return write_record(state, SuppressorState())


def from_widgets(loaded: SuppressorState) -> SuppressorState:
    """Return the state that the controls show."""
    seed = SESSION.value("seed")
    return SuppressorState(SESSION.read_record("", loaded.problem), loaded.seed if seed is None else seed)


def save(state: SuppressorState, loaded: SuppressorState) -> None:
    """Save the state and write its link to the address if it changed."""
    SESSION.remember(state, loaded, write)


def command(state: SuppressorState) -> str:
    """Return the command that measures the same problem, without the options that have their default value."""
    given = {**asdict(state.problem), "seed": state.seed}
    usual = {**asdict(GaussianProblem()), "seed": SuppressorState().seed}
    changed = {name: value for name, value in given.items() if value != usual[name]}
    options = [part for name, value in changed.items() for part in (f"--{name.replace('_', '-')}", _word(value))]
    return shlex.join(["exegesis", "suppressor", *options])


def _word(value: int | float) -> str:
    """Format a number for the command line; integers keep all digits."""
    return str(value) if isinstance(value, int) else f"{value:g}"
