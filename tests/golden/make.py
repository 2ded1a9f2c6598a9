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

from engine.explainers.ensemble import SEVEN
from engine.models.load import load_model
from engine.registry import explainer
from tests.explaining import METHODS, run, task_for
from tests.golden.checkpoints import FAMILIES, SEED, TARGET, TEXT, build

FOLDER = Path(__file__).parent
TOLERANCE = 1e-5


def golden(method: str, models: dict[str, Any]) -> dict[str, Any]:
    """The method's maps at its defaults in double precision, a checkpoint each."""
    maps = {}
    for family, model in models.items():
        (made,) = run(method, task_for(model, [TEXT], target=TARGET, seed=SEED))
        maps[family] = [round(float(score), 8) + 0.0 for score in made.scores]
    return {"method": method, "versions": versions(method), "text": TEXT, "scores": maps}


def versions(method: str) -> dict[str, int]:
    """The method's version, and its members' where it has some."""
    members = SEVEN if explainer(method).family == "ensemble" else ()
    return {m: explainer(m).version for m in (method, *members)}


def models(folder: Path) -> dict[str, Any]:
    """The fixed checkpoints, loaded by the engine."""
    return {family: load_model(str(build(family, folder / family)), "float64") for family in FAMILIES}


def agree(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two golden values hold the same numbers."""
    return one["scores"].keys() == other["scores"].keys() and all(
        np.allclose(one["scores"][f], other["scores"][f], atol=TOLERANCE, rtol=0) for f in one["scores"]
    )


def main() -> int:
    refused = []
    with tempfile.TemporaryDirectory() as folder:
        loaded = models(Path(folder))
        for method in METHODS:
            made, file = golden(method, loaded), FOLDER / f"{method}.json"
            old = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
            if old and old["versions"] == made["versions"]:
                if not agree(old, made):
                    refused.append(method)
                continue
            file.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
            print(f"{file.name}: version {made['versions'][method]}")
    for method in refused:
        print(f"{method}: its numbers changed; raise its version, then run this again", file=sys.stderr)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
