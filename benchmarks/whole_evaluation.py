"""Explaining and scoring by us, by ferret-xai and by a loop over Captum: `python -m benchmarks.whole_evaluation`.

The same texts of `reviews`, the same model (reviews-minilm, saved as a plain folder), four methods, comprehensiveness
and sufficiency at ten steps. Equal settings: 50 steps of integrated gradients; as many samples of LIME as ferret takes
by itself (the mean of its squares of lengths), on all sides; as many evaluations for Shapley values as its partition
took in the mean. `exegesis` explains and scores a random order besides, as it always does, from an empty cache.

Bare: as many rows of as many tokens as `exegesis` ran, forward or forward and back, by the plain transformers module
in passes of like length. Seconds are of the processor, one thread on all sides. `--texts 6 --rounds 2 --json`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import captum_loop, equal_error
from benchmarks.contest import AMOUNTS, STEPS, Contest, Settings, plain_folder, spent
from benchmarks.counting import counting
from benchmarks.ferret_peer import NotThereError, Peer, peer
from benchmarks.timing import ratio, show
from engine.data.datasets import load
from engine.request import Example

AGAINST_BARE, AGAINST_FERRET = 1.2, 1.5


def settings_for(contest: Contest, other: Peer | None) -> Settings:
    """Those that are equal on all sides."""
    squares = [len(contest.model.encode(Example(text))) ** 2 for text in contest.texts]
    lime = round(float(np.mean(squares)))
    return {"gradient": 1, "integrated_gradients": STEPS, "lime": lime, "kernel_shap": _partition(contest, other, lime)}


def _partition(contest: Contest, other: Peer | None, default: int) -> int:
    """How many rows ferret's SHAP runs for a text; this is its warming up too."""
    if other is None:
        return default
    found = other.ask("rows", texts=contest.texts, targets=contest.targets, name="shap")
    return round(found["rows"] / len(contest.texts))


def measure(contest: Contest, other: Peer | None, settings: Settings, rounds: int) -> list[dict[str, Any]]:
    """A row for each side; all are timed in turn."""
    counts = dict[str, int]()
    with counting(contest.model.module) as rows:
        contest.ours(settings)
    bare = contest.bare(rows)
    counts["bare"] = counts["exegesis"] = rows.count

    def captum() -> None:
        with counting(contest.model.module) as seen:
            captum_loop.explain_and_score(contest.model, contest.texts, settings)
        counts["captum loop"] = seen.count

    def ferret(peer: Peer) -> float:
        found = contest.ferrets(peer, settings)
        counts["ferret-xai"] = found["rows"]
        return float(found["seconds"])

    sides: dict[str, Callable[[], float]] = {
        "bare": lambda: spent(bare),
        "exegesis": lambda: spent(lambda: contest.ours(settings)),
        "captum loop": lambda: spent(captum),
    }
    if other is not None:
        sides["ferret-xai"] = lambda: ferret(other)
    times = {name: np.array([]) for name in sides}
    for turn in range(rounds):
        for name in list(sides) if turn % 2 == 0 else reversed(list(sides)):
            times[name] = np.append(times[name], sides[name]())
    return [_row(contest, name, times, counts[name]) for name in times]


def _row(contest: Contest, name: str, times: dict[str, np.ndarray], rows: int) -> dict[str, Any]:
    to_ferret = ratio(times, "ferret-xai", name)["ratio"] if "ferret-xai" in times else float("nan")
    return {
        "by": name,
        "seconds": float(np.median(times[name])),
        "rows": rows,
        "examples a second": len(contest.texts) / float(np.median(times[name])),
        **ratio(times, name, "bare"),
        "at most": AGAINST_BARE if name == "exegesis" else "",
        "times ferret's speed": to_ferret,
        "at least": AGAINST_FERRET if name == "exegesis" else "",
    }


@contextlib.contextmanager
def ferret_if_there(folder: Path) -> Iterator[Peer | None]:
    with contextlib.ExitStack() as stack:
        try:
            other = stack.enter_context(peer(folder))
        except NotThereError as error:
            print(f"ferret-xai is left out: {error}.")
            yield None
            return
        yield other


def reviews(count: int) -> list[str]:
    """From all over the data set, so that lengths vary."""
    texts = [example.text for example in load("reviews").examples]
    return texts[:: len(texts) // count][:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # Captum warns of its own solvers
    torch.set_num_threads(1)
    os.environ["EXEGESIS_DEVICE"] = "cpu"  # where ferret runs
    with plain_folder() as folder, ferret_if_there(folder) as other:
        contest = Contest(folder, reviews(given.texts))
        settings = settings_for(contest, other)
        said = ", ".join(f"{method} {amount}" for method, amount in settings.items() if AMOUNTS[method])
        show(f"Equal settings ({said})", measure(contest, other, settings, given.rounds), given.json)
        if other is not None:
            short = Contest(folder, equal_error.texts(contest.model, given.texts))
            show("Equal error", equal_error.measure(short, other, given.rounds), given.json)


if __name__ == "__main__":
    main()
