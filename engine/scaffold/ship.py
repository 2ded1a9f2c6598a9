"""Train the explainers that are shipped with the project: `python -m engine.scaffold.ship [TEACHER ...]`.

For `OPENING_PLANS` all students are trained and stored for the Scaffold page, and the median explainer of the largest
train size is shipped. The other explainers are trained with one seed and few steps, as their cards say. Finished
students are not trained again.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping

from engine import shipped
from engine.errors import ExegesisError
from engine.models import catalog
from engine.progress import Report, silent
from engine.scaffold.experiment import StudentStore, pack, scaffold
from engine.scaffold.learned_explainer import SHIPPED, median_explainer, save
from engine.scaffold.plan import NONE, SMAT, Recipe, ScaffoldPlan
from engine.scaffold.presets import NORMALIZATION_PLANS, OPENING_PLANS
from engine.shipped.make import pack_lines

QUICK = Recipe(inner_rate=0.1, epochs=6, patience=6, held_out=60, validation=80, test=200)
FEW = dataclasses.replace(QUICK, held_out=30, validation=40, test=60)
RECIPES: Mapping[str, tuple[str, int, Recipe]] = {
    "reviews": ("reviews", 120, FEW),
    "quality": ("quality", 160, QUICK),
    "marked": ("reviews-marked:strength=0.7", 160, QUICK),
    "nli": ("nli-generated:sentences=1", 160, QUICK),
    "nli-minilm": ("nli", 80, FEW),
    "scenes-marked-vit": ("scenes-marked", 160, QUICK),
    "digits-vit": ("digits", 160, QUICK),
    "photos-vit": ("cifar10", 160, QUICK),
}
"""Data set, train size and recipe, by the teacher's name or a part of it. CIFAR-10 does not ship with the project; it
must be in EXEGESIS_DATA."""


def plans() -> dict[str, ScaffoldPlan]:
    """Return the plan for the explainer of each teacher."""
    plans = {}
    for teacher in (*catalog.embedded_models(), *catalog.embedded_image_models()):
        if name := next((name for name in (teacher, *teacher.split("-")) if name in RECIPES), None):
            dataset, size, recipe = RECIPES[name]
            plans[teacher] = ScaffoldPlan(teacher, dataset, (NONE, SMAT), (size,), (0,), recipe=recipe)
    grids = {plan.teacher: plan for plan in OPENING_PLANS.values()}
    return {**{teacher: plan for teacher, plan in plans.items() if teacher not in grids}, **grids}


def ship(teacher: str, plan: ScaffoldPlan, report: Report) -> str:
    """Train missing students and write the explainer's two files. Returns the description of its worth."""
    return save(median_explainer(scaffold(plan, report), max(plan.train_sizes)), SHIPPED, teacher).card.worth


def write_students() -> int:
    """Write the finished students of the opening plans and normalizations. Returns how many.

    Students that are missing in this home keep their shipped results.
    """
    stores = [StudentStore(plan) for plan in (*OPENING_PLANS.values(), *NORMALIZATION_PLANS)]
    students = {store.key(run): store.find(run) for store in stores for run in store.plan.students}
    lines = pack_lines((key, *pack(student)) for key, student in students.items() if student is not None)
    shipped.SCAFFOLDS.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(lines)


def main() -> None:
    teachers = sys.argv[1:]
    for teacher, plan in plans().items():
        if teachers and teacher not in teachers:
            continue
        try:
            print(f"{teacher}: it {ship(teacher, plan, silent)}.", flush=True)
        except ExegesisError as error:  # a teacher with one output for all texts cannot be simulated; the others can
            print(f"{teacher}: not taught. {error}", flush=True)
    print(f"{write_students()} students in {shipped.SCAFFOLDS}")


if __name__ == "__main__":
    main()
