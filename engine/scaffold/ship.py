"""Teaches the explainers that come with the project: `python -m engine.scaffold.ship [TEACHER ...]`.

Those of `OPENING` are the median ones of whole grids, whose students are written down too, for the Scaffold page; the
others are learned with one seed in few steps, which their cards say. What is finished in the home is not taught again.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Mapping

from engine import shipped
from engine.errors import ExegesisError
from engine.models import catalog
from engine.progress import Report, silent
from engine.scaffold.artefact import SHIPPED, artefact_of, save
from engine.scaffold.keeping import Kept, packed
from engine.scaffold.opening import NORMALISED, OPENING
from engine.scaffold.plan import NONE, SMAT, Plan, Recipe
from engine.scaffold.run import scaffold
from engine.shipped.make import pack_lines

SIZE_OF_GRID = {"text": 1000}
"""Which train size of a grid with several: the one whose median student the paper takes (section 5.1)."""
QUICK = Recipe(inner_rate=0.1, epochs=6, patience=6, held_out=60, validation=80, test=200)
FEW = dataclasses.replace(QUICK, held_out=30, validation=40, test=60)
LESSONS: Mapping[str, tuple[str, int, Recipe]] = {
    "reviews": ("reviews", 120, FEW),
    "quality": ("quality", 160, QUICK),
    "marked": ("reviews-marked:strength=0.7", 160, QUICK),
    "nli": ("nli", 80, FEW),
    "t5-deep-nli": ("snli-sick", 160, QUICK),
    "scenes-marked-vit": ("scenes-marked", 160, QUICK),
    "digits-vit": ("digits", 160, QUICK),
    "photos-vit": ("cifar10", 160, QUICK),
}
"""Data set, train size and recipe, by the teacher's name or a part of it. Of the few pairs of `nli`, `t5-deep-nli` says
the same of each; SNLI and CIFAR-10 do not come with the project (EXEGESIS_DATA)."""


def plans() -> dict[str, Plan]:
    """By teacher, what its explainer is learned from."""
    grids = {plan.teacher: plan for plan in OPENING.values()}
    others = [*catalog.embedded_models(), *catalog.embedded_image_models()]
    return {**{name: _quick(name) for name in others if name not in grids and _lesson(name)}, **grids}


def _quick(teacher: str) -> Plan:
    lesson = _lesson(teacher)
    assert lesson is not None
    dataset, size, recipe = lesson
    return Plan(teacher, dataset, (NONE, SMAT), (size,), (0,), recipe=recipe)


def _lesson(teacher: str) -> tuple[str, int, Recipe] | None:
    names = [teacher, *teacher.split("-")]
    return next((LESSONS[name] for name in names if name in LESSONS), None)


def ship(teacher: str, plan: Plan, report: Report) -> str:
    """Teaches what is missing and writes the explainer's two files. Returns what it is worth, in words."""
    size = SIZE_OF_GRID.get(_grid_of(plan), plan.train_sizes[0])
    learned = save(artefact_of(scaffold(plan, report), size), SHIPPED, teacher)
    return learned.card.worth


def write_students() -> int:
    """The finished students of what the page opens with and of its normalisations; how many. Those that this home has
    not are kept as they were shipped before."""
    kept = [Kept(plan) for plan in (*OPENING.values(), *NORMALISED)]
    found = {one.key(pupil): one.find(pupil) for one in kept for pupil in one.plan.pupils}
    lines = pack_lines((key, *packed(outcome)) for key, outcome in found.items() if outcome is not None)
    shipped.SCAFFOLDS.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(lines)


def _grid_of(plan: Plan) -> str:
    return next((kind for kind, one in OPENING.items() if one is plan), "")


def main() -> None:
    for teacher, plan in _chosen():
        try:
            print(f"{teacher}: it {ship(teacher, plan, silent)}.", flush=True)
        except ExegesisError as error:  # one that says the same of every text cannot be simulated; the others can
            print(f"{teacher}: not taught. {error}", flush=True)
    print(f"{write_students()} students in {shipped.SCAFFOLDS}")


def _chosen() -> Iterator[tuple[str, Plan]]:
    asked = sys.argv[1:]
    return ((teacher, plan) for teacher, plan in plans().items() if not asked or teacher in asked)


if __name__ == "__main__":
    main()
