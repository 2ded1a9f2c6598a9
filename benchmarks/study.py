"""The study: differences that are not there, placebos that are named, intervals that miss, people who vote at once."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from scipy.stats import binom
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GroupKFold

from benchmarks.harness import Limit, Measurement, benchmark, scratch_folder
from benchmarks.served_pages import processor_seconds, wait_until_idle
from engine.data.datasets import load
from engine.explain import explain_many
from engine.request import Example, Request
from engine.study.ballots import color_scores
from engine.study.counted_votes import WITHOUT
from engine.study.database import ADDRESS
from engine.study.design import COLORS, Design, MethodChoice
from engine.study.items import ItemMap, add_placebos
from engine.study.ratings import ERROR_RATE
from engine.study.simulation import GuessSimulation, RankingSimulation, false_difference_rate, measure_coverage
from tests.browser.server import running
from tests.unit.study.polls import open_study
from tests.unit.study.voter import Voter

RANKINGS = {
    "4 methods, 20 annotators, 10 items": RankingSimulation(dict.fromkeys("ABCD", 0.0), annotators=20, items=10),
    "6 methods, 20 annotators, 10 items": RankingSimulation(dict.fromkeys("ABCDEF", 0.0), annotators=20, items=10),
    "4 methods, 3 annotators, 10 items": RankingSimulation(dict.fromkeys("ABCD", 0.0), annotators=3, items=10),
}


@benchmark(studies=200)
def study_claims(studies: int) -> Measurement:
    """Differences that are not there.

    The share of simulated studies of equally good methods in which the partial order tells any two apart. Each of the
    annotators has a taste of their own, drawn anew for each study, so that their votes are not independent.
    """
    return Measurement(
        limits=[
            Limit(f"{case}, {studies} studies", 100 * false_difference_rate(simulation, studies), 100 * ERROR_RATE, "%")
            for case, simulation in RANKINGS.items()
        ]
    )


EQUAL = dict.fromkeys((WITHOUT, "A", "B", "C"), 0.6)
DIFFERENT = {WITHOUT: 0.6, "A": 0.75, "B": 0.9, "C": 0.6}
GUESSES = {
    "equal skills, 20 annotators": GuessSimulation(EQUAL),
    "different skills, 20 annotators": GuessSimulation(DIFFERENT),
    "different skills, 5 annotators": GuessSimulation(DIFFERENT, annotators=5),
    "different skills, 20 annotators who differ much": GuessSimulation(DIFFERENT, taste=1.0),
}


@benchmark(studies=400)
def study_guesses(studies: int) -> Measurement:
    """Do the intervals of guesses hold what they say?

    Guessers with a known skill, who differ from each other: the share of 95% intervals of an accuracy that miss it,
    and the share of studies in which any interval of a difference to no explanation does.
    """
    limits = []
    for case, simulation in GUESSES.items():
        coverage = measure_coverage(simulation, studies)
        covered = {"accuracies missed": coverage.alone, "studies that miss a difference": coverage.together}
        limits += [
            Limit(f"{case}: {what}", 100 * (1 - share), 100 * ERROR_RATE, "%") for what, share in covered.items()
        ]
    return Measurement(limits=limits)


MODEL, DATASET = "reviews-minilm", "reviews-generated"
METHODS = ("gradient_x_input", "attention_mean", "attention_rollout", "occlusion")
SHOWN = len(METHODS) + 1
LEVELS = np.linspace(0, 1, 21)


@benchmark(ballots=500)
def study_placebo(ballots: int) -> Measurement:
    """How often the placebo of a study can be named.

    Ballots as participants get them: four methods and the placebo on generated reviews. A classifier (random forest,
    five folds over ballots) reads all that the browser receives of a ballot but where on the text the colors are: the
    sorted colors of each explanation, and of the others beside it. It names the explanation that it finds likeliest.
    Limit, for the rule "rank": what naming one in five by chance stays under in 999 of 1,000 such benchmarks. Where the
    colors are is what people judge; the last line tells how far agreement with the other explanations gives the placebo
    away.
    """
    drawn = draw_ballots(ballots)
    shares = {rule: naming_rate(np.concatenate([color_features(*one, rule) for one in drawn])) for rule in COLORS}
    for rule in COLORS[1:]:
        print(f"placebo named by its colors, rule {rule}: {100 * shares[rule]:.1f}% of {ballots} ballots")
    print(f"placebo agrees least with the others: {100 * np.mean([agrees_least(*one) for one in drawn]):.1f}%")
    most = 100 * binom.ppf(0.999, ballots, 1 / SHOWN) / ballots
    limit = Limit(f"placebo named by its colors, rule rank, {ballots} ballots", 100 * shares["rank"], most, "%")
    return Measurement(limits=[limit])


def draw_ballots(count: int) -> list[tuple[Example, list[ItemMap]]]:
    """Inputs and their explanations, the placebo last."""
    texts = [one.example for one in load(DATASET, "train", limit=count).examples]
    maps = explain_many([Request(MODEL, method, text) for method in METHODS for text in texts])
    design = Design(model=MODEL, dataset=DATASET, methods=tuple(map(MethodChoice, METHODS)))
    by_item = add_placebos([maps[place::count] for place in range(count)], design)
    item_maps = [[ItemMap(one.tokens, one.scores, None, one.truncated) for one in answers] for answers in by_item]
    return list(zip(texts, item_maps, strict=True))


def color_features(example: Example, maps: list[ItemMap], rule: str) -> np.ndarray:
    """Features of each explanation but for the places of its colors: quantiles, signs, ties, distances to others."""
    colors = [np.array([c for c, t in zip(color_scores(one, example, rule), one.tokens, strict=True) if not t.special])
              for one in maps]  # fmt: skip
    quantiles = np.array([np.quantile(one, LEVELS) for one in colors])
    rows = []
    for place, one in enumerate(colors):
        gaps = np.abs(quantiles - quantiles[place]).max(axis=1)
        ties = sum(a == b for a, b in pairwise(sorted(one)))
        others = np.sort(np.delete(gaps, place))
        rows.append([*quantiles[place], (one < 0).mean(), (one == 0).mean(), ties / len(one), one.std(), *others])
    return np.array(rows)


def naming_rate(rows: np.ndarray) -> float:
    """The share of ballots on which a classifier trained on the others names the placebo."""
    count = len(rows) // SHOWN
    truth, ballot = np.arange(len(rows)) % SHOWN == SHOWN - 1, np.arange(len(rows)) // SHOWN
    chances = np.zeros(len(rows))
    for train, test in GroupKFold(5).split(rows, truth, ballot):
        forest = RandomForestClassifier(300, min_samples_leaf=3, random_state=0).fit(rows[train], truth[train])
        chances[test] = forest.predict_proba(rows[test])[:, 1]
    jitter = 1e-9 * np.random.default_rng(0).random(len(rows))  # the place on the ballot is drawn by chance too
    return float(((chances + jitter).reshape(count, SHOWN).argmax(axis=1) == SHOWN - 1).mean())


def agrees_least(example: Example, maps: list[ItemMap]) -> bool:
    """Whether the placebo's order of words agrees least with those of the others."""
    colors = np.array([color_scores(one, example, "rank") for one in maps])
    agreement = np.corrcoef(colors).sum(axis=1)
    return int(agreement.argmin()) == SHOWN - 1


EACH = 6
MOST_CPU_MS = 100.0
"""A ballot and its vote. People look for at least five seconds: fifty of them give ten votes a second, one core's."""


@benchmark(people={"type": int, "default": 50, "choices": range(1, 61), "metavar": "1..60"})
def study_votes(people: int) -> Measurement:
    """Fifty people voting at once over HTTP.

    One real server; each person joins, agrees and answers every ballot without a pause, over a connection of its own
    for each request: as if all of a lecture hall clicked at the same moment, again and again. Seconds are the client's,
    whose threads share the machine with the server; what is judged is the server's processor time a vote, which a busy
    machine changes little. The study is on SQLite, or on the PostgreSQL whose address stands in EXEGESIS_DATABASE_URL,
    which keeps it.
    """
    with scratch_folder() as folder, mock.patch.dict(os.environ, EXEGESIS_HOME=str(folder / "home")):
        voters, seconds, used = vote_at_once(people, folder)
    votes = sum(len(voter.acknowledged) for voter in voters)
    where = "the database of " + ADDRESS if os.environ.get(ADDRESS) else "SQLite"
    return Measurement(
        {
            f"{people} people vote at once, {where}: {votes / seconds:.0f} votes a second": [
                _request_row(what, voters) for what in ("join", "consent", "ballot", "answer")
            ]
        },
        [
            Limit("people who did not get through", sum(not voter.through for voter in voters), 0, ""),
            Limit("the server's processor time, a vote and its ballot", used / votes * 1e3, MOST_CPU_MS, "ms"),
        ],
    )


class TimedVoter(Voter):
    """A voter who records the seconds of each request."""

    def __init__(self, link: str) -> None:
        super().__init__(link)
        self.seconds: list[tuple[str, float]] = []

    def request(self, server: str, method: str, what: str, said: object = None) -> tuple[int, dict[str, Any]]:
        begun = time.perf_counter()
        try:
            return super().request(server, method, what, said)
        finally:
            self.seconds.append((what, time.perf_counter() - begun))


def vote_at_once(people: int, folder: Path) -> tuple[list[TimedVoter], float, float]:
    """The voters when they are done, the seconds from the first request to the last answer, and those of the server."""
    study = open_study(items=10, practice=1, items_per_annotator=EACH, repeats=1)
    voters = [TimedVoter(study.token) for _ in range(people)]
    with running(folder) as server:
        process = server.process
        wait_until_idle(process)
        used = processor_seconds(process)
        threads = [threading.Thread(target=voter.vote, args=(server.url,)) for voter in voters]
        begun = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return voters, time.perf_counter() - begun, processor_seconds(process) - used


def _request_row(what: str, voters: Sequence[TimedVoter]) -> dict[str, Any]:
    seconds = [spent for voter in voters for name, spent in voter.seconds if name == what]
    middle, slow = np.percentile(seconds, [50, 95])
    return {
        "request": what,
        "number": len(seconds),
        "s, median": float(middle),
        "s, 95%": float(slow),
        "s, worst": max(seconds),
    }
