"""Shared parts of the panels for significant words and significant patches: controls, table, and export."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import streamlit as st

from components.controls import PERSIST
from components.export import file_button, how_to_repeat, input_button
from engine.format import plural
from engine.lazy import pandas
from engine.table_io import to_csv

if TYPE_CHECKING:
    import pandas as pd

    from engine.significance.false_discovery import Alternative, ReplacementTest

ALTERNATIVES = {"greater": "For the class", "two-sided": "For or against"}
RATES = (5, 10, 20)
METHOD = (
    "Interpretability randomization test (Burns et al., 2020, Interpreting black box models via hypothesis testing)."
)


@runtime_checkable
class ReplacementTestView(Protocol):
    """The options of a test: its false discovery rate in percent, and its alternative."""

    @property
    def rate(self) -> int: ...
    @property
    def alternative(self) -> Alternative: ...


def draw_test_controls(noun: str, key: Callable[[str], str]) -> None:
    """Draw the choice of the rate and of the alternative. `noun`: noun for what is tested."""
    many = plural(noun)
    st.segmented_control(
        "False discovery rate", RATES, key=key("significance.rate"), required=True, persist_state=PERSIST,
        format_func=lambda rate: f"{rate}%",
        help=f"At a rate of 10%, at most 10% of the {many} that survive are expected to be there by chance.",
    )  # fmt: skip
    st.segmented_control(
        many.capitalize(), list(ALTERNATIVES), key=key("significance.alternative"), required=True,
        persist_state=PERSIST, format_func=ALTERNATIVES.__getitem__,
        help=f"For the class: its probability is higher with the {noun} than with most replacements. For or against: "
        "it is farther from their mean.",
    )  # fmt: skip


def sorted_parts(result: ReplacementTest, view: ReplacementTestView, *place: str) -> list[dict[str, Any]]:
    """Return a row for each word or patch, the smallest p-value first. `place`: fields that break ties."""
    parts: list[dict[str, Any]] = result.as_json(view.rate / 100, view.alternative)[plural(result.noun)]
    return sorted(parts, key=lambda one: (one["p_value"], *(one[name] for name in place)))


def parts_table(
    rows: list[dict[str, Any]],
    before: Mapping[str, str],
    after: Callable[[dict[str, Any]], dict[str, Any]] = lambda _: {},
) -> pd.DataFrame:
    """Return the rows, rounded. `before`: field of each first column, by title. `after`: returns the last columns."""
    return pandas.DataFrame(
        [
            {
                **{title: row[name] for title, name in before.items()}, "Change": round(row["change"], 4),
                "p": round(row["p_value"], 4), "Adjusted p": round(row["adjusted_p_value"], 4),
                "Survives": "yes" if row["significant"] else "no", **after(row),
            }
            for row in rows
        ]
    )  # fmt: skip


def parts_csv(rows: list[dict[str, Any]]) -> str:
    """Return the rows as CSV; a list is joined into one cell."""
    return to_csv(
        {name: ", ".join(value) if isinstance(value, list | tuple) else value for name, value in row.items()}
        for row in rows
    )


def significance_arguments(arguments: list[str], view: ReplacementTestView, seed: int, *more: str) -> list[str]:
    """Return the arguments of the command: always the rate; alternative and seed unless they are the defaults."""
    alternative = [] if view.alternative == "greater" else ["--alternative", view.alternative]
    seeds = [] if seed == 0 else ["--seed", str(seed)]
    return ["significance", *arguments, "--rate", f"{view.rate / 100:g}", *alternative, *more, *seeds]


def export_significance(
    result: ReplacementTest, view: ReplacementTestView, csv: Callable[[], str], focus: Any, command: str,
    key: Callable[[str], str], input: str,
) -> None:  # fmt: skip
    """Draw the downloads, and the command that reproduces them. `input`: noun for the input in widget keys."""
    many = plural(result.noun)
    with st.popover("Export significance"):
        file_button("CSV", "significance.csv", "text/csv", csv, f"A row for each {result.noun}.", key(f"{many}_csv"))
        file_button(
            "JSON", "significance.json", "application/json",
            lambda: json.dumps(result.as_json(view.rate / 100, view.alternative), indent=1), "The output of `--json`.",
            key(f"{many}_json"),
        )  # fmt: skip
        input_button(focus, key(f"{many}_{input}"))
        st.caption(how_to_repeat(focus))
        st.code(command, language="bash", wrap_lines=True)
