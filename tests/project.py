"""The project seen as files: where it lies, its Python sources, what they import and call."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("cache", "engine", "components", "exegesis", "pages")
OTHERS = ("app.py", "tests", "benchmarks")


def sources(*places: str) -> list[Path]:
    """The Python files under `places`, by default all of the project."""
    chosen = [ROOT / place for place in places or (*PACKAGES, *OTHERS)]
    files = {file for place in chosen for file in ([place] if place.is_file() else place.rglob("*.py"))}
    return sorted(files)


def name_of(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def module_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"), filename=str(file))


@functools.cache
def imported(file: Path) -> tuple[tuple[int, str], ...]:
    """(line, module) of every import in a file, those inside functions included."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            found += ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.append((node.lineno, "." * node.level + (node.module or "")))
    return tuple(found)


def calls(file: Path) -> Iterator[tuple[int, str, dict[str, ast.expr]]]:
    """(line, dotted name of the callee, keyword arguments) of every call in a file."""
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Call):
            keywords = {word.arg: word.value for word in node.keywords if word.arg}
            yield node.lineno, ast.unparse(node.func), keywords
