"""What an attack came to, in sentences. Not escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from components.adversarial.words import OBJECTIVE_TITLES
from components.numbers import count, percent, plain, points, seconds, signed
from engine.attacks.params import PIXELS
from engine.attacks.result import Attacked

Told = tuple[str, str]
"""A name and what is said of it."""
NO_SUM = "none: a map is zero everywhere, so that it cannot be divided by its sum"


def title_of(found: Attacked) -> str:
    """How the input after this attack is called."""
    return f"After, {OBJECTIVE_TITLES[str(found.attack['objective'])].lower()}"


def lead_of(found: Attacked) -> Told:
    """What matters of it: whether the map changed, and whether the answer did."""
    name = OBJECTIVE_TITLES[str(found.attack["objective"])]
    changed, unit = round(found.rank_change * found.k), "token" if found.grid is None else "patch"
    hands = f"{changed} of the first {count(found.k, 'place')} changed hands"
    if found.k == 1:
        hands = f"{'another' if changed else 'the same'} {unit} holds the first place"
    return name, f"{hands}; {_answer(found)}"


def _answer(found: Attacked) -> str:
    if found.class_kept is None:
        return f"score {_probability(found)}"
    said = found.prediction.label if found.class_kept else found.prediction_after.labels[found.prediction_after.index]
    return f"the model {'still says' if found.class_kept else 'now says'} {said} ({_probability(found)})"


def numbers_of(found: Attacked) -> Iterator[Told]:
    """The measures of the thesis in words, and how the attack went."""
    yield "Rank change", f"{percent(found.rank_change)}: {_ranks(found)}"
    yield "Top-k sum change", f"{signed(found.top_k_sum_change)}: so much the scores of the top fell, together"
    normalised = found.top_k_sum_change_normalised
    yield (
        "Normalised sum",
        NO_SUM if normalised is None else f"{signed(normalised)}, each map divided by its sum of sizes",
    )
    yield "Score change" if found.prediction.regression else "Probability change", _probability(found)
    if found.class_kept is not None:
        yield "Class", _class(found)
    yield "Moved", _moved(found)
    yield "Run", _run(found)


def _ranks(found: Attacked) -> str:
    changed, unit = round(found.rank_change * found.k), "token" if found.grid is None else "patch"
    if found.k == 1:
        return f"{'another' if changed else 'the same'} {unit} holds the first place"
    return f"another {unit} holds {changed} of the first {found.k} places"


def _probability(found: Attacked) -> str:
    target = found.provenance.target
    if found.prediction.regression:
        return f"{plain(found.prediction.logits[target])} before, {plain(found.prediction_after.logits[target])} after"
    before, after = found.prediction.probabilities[target], found.prediction_after.probabilities[target]
    return f"{points(after - before)} points: {percent(before)} before, {percent(after)} after"


def _class(found: Attacked) -> str:
    now = found.prediction_after.labels[found.prediction_after.index]
    return f"kept: {now}" if found.class_kept else f"not kept: {now} now"


def _moved(found: Attacked) -> str:
    bound, largest = float(str(found.attack["epsilon"])), float(found.largest.max())
    what = "colour (0 to 1)" if found.attack["place"] == PIXELS else "number of an embedding"
    return f"each {what} by at most ε = {plain(bound)}; the largest moved by {plain(largest)}"


def _run(found: Attacked) -> str:
    kept = "the input as it was is kept" if found.best is None else f"step {found.best:,} is kept"
    source = "from the cache" if found.cached else seconds(found.seconds)
    return f"{count(found.steps, 'step')}, {kept}; {source}"


def notes_of(founds: Sequence[Attacked]) -> list[str]:
    """What the engine has to say, each sentence once; of which attack, where not of all."""
    told: dict[str, list[Attacked]] = {}
    for found in founds:
        for note in found.notes:
            told.setdefault(note, []).append(found)
    return [note if len(of) == len(founds) else f"{title_of(of[0])}: {note}" for note, of in told.items()]
