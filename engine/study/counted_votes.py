"""Votes that count, as rankings or guesses: read from the database or a CSV file, filtered by the study's rules."""

from __future__ import annotations

import contextlib
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import accumulate, combinations
from pathlib import Path

import numpy as np
import sqlalchemy as sa
from jaxtyping import Int
from sqlalchemy.orm import Session, defer

from engine.data.tables import read_table
from engine.errors import ExegesisError, UsageError, not_allowed, unknown
from engine.study.annotators import UnknownIdentifier
from engine.study.database import Annotator, Event, Item, JsonObject, Study, Vote, study_database
from engine.study.design import COUNTERFACTUAL, DECIDE, Design, ExclusionRules
from engine.study.items import item_edit, item_prediction, true_class
from engine.study.studies import log_event
from engine.table_io import unescape_cell

MAX_METHODS = 50
VOTE_COLUMNS = ("annotator", "item", "repeat", "seconds", "at")
"""Columns of a vote. One column per method, with its rank, follows."""
RANKS_COLUMN = "ranks"
"""Column of rank strings in a ranking file, such as `1,1,3,4`."""
LEFT_OUT_COLUMN = "left_out"
"""Column with the rule that excluded a vote, if any."""
WITHOUT = "no explanation"
"""The condition without an explanation; no method has this name."""
EXCLUSION_EVENT = "left out"
"""Kind of log events for exclusions."""


@dataclass(frozen=True)
class Ranking:
    """One vote, with a rank for every method of the study.

    `ranks`: 1 is best, equal ranks are ties. `repeat`: how often this person has ranked this item before. `at`: the
    server's time in seconds since 1970. `seconds`: viewing time.
    """

    annotator: str
    item: str
    ranks: Mapping[str, int]
    repeat: int = 0
    seconds: int | float = 0.0
    at: int | float = 0.0


def ranked_methods(rankings: Sequence[Ranking]) -> tuple[str, ...]:
    """Return the methods of the rankings, in the order of the first one. Errors: rankings differ in their methods."""
    if not rankings:
        return ()
    methods = tuple(rankings[0].ranks)
    for ranking in rankings:
        if set(ranking.ranks) != set(methods):
            raise UsageError(
                f"votes: each must rank {', '.join(methods)}, but that of {ranking.annotator} on {ranking.item} "
                f"ranks {', '.join(ranking.ranks)}. Remove incomplete votes."
            )
    return methods


def first_rankings(rankings: Sequence[Ranking]) -> list[Ranking]:
    """Return the rankings without repeats, so that a person's opinion of an item counts once."""
    return [ranking for ranking in rankings if ranking.repeat == 0]


def rank_table(rankings: Sequence[Ranking]) -> Int[np.ndarray, "ranking method"]:
    """Return the ranks as an array, with columns in the order of `ranked_methods`."""
    methods = ranked_methods(rankings)
    table = [[ranking.ranks[method] for method in methods] for ranking in rankings]
    return np.array(table, dtype=int).reshape(-1, len(methods))


def read_ranks(text: str, methods: Sequence[str]) -> dict[str, int]:
    """Parse a string such as `1,1,3,4` into competition ranks: one number per method, equal numbers are ties."""
    parts = [part.strip() for part in text.split(",")]
    valid = all(part.isascii() and part.isdigit() and len(part) < 4 and int(part) > 0 for part in parts)
    if not valid or len(parts) != len(methods):
        allowed = f"{len(methods)} comma-separated whole numbers from 1, one for each of {', '.join(methods)}"
        raise not_allowed("ranks", allowed, text, "Example: 1,1,3,4.")
    return competition_ranks(dict(zip(methods, map(int, parts), strict=True)))


def competition_ranks(ranks: Mapping[str, int]) -> dict[str, int]:
    """Convert to competition ranks: 1 + the number of strictly better methods (`1,1,3,4`)."""
    return {name: 1 + sum(other < rank for other in ranks.values()) for name, rank in ranks.items()}


def read_rankings(path: Path, methods: Sequence[str] = ()) -> list[Ranking]:
    """Read the rankings of a CSV file. Without a column `at`, the row number is the time.

    Ranks are either strings in a column `ranks`, for `methods` in their order, or one column per method as in our own
    export. Without a column `annotator` each row is a different person, without `item` each row is a different item,
    and without `repeat` a person's further votes on an item count as repeats. Rows without ranks ("cannot tell") and
    rows with a value in `left_out` are skipped.
    """
    if not path.is_file():
        raise not_allowed("FILE", "a CSV file of rankings", str(path), "Check the path.")
    rows = read_table(path)
    columns = [unescape_cell(name) for name in rows[0][1]]
    methods = _file_methods(columns, methods)
    earlier: Counter[tuple[str, str]] = Counter()
    rankings = []
    for number, (place, cells) in enumerate(rows):
        row = {unescape_cell(name): str(cell) for name, cell in cells.items()}
        if row.get(LEFT_OUT_COLUMN) or not any(row.get(name) for name in (RANKS_COLUMN, *methods)):
            continue
        ranking = _read_row(number, place, row, methods)
        repeat = earlier[ranking.annotator, ranking.item]
        rankings.append(ranking if "repeat" in columns else replace(ranking, repeat=repeat))
        earlier[ranking.annotator, ranking.item] += 1
    return rankings


def _file_methods(columns: Sequence[str], methods: Sequence[str]) -> tuple[str, ...]:
    if RANKS_COLUMN in columns:
        if len(methods) < 2:
            raise UsageError(
                "--methods: is missing. List the methods in the order of the numbers in the column 'ranks'."
            )
        return tuple(methods)
    candidates = tuple(name for name in columns if name not in (*VOTE_COLUMNS, LEFT_OUT_COLUMN))
    if missing := [name for name in methods if name not in candidates]:
        raise unknown("--methods", missing[0], candidates)
    methods = tuple(methods) or candidates
    if len(methods) < 2:
        raise UsageError(
            f"FILE: must have a column 'ranks', or a column for each of at least two methods, got {columns}."
        )
    return methods


def _read_row(number: int, place: str, row: Mapping[str, str], methods: Sequence[str]) -> Ranking:
    ranks = row.get(RANKS_COLUMN) or ",".join(row.get(name, "") for name in methods)
    try:
        return Ranking(
            annotator=unescape_cell(row.get("annotator", f"annotator {number + 1}")),
            item=unescape_cell(row.get("item", f"item {number + 1}")),
            ranks=read_ranks(ranks, methods),
            repeat=int(_read_number(row, "repeat", 0)),
            seconds=_read_number(row, "seconds", 0),
            at=_read_time(row, number),
        )
    except UsageError as error:
        raise ExegesisError(f"{place}: {error}") from None


def _read_time(row: Mapping[str, str], default: int) -> float:
    """Read the column `at` as seconds since 1970, from a number or from a time with a zone as in our own export."""
    text = row.get("at") or str(default)
    with contextlib.suppress(ValueError):
        time = datetime.fromisoformat(text)
        if time.tzinfo is not None:
            return time.timestamp()
    return _read_number({"at": text}, "at", default)


def _read_number(row: Mapping[str, str], name: str, default: int | float) -> float:
    try:
        value = float(row.get(name) or default)
    except ValueError:
        value = -1.0
    if not math.isfinite(value) or value < 0:
        raise not_allowed(name, "a number of at least 0", row[name])
    return value


@dataclass(frozen=True)
class CountedVote:
    """One answer. `order`: the methods from place A on. `ranks`: 1 is best; None for a guess and for "cannot tell".

    `at`: the server's time in seconds since 1970, never earlier than that of the answer before. `item`: the item's
    place in the study.
    """

    annotator: str
    item: str
    repeat: int
    order: tuple[str, ...]
    ranks: Mapping[str, int] | None
    guess: JsonObject | None
    seconds: float
    at: float

    @property
    def cannot_tell(self) -> bool:
        return self.ranks is None and self.guess is None


def counted_votes(study: int) -> list[CountedVote]:
    """Return each participant's last answer to each ballot, without practice and undone answers."""
    with study_database().reading() as session:
        row = session.get(Study, study)
        if row is None:
            raise UnknownIdentifier(f"study: there is no study {study}.")
        names = method_names(Design.from_json(row.design))
        rows = session.execute(current_votes(study).where(~Item.practice)).all()
    votes = []
    for (vote, annotator, place), at in zip(rows, accumulate((vote.at for vote, _, _ in rows), max), strict=True):
        order = tuple(names[method] for method in vote.order)
        ranks = None
        if vote.ranks is not None:  # in the design's order, so that no table or color depends on the first ballot
            by_name = competition_ranks(dict(zip(order, vote.ranks, strict=True)))
            ranks = {name: by_name[name] for name in names}
        votes.append(CountedVote(annotator, str(place), vote.repeat, order, ranks, vote.guess, vote.seconds, at))
    return votes


def current_votes(study: int) -> sa.Select[Vote, str, int]:
    """Query all answers that are not superseded, including practice, with pseudonyms and the places of the items."""
    query = sa.select(Vote, Annotator.pseudonym, Item.place).join(Annotator, Annotator.id == Vote.annotator)
    query = query.join(Item, Item.id == Vote.item).where(Vote.study == study, Vote.superseded_by.is_(None))
    return query.order_by(Vote.id)


def method_names(design: Design) -> tuple[str, ...]:
    """Name each of `Design.ballot_methods` by its id, plus its position (from 1) if the id occurs more than once."""
    ids = [method.id for method in design.ballot_methods]
    return tuple(id if ids.count(id) == 1 else f"{id} {place + 1}" for place, id in enumerate(ids))


def to_rankings(votes: Sequence[CountedVote]) -> list[Ranking]:
    """Convert votes to rankings. "Cannot tell" and guesses are skipped."""
    return [
        Ranking(vote.annotator, vote.item, vote.ranks, vote.repeat, vote.seconds, vote.at)
        for vote in votes
        if vote.ranks is not None
    ]


@dataclass(frozen=True)
class GuessTarget:
    """The right class of an item, and the class that people may choose without understanding the model.

    These are `label` and `obvious`; the latter is None if it is unknown. predict: the prediction and the true class.
    counterfactual: the predictions for the edited and the original text. decide: the true class and the prediction.
    """

    label: int
    obvious: int | None = None


@dataclass(frozen=True)
class GuessAnswer:
    """One answer. `condition`: the method whose explanation was on the ballot, or `WITHOUT`.

    `label`: guessed class; `sure`: sureness from 1 to 5; both None: cannot tell. `seconds`: viewing time. `repeat`: how
    often this person has seen this item before.
    """

    annotator: str
    item: str
    condition: str
    label: int | None
    sure: int | None
    target: GuessTarget
    seconds: int | float = 0.0
    repeat: int = 0

    @property
    def right(self) -> bool:
        """Whether the guess is the right class."""
        return self.label == self.target.label

    @property
    def explained(self) -> bool:
        return self.condition != WITHOUT

    @property
    def misleading(self) -> bool:
        """Whether the obvious class is wrong."""
        return self.target.obvious not in (None, self.target.label)


def to_guesses(votes: Sequence[CountedVote], targets: Mapping[str, GuessTarget]) -> list[GuessAnswer]:
    """Convert the votes of a study of guesses, including "cannot tell"."""
    return [
        GuessAnswer(
            annotator=vote.annotator,
            item=vote.item,
            condition=vote.order[0] if vote.order else WITHOUT,
            label=vote.guess["label"] if vote.guess else None,
            sure=vote.guess["sure"] if vote.guess else None,
            target=targets[vote.item],
            seconds=vote.seconds,
            repeat=vote.repeat,
        )
        for vote in votes
    ]


def guess_targets(study: int) -> dict[str, GuessTarget]:
    """Return the guess target of each item, by place."""
    with study_database().reading() as session:
        mode = session.get_one(Study, study).design["mode"]
        query = sa.select(Item).where(Item.study == study).options(defer(Item.picture))
        return {str(item.place): guess_target(item, mode) for item in session.scalars(query)}


def guess_target(item: Item, mode: str) -> GuessTarget:
    """Return the guess target of an item. Errors: the right class is unknown."""
    prediction = item_prediction(item)
    if mode == COUNTERFACTUAL:
        return GuessTarget(item_edit(item).prediction.index, prediction.index)
    truth = true_class(prediction, item.label)
    if mode != DECIDE:
        return GuessTarget(prediction.index, truth)
    if truth is None:
        raise ExegesisError(f"study: the correct class of item {item.place} is not known. Restore the database.")
    return GuessTarget(truth, prediction.index)


@dataclass(frozen=True)
class Exclusion:
    """The exclusion of one answer or, if `item` is None, of all answers of a person.

    `value`: measured value; `limit`: limit of the rule; `votes`: number of excluded answers.
    """

    rule: str
    annotator: str
    item: str | None
    repeat: int | None
    value: float
    limit: float
    votes: int

    @property
    def reason(self) -> str:
        """The reason as a sentence."""
        return _REASONS[self.rule].format(value=self.value, limit=self.limit)


_REASONS = {
    "least_seconds": "The answer took {value:.3g} seconds, less than {limit:.3g}.",
    "least_votes": "Gave {value:.0f} answers that count, fewer than {limit:.0f}.",
    "most_cannot_tell": "Chose “cannot tell” in {value:.0%} of the answers, more than {limit:.0%}.",
    "least_consistency": "Ranked repeated items with a mean Kendall's tau of {value:.2f}, below {limit:.2f}.",
}


def apply_rules(
    rules: ExclusionRules, votes: Sequence[CountedVote]
) -> tuple[tuple[CountedVote, ...], tuple[Exclusion, ...]]:
    """Apply the exclusion rules. Returns the remaining votes, in order, and the exclusions.

    Votes that took too little time are excluded first. The other rules judge people by their remaining votes.
    """
    exclusions, by_person = [], defaultdict(list)
    for vote in votes:
        if vote.seconds < rules.least_seconds:
            where = (vote.annotator, vote.item, vote.repeat)
            exclusions.append(Exclusion("least_seconds", *where, vote.seconds, rules.least_seconds, 1))
        else:
            by_person[vote.annotator].append(vote)
    remaining = [vote for vote in votes if vote.seconds >= rules.least_seconds]
    people = [exclusion for own in by_person.values() for exclusion in _exclude_person(rules, own)]
    excluded = {exclusion.annotator for exclusion in people}
    return tuple(vote for vote in remaining if vote.annotator not in excluded), (*exclusions, *people)


def _exclude_person(rules: ExclusionRules, own: Sequence[CountedVote]) -> list[Exclusion]:
    """Return an exclusion for each rule that this person breaks, usually none."""
    unsure, most = sum(vote.cannot_tell for vote in own) / len(own), rules.most_cannot_tell
    steady, least = mean_kendalls_tau(own), rules.least_consistency
    broken = {
        "least_votes": (len(own) < rules.least_votes, len(own), rules.least_votes),
        "most_cannot_tell": (most is not None and unsure > most, unsure, most),
        "least_consistency": (steady is not None and least is not None and steady < least, steady, least),
    }
    return [
        Exclusion(rule, own[0].annotator, None, None, float(value or 0), float(limit or 0), len(own))
        for rule, (is_broken, value, limit) in broken.items()
        if is_broken
    ]


def mean_kendalls_tau(votes: Sequence[CountedVote]) -> float | None:
    """Return the mean tau-b between one person's first and second rankings of items; None if none is defined."""
    by_item: dict[str, dict[int, Mapping[str, int]]] = defaultdict(dict)
    for vote in votes:
        if vote.ranks is not None:
            by_item[vote.item][vote.repeat] = vote.ranks
    taus = [_kendalls_tau(ranks[0], ranks[1]) for ranks in by_item.values() if {0, 1} <= ranks.keys()]
    defined = [tau for tau in taus if tau is not None]
    return float(np.mean(defined)) if defined else None


def _kendalls_tau(first: Mapping[str, int], second: Mapping[str, int]) -> float | None:
    """Return Kendall's tau-b, or None if a ranking ties everything and so has no order.

    Equal rankings get exactly 1. `scipy.stats.kendalltau` rounds some of them below 1, and a rule with the limit 1
    would exclude them.
    """
    pairs = list(combinations(first, 2))
    one = np.array([np.sign(first[a] - first[b]) for a, b in pairs])
    other = np.array([np.sign(second[a] - second[b]) for a, b in pairs])
    size = float(np.sqrt((one**2).sum() * (other**2).sum()))
    return float((one * other).sum()) / size if size else None


def log_exclusions(study: int, exclusions: Sequence[Exclusion]) -> None:
    """Add each exclusion that is not logged yet to the study's log."""
    with study_database().reading() as session:
        if not _unlogged(session, study, exclusions):
            return
    with study_database().writing() as session:
        session.scalars(sa.select(Study.id).where(Study.id == study).with_for_update()).one()
        for details in _unlogged(session, study, exclusions):
            log_event(session, study, EXCLUSION_EVENT, details)


def _unlogged(session: Session, study: int, exclusions: Sequence[Exclusion]) -> list[JsonObject]:
    if not exclusions:
        return []
    query = sa.select(Event.details).where(Event.study == study, Event.kind == EXCLUSION_EVENT)
    logged = session.scalars(query).all()
    return [details for details in map(asdict, exclusions) if details not in logged]
