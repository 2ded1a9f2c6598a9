"""The mutated copy of the project: every mutant compiled in, each behind a switch that is off."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from tests.mutants.mutations import Mutant, find

FIRST = "from __future__ import annotations"
IMPORT = "from mutant_switches import active as _mutant_active"


def make_copy(root: Path, place: Path, mutants: Iterable[Mutant]) -> None:
    """Write it to `place` / "tree", with a checkout's files and nothing else."""
    tree = place / "tree"
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=root, capture_output=True, check=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if (root / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, tree / name)
    if (root.parent / "shared").exists():
        (place / "shared").symlink_to((root.parent / "shared").resolve())
    (tree / ".venv").symlink_to((root / ".venv").resolve())
    shutil.copy2(Path(__file__).with_name("switches.py"), tree / "mutant_switches.py")
    # A checkout, so that the tests of what is tracked find what they look for.
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *command], cwd=tree, check=True)
    write_switches(tree, mutants)


def write_switches(tree: Path, mutants: Iterable[Mutant]) -> None:
    for name, ours in _by_file(mutants).items():
        lines = _lines(tree / name)
        found = _found(lines, ours)
        for mutant, number in found:
            lines[number - 1] = lines[number - 1].removesuffix(mutant.line) + mutant.switched()
        if FIRST in lines:
            lines[lines.index(FIRST)] = f"{FIRST}; {IMPORT}"
        source = "\n".join(lines) + "\n"
        if found:
            compile(source, name, "exec")
            (tree / name).write_text(source, encoding="utf-8")


def lines_of(root: Path, mutants: Iterable[Mutant]) -> dict[int, int]:
    """The number of each mutant's line, by its id, without those whose line is gone."""
    return {
        mutant.id: number
        for name, ours in _by_file(mutants).items()
        for mutant, number in _found(_lines(root / name), ours)
    }


def _by_file(mutants: Iterable[Mutant]) -> dict[str, list[Mutant]]:
    files: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        files[mutant.file].append(mutant)
    return files


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def _found(lines: list[str], mutants: Iterable[Mutant]) -> list[tuple[Mutant, int]]:
    places = [(mutant, find(mutant, lines)) for mutant in mutants]
    return [(mutant, number) for mutant, number in places if number is not None]


def environment(tree: Path, hits: Path) -> dict[str, str]:
    """Where tests of the copy run: its modules come first, in the processes that they start too."""
    known = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return known | {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1", "EXEGESIS_MUTANT_HITS": str(hits)}
