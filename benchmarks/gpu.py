"""All that a GPU should show, in one command of at most nine minutes: one JSON file and the tables of docs/gpu.md."""

from __future__ import annotations

import contextlib
import datetime
import faulthandler
import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks import gpu_sections
from benchmarks.gpu_clock import TimeShare
from benchmarks.gpu_sections import FULL_SCALE, GOAL, REHEARSAL, Device, Scale
from benchmarks.harness import Limit, Measurement, Table, benchmark, describe_machine, empty_home
from engine import runtime
from engine.home import project_root

COMMAND = "make gpu"
MINUTES = 8.5
"""The imports take some of nine."""
GRACE = 15
"""Seconds beyond them until a run that hangs is ended. What earlier sections measured is written by then."""
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
PAGE = project_root() / "docs" / "gpu.md"
REHEARSED = project_root() / "build" / "gpu-rehearsal"
NAMING = ("model", "method", "precision", "work")
"""What tells the rows of a section apart."""
DASH = "–"
Section = Callable[[Scale, TimeShare, Device], Iterator[dict[str, Any]]]
SECTIONS: dict[str, tuple[Section, float, str]] = {
    "peak": (gpu_sections.peak, 15, "Product of matrices"),
    "parity": (gpu_sections.parity, 110, "Maps beside double precision on the CPU"),
    "recovery": (gpu_sections.recovery, 20, "Memory runs out"),
    "bulk": (gpu_sections.bulk, 70, "Share of the peak in bulk"),
    "speed": (gpu_sections.speed, 220, "Milliseconds an example"),
    "memory": (gpu_sections.memory, 50, "Peak of memory, to the budget"),
    "sessions": (gpu_sections.sessions, 25, "A session beside a job of another"),
}
"""In order of worth: the rows, the seconds of its share, and the title."""
REFUSAL = (
    "gpu needs CUDA: torch sees no such device here, or EXEGESIS_DEVICE names another. Run `make gpu` on a machine "
    "with one; `python -m benchmarks gpu --rehearse` shows on any machine that it runs."
)


@benchmark(
    minutes=MINUTES,
    sections=",".join(SECTIONS),
    out={"type": Path, "default": None, "help": "folder of gpu.json and gpu.md (default: docs; rehearsal: build)"},
    rehearse={"action": "store_true", "help": "tiny models on this machine, GPU or not: nothing it says is of a GPU"},
)
def gpu(minutes: float, sections: str, out: Path | None, rehearse: bool) -> Measurement:
    """Parity, speed, share of the peak, memory, recovery and sharing of a GPU, in at most nine minutes.

    Sections run in order of worth. Each has a share of the time; what it leaves over passes on. What a slow card does
    not reach is a row that says so. Parity: each method on `reviews-minilm`, `tiny-llama` and `scenes-vit`, beside
    double precision on the CPU. All else: random models of published sizes, since the time is that of trained ones.
    Share of the peak: operations by `2 weights tokens` of the blocks and those of attention, twice that with the way
    back to the embeddings. Writes gpu.json and gpu.md, and fails where a bound is broken or a row failed.
    """
    names = sections.split(",")
    if unknown := [name for name in names if name not in SECTIONS]:
        raise SystemExit(f"sections: unknown name {unknown[0]!r}. Known: {', '.join(SECTIONS)}.")
    if not rehearse and runtime.device().type != "cuda":
        raise SystemExit(REFUSAL)
    share = TimeShare.of(60 * minutes)
    folder = out or (REHEARSED if rehearse else PAGE.parent)
    folder.mkdir(parents=True, exist_ok=True)
    facts = device_facts(rehearse)
    device, tables = Device(str(facts["device"])), dict[str, Table]()
    spent = facts["section_seconds"] = dict[str, float]()
    faulthandler.dump_traceback_later(60 * minutes + GRACE, exit=True, file=sys.__stderr__ or sys.stderr)
    with contextlib.ExitStack() as stack:
        stack.callback(faulthandler.cancel_dump_traceback_later)
        stack.enter_context(empty_home())
        stack.enter_context(warnings.catch_warnings(action="ignore"))  # Captum's, of gradients that it switches on
        for name, part in share.split({name: SECTIONS[name][1] for name in names}):
            rows = tables[name] = list[dict[str, Any]]()
            try:
                rows.extend(SECTIONS[name][0](REHEARSAL if rehearse else FULL_SCALE, part, device))
            except Exception as error:  # what is measured stays, whatever comes
                rows.append({"failed": f"{type(error).__name__}: {error}"})
            facts["seconds"] = round(60 * minutes - share.left(), 1)
            spent[name] = round(facts["seconds"] - sum(spent.values()), 1)
            write_report(folder, facts, tables)
    shown = {SECTIONS[name][2]: shown_rows(name, rows) for name, rows in tables.items()}
    return Measurement(shown, limits_of(tables), failures(tables))


def device_facts(rehearsed: bool) -> dict[str, Any]:
    """Of the device and the libraries, and whether it was a rehearsal."""
    facts: dict[str, Any] = {"date": str(datetime.date.today()), "rehearsal": rehearsed, **describe_machine()}
    facts |= {"cuda": torch.version.cuda, "driver": None, "capability": None, "memory_bytes": None}
    if runtime.device().type == "cuda":
        place = runtime.device()
        facts["capability"] = ".".join(map(str, torch.cuda.get_device_capability(place)))
        facts["memory_bytes"] = torch.cuda.mem_get_info(place)[1]
        facts["driver"] = driver_version()
    return facts


def driver_version() -> str | None:
    """The driver's version; None where its tool is missing."""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        told = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True).stdout.split()
    except (OSError, subprocess.SubprocessError):
        return None
    return told[0] if told else None


def limits_of(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Limit]:
    """The bounds that must be kept. The goal in bulk is a goal: the table says whether it is met."""
    limits = []
    for name, rows in tables.items():
        judged = [row for row in rows if "kept" in row]
        if judged:
            limits.append(Limit(f"{name}: rows beyond their bound", sum(not row["kept"] for row in judged), 0, "rows"))
    return [*limits, Limit("rows that failed", len(failures(tables)), 0, "rows")]


def failures(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """What failed, a line each."""
    return [
        f"{name}, {', '.join(str(row[key]) for key in NAMING if key in row)}: {row['failed']}"
        for name, rows in tables.items()
        for row in rows
        if "failed" in row
    ]


def write_report(folder: Path, facts: Mapping[str, Any], tables: Mapping[str, Table]) -> None:
    """Write gpu.json, and the tables between the markers of gpu.md."""
    said = {"machine": facts, "goal": GOAL, "bounds": gpu_sections.BOUNDS, "sections": tables}
    (folder / "gpu.json").write_text(json.dumps(said, indent=1, default=float) + "\n", encoding="utf-8")
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    page = f"{before}{BEGIN}\n{render(facts, tables)}\n{END}{after}"
    (folder / PAGE.name).write_text(page, encoding="utf-8")


def render(facts: Mapping[str, Any], tables: Mapping[str, Table]) -> str:
    """The generated part of the page."""
    device = str(facts["device"])
    if facts["memory_bytes"]:
        device += f", {facts['memory_bytes'] / 1e9:.0f} GB, compute capability {facts['capability']}"
        device += f", driver {facts['driver'] or 'unknown'}"
    title = "**A rehearsal with tiny models: no number here is of a GPU.** " if facts["rehearsal"] else ""
    lines = [f"{title}`{COMMAND}`, {facts['date']}: {device}, torch {facts['torch']}; {facts.get('seconds')} s."]
    for name, rows in tables.items():
        lines += ["", f"## {SECTIONS[name][2]}", "", *markdown(shown_rows(name, rows)), *remarks(name, rows)]
    return "\n".join(lines)


def shown_rows(name: str, rows: Table) -> Table:
    """The rows as a person reads them. Of many methods, a line each, with a column for each model and precision."""
    cells: dict[str, Callable[[dict[str, Any]], str]] = {
        "parity": lambda row: _shown(row["error"]) + ("" if row["kept"] else " **beyond**"),
        "speed": lambda row: _shown(row["ms"]),
    }
    if name not in cells or not all("method" in row for row in rows):
        return rows
    columns = dict.fromkeys(f"{row['model']}, {row['precision']}" for row in rows)
    lines = {row["method"]: {"method": f"`{row['method']}`", **dict.fromkeys(columns, "")} for row in rows}
    for row in rows:
        lines[row["method"]][f"{row['model']}, {row['precision']}"] = DASH if _why_not(row) else cells[name](row)
    return list(lines.values())


def remarks(name: str, rows: Table) -> list[str]:
    """Why methods have no number where the table has a dash, each reason once."""
    if name not in ("parity", "speed"):
        return []
    reasons = dict.fromkeys(f"* `{row.get('method', name)}`: {_why_not(row)}." for row in rows if _why_not(row))
    return ["", *reasons] if reasons else []


def _why_not(row: Mapping[str, Any]) -> str:
    return str(row.get("failed") or row.get("skipped") or "")


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return "" if value is None else str(value)


def markdown(rows: Table) -> list[str]:
    """The lines of a table; cells that a row lacks are empty."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        return ["Not measured: no time was left."]
    cells = [[_shown(row.get(name)).replace("|", "\\|").replace("\n", " ") for name in names] for row in rows]
    return [f"| {' | '.join(line)} |" for line in (names, ["---"] * len(names), *cells)]
