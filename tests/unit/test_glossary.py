"""Names follow the glossary: a noun for a thing, a verb for an action, one name for one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.project import name_of, sources, tree

OURS = ("pages", "components", "engine", "cache")
NO_NAMES = {
    "asked", "beside", "drawn", "found", "given", "held", "kept", "known", "made", "of", "one", "over", "said", "seen",
    "shown", "some", "told", "together", "whose",
}  # fmt: skip
"""No function or type is called by one of these alone: they say that something was done, not what it is."""
NO_MODULES = {
    "area", "ascent", "asked", "beside", "compact", "courses", "drawn", "engine_room", "executors", "fill", "foreseen",
    "fresh", "keep", "keeping", "known", "late", "lead", "lessons", "live", "look", "looked_at", "looking", "mapping",
    "meter", "operators", "owner", "pace", "parts", "pieces", "plain", "pupil", "reasons", "replacing", "showing",
    "signals", "some", "space", "tally", "told", "together", "trail", "trouble", "turns", "twin", "unmarked",
    "weighing", "whose", "without", "words", "work",
}  # fmt: skip
"""Names of modules after their part in a private pattern; a module is named after its subject."""
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def definitions() -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    """Every function and type of the project, with its file."""
    for file in sources(*OURS):
        for node in ast.walk(tree(file)):
            if isinstance(node, DEFINITIONS):
                yield file, node


def test_no_function_or_type_is_called_by_a_participle_or_a_preposition() -> None:
    bad = [f"{name_of(file)}: {one.name}" for file, one in definitions() if one.name.strip("_").lower() in NO_NAMES]
    assert not bad


def test_modules_are_named_after_their_subjects() -> None:
    assert not [name_of(file) for file in sources(*OURS) if file.stem in NO_MODULES]


def test_the_name_of_a_type_is_given_once() -> None:
    places = defaultdict[str, list[str]](list)
    for file, one in definitions():
        if isinstance(one, ast.ClassDef) and not one.name.startswith("_"):
            places[one.name].append(name_of(file))
    assert not {name: files for name, files in places.items() if len(files) > 1}
