"""`python -m tests.mutants`: which of the drawn mutants the tests notice, compared with the list that is kept."""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from tests.mutants import copying, records, switches
from tests.mutants.mutations import Mutant, draw

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MUTANTS, LIST, EQUIVALENT = HERE / "mutants.json", HERE / "results.tsv", HERE / "equivalent.tsv"
COUNT, SEED = 190, 20
MOST, SECONDS = 60, 30.0
"""How many tests are run for a mutant at most, and for how many seconds of the processor as recorded."""
PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q")
TESTS = ("tests/unit", "tests/app")
COLUMNS = ("id", "file", "line", "function", "change", "state", "killed by", "run", "covering")


def read_mutants() -> list[Mutant]:
    return [Mutant(**plain) for plain in json.loads(MUTANTS.read_text(encoding="utf-8"))]


def write_mutants() -> None:
    drawn = [vars(mutant) for mutant in draw(ROOT, COUNT, SEED)]
    MUTANTS.write_text(json.dumps(drawn, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def record(tree: Path, hits: Path, workers: int) -> None:
    """Run once, with every mutant off, all tests but the slow ones, which would be over the limit of a mutant."""
    hits.mkdir()
    several = (f"--numprocesses={workers}", "--dist=loadfile", "--no-loadscope-reorder", "-m", "not slow")
    command = [*PYTEST, "-p", "tests.mutants.recording", *several, *TESTS]
    subprocess.run(command, cwd=tree, env=copying.environment(tree, hits), check=False)


def kill(
    tree: Path, place: Path, tests: dict[int, list[str]], wall: dict[str, float], workers: int, on: int = 0
) -> dict[int, dict[str, Any]]:
    """What is found of each mutant, by processes that share the work; `on` is a mutant that is on at their imports."""
    results = Path(tempfile.mkdtemp(dir=place, prefix="results-"))
    job = {"tests": tests, "wall": wall, "results": str(results)}
    (results / "job").write_text(json.dumps(job), encoding="utf-8")
    environment = copying.environment(tree, place) | {switches.JOB: str(results / "job"), switches.CHOSEN: str(on)}
    files = sorted({records.file_of(test) for chosen in tests.values() for test in chosen})
    command = [*PYTEST, "-p", "tests.mutants.killing", *files]
    started = [subprocess.Popen(command, cwd=tree, env=environment) for _ in range(workers if files else 0)]
    for process in started:
        process.wait()
    return {int(file.stem): json.loads(file.read_text(encoding="utf-8")) for file in results.glob("*.json")}


def row(mutant: Mutant, line: int | None, ran: int, covering: int, found: dict[str, Any] | None) -> dict[str, str]:
    killed = found is not None and found["by"] is not None
    if line is None:
        state = "gone"
    elif not covering:
        state = "uncovered"
    elif found is None:
        state = "not run"
    else:
        state = "killed" if killed else "survived"
    by = found["by"] + (f" ({found['how']})" if found["how"] != "failed" else "") if found and killed else ""
    change = f"{mutant.original} → {mutant.replacement}"
    cells = (mutant.id, mutant.file, line or "", mutant.function, change, state, by, ran, covering)
    return dict(zip(COLUMNS, map(str, cells), strict=True))


def read_list(file: Path) -> dict[int, dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as opened:
        return {int(one["id"]): one for one in csv.DictReader(opened, delimiter="\t", quoting=csv.QUOTE_NONE)}


def write_list(rows: list[dict[str, str]], file: Path) -> None:
    with file.open("w", encoding="utf-8", newline="") as opened:
        opened.write("\n".join("\t".join(cells) for cells in (COLUMNS, *(one.values() for one in rows))) + "\n")


def compare(before: dict[int, dict[str, str]], rows: list[dict[str, str]]) -> int:
    """Say how many are in which state, and which were killed before and are not now; the status to end with."""
    equivalent = read_list(EQUIVALENT)
    print(
        dict(Counter(f"{one['state']}, equivalent" if int(one["id"]) in equivalent else one["state"] for one in rows))
    )
    lost = [one for one in rows if before.get(int(one["id"]), one)["state"] == "killed" != one["state"]]
    for one in lost:
        print(f"killed before, now {one['state']}: {one['id']} {one['file']}:{one['line']} {one['change']}")
    return 1 if any(one["state"] != "gone" for one in lost) else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--draw", action="store_true", help="draw the mutants anew and stop")
    parser.add_argument("--only", help="the ids of some mutants: 12,15")
    parser.add_argument("--workers", type=int, default=2, help="processes at a time")
    parser.add_argument(
        "--place", type=Path, help="keep the copy and what is recorded here, and go on with what is there"
    )
    parser.add_argument("--out", type=Path, help="where the list is written; of others than --only it stays as it is")
    parser.add_argument("--most", type=int, default=MOST, help="tests run for a mutant at most")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="their seconds of the processor at most")
    asked = parser.parse_args()
    if asked.draw:
        write_mutants()
        return 0
    place = (asked.place or Path(tempfile.mkdtemp(prefix="exegesis-mutants-"))).resolve()
    mutants = read_mutants()
    tree = place / "tree"
    if not tree.exists():
        copying.make_copy(ROOT, place, mutants)
    lines = copying.lines_of(ROOT, mutants)
    if not (place / "hits").exists():
        record(tree, place / "hits", asked.workers)
    known = records.read(place / "hits")
    wanted = {int(number) for number in asked.only.split(",")} if asked.only else {mutant.id for mutant in mutants}
    covering = {mutant.id: known.covering(mutant.id) for mutant in mutants}
    tests = {
        one.id: records.chosen(known, one.id, one.file, asked.most, asked.seconds)
        for one in mutants
        if one.id in wanted and covering[one.id]
    }
    found = kill(tree, place, tests, known.wall, asked.workers)
    for id in sorted(known.at_import.keys() & tests.keys()):
        if found[id]["by"] is None:
            found |= kill(tree, place, {id: tests[id]}, known.wall, 1, on=id)
    rows = [
        row(
            one,
            lines.get(one.id),
            len(tests[one.id]) if one.id in tests else 0,
            len(covering[one.id]),
            found.get(one.id),
        )
        for one in mutants
        if one.id in wanted
    ]
    before = read_list(LIST) if LIST.exists() else {}
    if asked.out:
        others = read_list(asked.out) if asked.out.exists() else {}
        there = others | {int(one["id"]): one for one in rows}
        write_list([there[number] for number in sorted(there)], asked.out)
    if not asked.place:
        shutil.rmtree(place)
    return compare(before, rows)


if __name__ == "__main__":
    sys.exit(main())
