"""What an attack came to, in sentences. Not escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from components.adversarial.words import OBJECTIVE_TITLES
from components.numbers import count, percent, plain, points, seconds, signed
from engine.attacks.notes import reach_words
from engine.attacks.params import PIXELS, TOLERANCE, AttackParams
from engine.attacks.result import BROKEN, CLASS_CHANGED, FAILED, Attacked
from engine.params import from_mapping

Told = tuple[str, str]
"""A name and what is said of it."""
SIGN = "✗"
TROUBLES = {
    FAILED: f"{SIGN} Attack failed",
    CLASS_CHANGED: f"{SIGN} Class changed, not fooled",
    BROKEN: f"{SIGN} Constraint broken, not fooled",
}
"""Outcomes that do not count as fooled, with a sign, so that color is not all that tells them."""
FAILED_WORDS = (
    "the ascent left the class for good or broke off, and found nothing before. This says nothing about the map: "
    "it is not a robust one"
)
NO_SUM = "none: a map is zero everywhere, so that it cannot be divided by its sum"


def title_of(found: Attacked) -> str:
    """How the input after this attack is called."""
    return f"After, {OBJECTIVE_TITLES[str(found.attack['objective'])].lower()}"


def lead_of(found: Attacked) -> Told:
    """What matters of it: whether the map changed, and whether the answer did."""
    name = OBJECTIVE_TITLES[str(found.attack["objective"])]
    if found.outcome == FAILED:
        return name, FAILED_WORDS
    changed, unit = round(found.rank_change * found.k), "token" if found.grid is None else "patch"
    hands = f"{changed} of the first {count(found.k, 'place')} changed hands"
    if found.k == 1:
        hands = f"{'another' if changed else 'the same'} {unit} holds the first place"
    return name, f"{hands}; {_answer(found)}"


def titled_lead_of(found: Attacked) -> Told:
    """The same, with why it does not count as fooled in its name."""
    name, said = lead_of(found)
    trouble = TROUBLES.get(found.outcome)
    return (f"{name}: {trouble}" if trouble else name), said


def _answer(found: Attacked) -> str:
    if found.class_kept is None:
        return f"score {_probability(found)}" + (f"; {_broken(found)}" if found.outcome == BROKEN else "")
    if found.outcome == BROKEN:
        return f"the model still says {found.prediction.label}, but {_broken(found)}"
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
    if found.attack["objective"] != "unconstrained":
        yield "Constraint", "kept" if found.constraint_kept else f"{SIGN} broken: {_limit(found)}"
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
    return f"kept: {now}" if found.class_kept else f"{SIGN} not kept: {now} now"


def _broken(found: Attacked) -> str:
    what = "the score" if found.prediction.regression else "its probability"
    return f"{what} changed more than allowed ({_probability(found)}; {_limit(found)})"


def _limit(found: Attacked) -> str:
    """Up to which change the constraint counts as kept."""
    if found.prediction.regression:
        return f"at most {TOLERANCE:g} is allowed"
    return f"at most {100 * TOLERANCE:g} points and the same class are allowed"


def _moved(found: Attacked) -> str:
    bound, largest = float(str(found.attack["epsilon"])), float(found.largest.max())
    what = "colour (0 to 1)" if found.attack["place"] == PIXELS else "number of an embedding"
    reach = reach_words(from_mapping(AttackParams, found.attack, "attack"), found.relative_epsilon)
    more = f". {reach[0].upper()}{reach[1:]}" if reach else ""
    return f"each {what} by at most ε = {plain(bound)}; the largest moved by {plain(largest)}{more}"


def _run(found: Attacked) -> str:
    kept = "the input as it was is kept" if found.best is None else f"step {found.best:,} is kept"
    source = "from the cache" if found.cached else seconds(found.seconds)
    starts = int(str(found.attack["starts"]))
    which = f", from start {found.start + 1} of {starts}" if starts > 1 else ""
    return f"{count(found.steps, 'step')}, {kept}{which}; {source}"


def starts_words(starts: int) -> str:
    """How often each attack is made; empty where once."""
    return f" from {count(starts, 'start')} each" if starts > 1 else ""


def notes_of(founds: Sequence[Attacked]) -> list[str]:
    """What the engine has to say, each sentence once; of which attack, where not of all."""
    told: dict[str, list[Attacked]] = {}
    for found in founds:
        for note in found.notes:
            told.setdefault(note, []).append(found)
    return [note if len(of) == len(founds) else f"{title_of(of[0])}: {note}" for note, of in told.items()]
