"""An experiment's results as files, how to cite them, and the command that gives the same."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass
from functools import partial
from typing import Any

import streamlit as st

from components.experiment.session import ExperimentSession
from components.experiment.state import Methods, list_text
from components.export import REPEATS, citation_box, file_button
from engine.experiments.base import experiment_of
from engine.experiments.options import options_of

TYPES = {"csv": "text/csv", "json": "application/json", "parquet": "application/vnd.apache.parquet"}
TITLES = {"csv": "CSV", "json": "JSON", "parquet": "Parquet"}
ROWS_HELP = "One row per value: the output of `exegesis {} --out`."


@dataclass(frozen=True)
class ExportFile:
    """A file beside those that each experiment has. `type`: its media type."""

    label: str
    name: str
    type: str
    build: Callable[[], str | bytes]
    help: str


def export_area(
    session: ExperimentSession, kind: str, result: Any, cited: str, rows_help: str = "",
    summary: tuple[str, str, str] | None = None, more: Sequence[ExportFile] = (),
) -> None:  # fmt: skip
    """Files to download and how to cite. A file is built when its button is pressed, not before.

    `summary`: label, name and help of the file that has what `--json` prints. `more`: other files.
    """
    from engine.experiments.run import FORMATS

    own = session.experiment
    label, name, help = summary or ("Numbers, JSON", f"exegesis-{own.noun}-numbers.json", "What `--json` prints.")
    files = {
        ending: ExportFile(
            f"Rows, {TITLES[ending]}", f"exegesis-{own.noun}.{ending}", TYPES[ending], partial(build, result),
            rows_help or ROWS_HELP.format(own.id),
        )
        for ending, build in FORMATS.items()
    }  # fmt: skip
    files |= {"summary": ExportFile(label, name, TYPES["json"], partial(summary_json, result), help)}
    files |= {one.name: one for one in more}
    st.subheader("Export", anchor=False)
    with st.container(horizontal=True, gap="small", key=session.key(kind, "keep")):
        for key, one in files.items():
            file_button(one.label, one.name, one.type, one.build, one.help, session.key(kind, f"keep.{key}"))
    citation_box(
        cited,
        [(f"{REPEATS}:", command_line(result.plan if own.joint else result.requested_plan))],
        session.key(kind, "keep.cite"),
    )


def summary_json(result: Any) -> str:
    """What the command prints with `--json`."""
    plain = experiment_of(result.plan).steps.to_json(result)
    return json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def command_line(plan: Any) -> str:
    """The command that gives the same; what is not said is what it takes by itself.

    Right after the methods comes what is `first`, then numbers, names and texts, switches, parameters of methods.
    """
    own = experiment_of(plan)
    given = ["exegesis", own.id, "--models", ",".join(plan.models), "--dataset", plan.dataset]
    given += ["--methods", ",".join(plan.methods)]
    numbers, texts, switches = list[str](), list[str](), list[str]()
    for name, one in options_of(own.plan).items():
        value = getattr(plan, name)
        if name in ("methods", "params") or one.default is MISSING or value == one.default:
            continue
        if one.hint is bool:
            switches.append(one.flag)
        else:
            text = list_text(value) if one.is_list else str(value)
            (given if one.get("first") else numbers if one.hint is int else texts).extend([one.flag, text])
    for method, params in plan.params.items():
        switches += [part for name, value in params.items() for part in ("--param", f"{method}.{name}={value}")]
    return shlex.join([*given, *numbers, *texts, *switches, "--out", "rows.csv"])


def references(plan: Any, methods: Methods, first: Sequence[str] = ()) -> list[str]:
    """What comes `first`, then a line for each method."""
    known = [methods[id] for id in plan.methods_with_baselines]
    return [*first, *(f"{one.title} ({one.id}, version {one.version}): {one.citation.rstrip('.')}." for one in known)]
