"""Write the golden values of every explainer: `python -m tests.golden.make`.

An explainer whose numbers changed is refused until its `version` is raised: old cached maps would be shown as new.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from engine.models.loading import load_image_model, load_model
from engine.registry import KINDS, SEVEN, all_explainers, explainer
from tests.explaining import run, task_for
from tests.golden.checkpoints import FAMILIES, SEED, TARGET, TEXT, build, build_vit, picture

FOLDER = Path(__file__).parent
TOLERANCE = 1e-5


Case = tuple[str, str]
"""A kind of input and a method."""
CASES: tuple[Case, ...] = tuple((kind, method) for kind in KINDS for method in all_explainers(kind))


def file_of(case: Case) -> Path:
    """Where the method's golden values are kept."""
    kind, method = case
    return (FOLDER / "pictures" if kind == "image" else FOLDER) / f"{method}.json"


def golden(case: Case, models: dict[str, Any]) -> dict[str, Any]:
    """The method's maps at its defaults in double precision, a checkpoint each."""
    kind, method = case
    given, told = (picture(), {"picture": picture().digest}) if kind == "image" else (TEXT, {"text": TEXT})
    maps = {}
    for family, model in models.items():
        if model.kind == kind:
            (made,) = run(method, task_for(model, [given], target=TARGET, seed=SEED))
            maps[family] = [round(float(score), 8) + 0.0 for score in made.scores]
    return {"method": method, "versions": versions(case), **told, "scores": maps}


def versions(case: Case) -> dict[str, int]:
    """The method's version, and its members' where it has some."""
    kind, method = case
    members = SEVEN if explainer(method, kind).family == "ensemble" else ()
    return {m: explainer(m, kind).version for m in (method, *members)}


def models(folder: Path) -> dict[str, Any]:
    """The fixed checkpoints, loaded by the engine."""
    made = {family: load_model(str(build(family, folder / family)), "float64") for family in FAMILIES}
    return {**made, "vit": load_image_model(str(build_vit(folder / "vit")), "float64")}


def agree(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two golden values hold the same numbers."""
    return one["scores"].keys() == other["scores"].keys() and all(
        np.allclose(one["scores"][f], other["scores"][f], atol=TOLERANCE, rtol=0) for f in one["scores"]
    )


def main() -> int:
    refused = []
    with tempfile.TemporaryDirectory() as folder:
        loaded = models(Path(folder))
        for case in CASES:
            made, file = golden(case, loaded), file_of(case)
            old = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
            if old and old["versions"] == made["versions"]:
                if not agree(old, made):
                    refused.append(case)
                continue
            file.parent.mkdir(exist_ok=True)
            file.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
            print(f"{file.relative_to(FOLDER)}: version {made['versions'][case[1]]}")
    for kind, method in refused:
        print(f"{method} ({kind}): its numbers changed; raise its version, then run this again", file=sys.stderr)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
