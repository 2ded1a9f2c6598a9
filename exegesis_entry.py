"""Entry of the `exegesis` command: check that Python imports Exegesis's own packages, then run the command line.

The packages `cache`, `components`, `engine` and `pages` have general names. A folder on `PYTHONPATH`, or another
distribution in the same environment, may bring a package of the same name. This module's own name is unusual, and it
imports none of them before the check.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

PACKAGES = ("cache", "components", "engine", "pages")
FOLDER = Path(__file__).resolve().parent
CLASH_ADVICE = (
    "Install Exegesis in an environment of its own (pipx install exegesis, or a fresh venv), and unset PYTHONPATH "
    "if it names a folder with such a package."
)


def foreign_packages(folder: Path = FOLDER) -> dict[str, str]:
    """The packages that Python would import from outside `folder`, with their places."""
    foreign = {}
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        place = (spec.origin or ", ".join(spec.submodule_search_locations or ())) if spec else "nowhere"
        if Path(place).resolve() != folder / name / "__init__.py":
            foreign[name] = place
    return foreign


def shared_packages() -> dict[str, list[str]]:
    """The packages that several installed distributions bring, with these distributions: one may overwrite another."""
    owners = packages_distributions()
    return {name: sorted(set(owners[name])) for name in PACKAGES if len(set(owners.get(name, ()))) > 1}


def main() -> None:
    """Run the command line. A clash of packages ends the process with an error of one line and status 1."""
    if foreign := foreign_packages():
        listed = "; ".join(f"{name} from {place}" for name, place in foreign.items())
        sys.exit(f"error: other packages hide those of Exegesis in {FOLDER}: Python imports {listed}. {CLASH_ADVICE}")
    try:
        command_line = importlib.import_module("engine.cli")
    except ImportError as error:
        if shared := shared_packages():
            listed = "; ".join(f"{name} ({', '.join(owners)})" for name, owners in shared.items())
            sys.exit(f"error: several distributions install the same packages: {listed}. {error}. {CLASH_ADVICE}")
        raise
    command_line.main()
