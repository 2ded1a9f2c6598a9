"""How often the placebo of a study can be named: `python -m benchmarks.study_placebo [--ballots 500]`.

Ballots as participants get them: four methods and the placebo on generated reviews. A classifier (random forest, five
folds over ballots) reads all that the browser receives of a ballot but where on the text the colors are: the sorted
colors of each explanation, and of the others beside it. It names the explanation that it finds likeliest. Limit, for
the rule "rank": what naming one in five by chance stays under in 999 of 1,000 such benchmarks. Where the colors are is
what people judge; the last line tells how far agreement with the other explanations gives the placebo away.
"""

from __future__ import annotations

import sys
from itertools import pairwise

import numpy as np
from scipy.stats import binom
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GroupKFold

from benchmarks.harness import Limit, benchmark_parser, judge
from engine.data.datasets import load
from engine.explain import explain_many
from engine.request import Example, Request
from engine.study.ballots import color_scores
from engine.study.design import COLORS, Design, MethodChoice
from engine.study.items import ItemMap
from engine.study.snapshot import add_placebos

MODEL, DATASET = "reviews-minilm", "reviews-generated"
METHODS = ("gradient_x_input", "attention_mean", "attention_rollout", "occlusion")
BALLOTS, SHOWN = 500, len(METHODS) + 1
LEVELS = np.linspace(0, 1, 21)


def ballots(count: int) -> list[tuple[Example, list[ItemMap]]]:
    """Inputs and their explanations, the placebo last."""
    texts = [one.example for one in load(DATASET, "train", limit=count).examples]
    made = explain_many([Request(MODEL, method, text) for method in METHODS for text in texts])
    design = Design(model=MODEL, dataset=DATASET, methods=tuple(map(MethodChoice, METHODS)))
    by_item = add_placebos([made[place::count] for place in range(count)], design)
    maps = [[ItemMap(one.tokens, one.scores, None, one.truncated) for one in answers] for answers in by_item]
    return list(zip(texts, maps, strict=True))


def features(given: Example, maps: list[ItemMap], rule: str) -> np.ndarray:
    """Of each explanation without the places of its colors: quantiles, signs, ties, and how far those of others are."""
    colors = [np.array([c for c, t in zip(color_scores(one, given, rule), one.tokens, strict=True) if not t.special])
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
    """The share of ballots whose placebo a classifier trained on the other ballots finds likeliest."""
    count = len(rows) // SHOWN
    truth, ballot = np.arange(len(rows)) % SHOWN == SHOWN - 1, np.arange(len(rows)) // SHOWN
    chances = np.zeros(len(rows))
    for train, test in GroupKFold(5).split(rows, truth, ballot):
        forest = RandomForestClassifier(300, min_samples_leaf=3, random_state=0).fit(rows[train], truth[train])
        chances[test] = forest.predict_proba(rows[test])[:, 1]
    jitter = 1e-9 * np.random.default_rng(0).random(len(rows))  # the place on the ballot is drawn by chance too
    return float(((chances + jitter).reshape(count, SHOWN).argmax(axis=1) == SHOWN - 1).mean())


def agrees_least(given: Example, maps: list[ItemMap]) -> bool:
    """Whether the placebo's order of words agrees least with those of the others."""
    colors = np.array([color_scores(one, given, "rank") for one in maps])
    agreement = np.corrcoef(colors).sum(axis=1)
    return int(agreement.argmin()) == SHOWN - 1


def main() -> int:
    count = benchmark_parser(__doc__, as_json=False, ballots=BALLOTS).parse_args().ballots
    given = ballots(count)
    shares = {rule: naming_rate(np.concatenate([features(*one, rule) for one in given])) for rule in COLORS}
    for rule in COLORS[1:]:
        print(f"placebo named by its colors, rule {rule}: {100 * shares[rule]:.1f} % of {count} ballots")
    print(f"placebo agrees least with the others: {100 * np.mean([agrees_least(*one) for one in given]):.1f} %")
    most = 100 * binom.ppf(0.999, count, 1 / SHOWN) / count
    return judge([Limit(f"placebo named by its colors, rule rank, {count} ballots", 100 * shares["rank"], most, "%")])


if __name__ == "__main__":
    sys.exit(main())
