"""Where `exegesis scaffold --explainer` puts the learned explainer: by a name in the home folder, or into a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import UsageError, not_allowed
from engine.scaffold.plan import SMAT

if TYPE_CHECKING:
    from engine.scaffold.artefact import Learned
    from engine.scaffold.plan import Plan
    from engine.scaffold.result import Scaffold

OPTION = "--explainer"


def check(given: str | None, plan: Plan) -> None:
    """Refuses, before long work is done for it, a place where nothing can be kept and a plan that learns none."""
    if given is None:
        return
    from engine.scaffold.artefact import CARD, NAME, explainers_folder

    if SMAT not in plan.settings:
        raise UsageError(f"{OPTION}: only the setting {SMAT} learns one, got --settings {','.join(plan.settings)}.")
    folder, name = _place(given)
    if folder is None and (not NAME.fullmatch(given) or (explainers_folder() / f"{name}{CARD}").exists()):
        allowed = "a folder, or a name of letters, digits, dots, - and _ that is not taken yet"
        raise not_allowed(OPTION, allowed, given, f"Those that are there lie in {explainers_folder()}.")
    if folder is not None and not folder.is_dir():
        raise UsageError(f"{OPTION}: {folder} is no folder. Make it first, or give a name alone.")


def saved(given: str, found: Scaffold) -> tuple[Learned, Path]:
    """The explainer of the median student at the largest train size, kept; and the folder where."""
    from engine.scaffold.artefact import artefact_of, explainers_folder, save, save_to_home

    learned = artefact_of(found, max(found.plan.train_sizes))
    folder, name = _place(given)
    if folder is None:
        return save_to_home(learned, name), explainers_folder()
    return save(learned, folder, name), folder


def told(learned: Learned, folder: Path) -> str:
    """Where it is and how it is used, in a line."""
    from engine.models import catalog
    from engine.scaffold.artefact import explainers_folder

    kind = "--image F" if catalog.is_image_model(learned.card.teacher) else "--text '...'"
    use = f"exegesis explain --model {learned.card.teacher} --method {SMAT} {kind}"
    name = learned.name if folder == explainers_folder() else folder / learned.name
    return (
        f"Learned explainer, from {learned.card.train_size:,} examples (median student): {folder / learned.name}. "
        f"Use it: {use} --param explainer={name}"
    )


def _place(given: str) -> tuple[Path | None, str]:
    """(folder, name): no folder where it is a name alone; no name where it is a folder alone."""
    path = Path(given).expanduser()
    if path.is_dir():
        return path, ""
    return (None, given) if path.name == given else (path.parent, path.stem if path.suffix == ".json" else path.name)
