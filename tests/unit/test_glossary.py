"""Names follow the glossary: a noun for a thing, a verb for an action, one name for one thing."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project import ROOT, name_of, sources, tree

OURS = ("pages", "exegesis", "components", "engine", "cache")
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


OLD_WORDS = re.compile(
    r"\b(colours?|coloured|changed hands|cannot be told|told from the best|several where they tie|foresees?|foreseen"
    r"|puts? nothing in order|all true within|scores of the top fell|votes wanted|made in less|method once more"
    r"|drawn of those|stood for by|input has of the|out of its proportions|until a picture is given"
    r"|only this machine opens|asked since the server|comes taught|question the maps|organisers?|normalisation"
    r"|optimised)\b"
    r"|, meant\b|[0-9}][ \u00a0]%|\b(?!1\b)\d+ holds\b",
    re.IGNORECASE,
)
"""Words that no page, message or document uses; American English has others for them, and writes `98.2%`."""
PUBLISHED = re.compile(r"[\w.:/-]*normalisation[\w.:/-]*|cannot be told|.*teaches better than {} cannot be told")
"""A text that is an id as a whole, such as a parameter's value or a verdict of old reports, keeps its spelling, and so
does a sentence on the cards of shipped explainers, which is part of their cache keys."""
GENERATED = ROOT / "engine" / "data" / "vocabulary.py"
"""Words of generated data sets: other words would be other data."""


def texts() -> Iterator[tuple[str, str]]:
    """The texts of the code without docstrings, the documents, scripts and cards of models, each with its place.

    Reports of reproductions are left out: they quote claims as they were declared before the runs.
    """
    for file in sources("pages", "exegesis", "components", "engine"):
        if file == GENERATED:
            continue
        nodes = list(ast.walk(tree(file)))
        alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        inside = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in nodes:
            if isinstance(node, ast.JoinedStr):
                yield (
                    f"{name_of(file)}:{node.lineno}",
                    "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values),
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not {id(node)} & (alone | inside):
                yield f"{name_of(file)}:{node.lineno}", node.value
    for pattern in ("*.md", "docs/**/*.md", "benchmarks/*.md", "components/**/*.js", "engine/**/card.*"):
        for file in sorted(ROOT.glob(pattern)):
            if not file.stem.startswith("reproduction"):
                yield name_of(file), file.read_text(encoding="utf-8")


def test_no_page_or_document_uses_an_old_word() -> None:
    found = [
        (place, word[0])
        for place, text in texts()
        if not PUBLISHED.fullmatch(text)
        for word in OLD_WORDS.finditer(text)
    ]
    assert not found


@pytest.mark.parametrize(
    "text", ["The colour", "Foresee it", "98.2 %", "{} %", "positive, meant negative", "5 CHANGED HANDS", "7 holds"]
)
def test_the_check_itself_finds_old_words(text: str) -> None:
    assert OLD_WORDS.search(text)


@pytest.mark.parametrize("text", ["color", "98.2%", "meant for texts", "normalization", "unforeseeable"])
def test_the_check_itself_leaves_other_words(text: str) -> None:
    assert not OLD_WORDS.search(text)
