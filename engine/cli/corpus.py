"""`exegesis corpus`: test which words or patches matter to a model over a whole data set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from engine.cli.experiments import command_of
from engine.cli.output import table, visible
from engine.corpus.experiment import ALL, CorpusWords
from engine.corpus.plan import CORPUS
from engine.experiments.base import ExperimentResult
from engine.format import count_text
from engine.significance.false_discovery import USUAL_RATE, survives

MOST_WORDS = 15
LEGEND = (
    "Mean score for the predicted class over the examples with the word, with its 95% interval. Significant at a false "
    "discovery rate of 10% (Benjamini-Hochberg) against scores permuted within each text. --json and --out have all "
    "words, slices and p-values."
)


def sections(result: ExperimentResult) -> Iterator[RenderableType]:
    """Yield, per model, the significant words by each method over all examples, and the reasons for failures."""
    for one in result.models:
        yield Text(visible(f"{one.model} on {one.dataset}: {count_text(len(one.examples), 'example')}"), style="bold")
        if one.words:
            yield from (part for method in one.methods for part in _method(one, method))
        else:
            yield Text(f"No word is in at least {result.plan.least} examples. Lower --least or raise --examples.")
        for why, count in Counter(one.failed.values()).items():
            yield Text(visible(f"{count_text(count, 'example')} left out: {why}"))
        yield ""
    yield Text(LEGEND, style="dim")


def _method(one: CorpusWords, method: str) -> Iterator[RenderableType]:
    place, adjusted = one.methods.index(method), one.adjusted(ALL, method)
    tested = np.nan_to_num(adjusted, nan=1.0)
    order = [at for at in np.argsort(-np.abs(one.means[0, place])).tolist() if survives(tested[[at]], USUAL_RATE)[0]]
    yield Text(f"{method}: {len(order)} of {count_text(int(one.tested(ALL).sum()), 'word')} significant")
    if not order:
        return
    number = ["examples", "mean", "from", "to", "adjusted p"]
    rows = table(["word", *number], right=number)
    for at in order[:MOST_WORDS]:
        ends = (one.means[0, place, at], one.low[0, place, at], one.high[0, place, at])
        numbers = (f"{one.counts[0, at]:,}", *(f"{end:+.4f}" for end in ends), f"{adjusted[at]:.4f}")
        rows.add_row(*map(Text, (visible(one.words[at]), *numbers)))
    yield rows


corpus = command_of(CORPUS, sections)
