"""Votes that count, as rankings or as guesses: from the database, by the rules of the study, or from a CSV file."""

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
"""Columns of a vote; one column per method with its rank follows."""
RANKS_COLUMN = "ranks"
"""The column of a ranking file that holds rank strings, such as `1,1,3,4`."""
LEFT_OUT_COLUMN = "left_out"
"""The column of the rule that left a vote out, if any did."""
WITHOUT = "no explanation"
"""The condition in which people see the input alone; no method has this name."""
EXCLUSION_EVENT = "left out"
"""The kind of the events that log exclusions."""


@dataclass(frozen=True)
class Ranking:
    """One vote: a rank for every method of the study.

    `ranks`: 1 is best, equal numbers are ties. `repeat` counts how often this person ranked this item before. `at`:
    the server's time in seconds since 1970. `seconds`: viewing time.
    """

    annotator: str
    item: str
    ranks: Mapping[str, int]
    repeat: int = 0
    seconds: int | float = 0.0
    at: int | float = 0.0


def ranked_methods(rankings: Sequence[Ranking]) -> tuple[str, ...]:
    """The methods that all rankings rank, in the order of the first one. Errors: a ranking of other methods."""
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
    """Rankings without repeats: a person's opinion of an item counts once."""
    return [ranking for ranking in rankings if ranking.repeat == 0]


def rank_table(rankings: Sequence[Ranking]) -> Int[np.ndarray, "ranking method"]:
    """Ranks, with columns in the order of `ranked_methods`."""
    methods = ranked_methods(rankings)
    table = [[ranking.ranks[method] for method in methods] for ranking in rankings]
    return np.array(table, dtype=int).reshape(-1, len(methods))


def read_ranks(text: str, methods: Sequence[str]) -> dict[str, int]:
    """Competition ranks from a rank string such as `1,1,3,4`: one number per method, equal numbers are ties."""
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
    """Read the rankings of a CSV file, in its order if it has no column `at`.

    Either a column `ranks` holds rank strings, for `methods` in their order, or there is one column per method as in
    our own export. Without a column `annotator` each row is another person's vote, without `item` it is on another
    item, and without `repeat` a person's further votes on an item are repeats. A row that ranks nothing ("cannot tell")
    or has something in `left_out` is skipped.
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
    """The column `at` in seconds since 1970: a number, or a time with its zone as in our own export."""
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
    """One answer. `order`: the methods from place A on. `ranks`: 1 is best; None: cannot tell, or a guess.

    `at`: the server's clock in seconds since 1970; it never runs backwards. `item`: its place in the study.
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
    """Each participant's last answer to each ballot, without practice and answers that were undone."""
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
    """Query all answers that were not undone, in order, with pseudonyms and the items' places; practice too."""
    query = sa.select(Vote, Annotator.pseudonym, Item.place).join(Annotator, Annotator.id == Vote.annotator)
    query = query.join(Item, Item.id == Vote.item).where(Vote.study == study, Vote.superseded_by.is_(None))
    return query.order_by(Vote.id)


def method_names(design: Design) -> tuple[str, ...]:
    """A name for each of `Design.ballot_methods`: the id, with a number if it occurs with other parameters too."""
    ids = [method.id for method in design.ballot_methods]
    return tuple(id if ids.count(id) == 1 else f"{id} {place + 1}" for place, id in enumerate(ids))


def to_rankings(votes: Sequence[CountedVote]) -> list[Ranking]:
    """Convert votes to rankings, without "cannot tell"."""
    return [
        Ranking(vote.annotator, vote.item, vote.ranks, vote.repeat, vote.seconds, vote.at)
        for vote in votes
        if vote.ranks is not None
    ]


@dataclass(frozen=True)
class GuessTarget:
    """The right class of an item. `obvious`: the class that people may choose without understanding the model.

    predict: right is the prediction, obvious the true class. counterfactual: right is the prediction for the edited
    text, obvious that for the original. decide: right is the true class, obvious the prediction. None: not known.
    """

    label: int
    obvious: int | None = None


@dataclass(frozen=True)
class GuessAnswer:
    """One answer. `condition`: the method whose explanation was on the ballot, or `WITHOUT`.

    `label`: the guessed class; `sure`: how sure, from 1 to 5; both None: cannot tell. `seconds`: viewing time. `repeat`
    counts how often this person saw this item before.
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
        """Whether it is the right class."""
        return self.label == self.target.label

    @property
    def explained(self) -> bool:
        return self.condition != WITHOUT

    @property
    def misleading(self) -> bool:
        """Whether the obvious class is wrong."""
        return self.target.obvious not in (None, self.target.label)


def to_guesses(votes: Sequence[CountedVote], targets: Mapping[str, GuessTarget]) -> list[GuessAnswer]:
    """Convert votes of a study of guesses, "cannot tell" too."""
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
    """The targets by the items' places."""
    with study_database().reading() as session:
        mode = session.get_one(Study, study).design["mode"]
        query = sa.select(Item).where(Item.study == study).options(defer(Item.picture))
        return {str(item.place): guess_target(item, mode) for item in session.scalars(query)}


def guess_target(item: Item, mode: str) -> GuessTarget:
    """The target of one item. Errors: what is right is not known."""
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
    """An answer that a rule excluded or, if `item` is None, all answers of a person.

    `value`: the measured value; `limit`: the limit of the rule; `votes`: the number of excluded answers.
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
        """The reason in a plain sentence."""
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
    """Apply the rules; returns the remaining votes, in their order, and the exclusions.

    Votes that were too quick are excluded first; each rule then judges people by their remaining votes.
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
    """One exclusion for each rule that this person breaks; usually none."""
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
    """The mean tau-b of one person's first and second rankings of the same items; None if nothing was repeated."""
    by_item: dict[str, dict[int, Mapping[str, int]]] = defaultdict(dict)
    for vote in votes:
        if vote.ranks is not None:
            by_item[vote.item][vote.repeat] = vote.ranks
    taus = [_kendalls_tau(ranks[0], ranks[1]) for ranks in by_item.values() if {0, 1} <= ranks.keys()]
    defined = [tau for tau in taus if tau is not None]
    return float(np.mean(defined)) if defined else None


def _kendalls_tau(first: Mapping[str, int], second: Mapping[str, int]) -> float | None:
    """Kendall's tau-b; None if a ranking ties everything and so has no order.

    Equal rankings get exactly 1. `scipy.stats.kendalltau` rounds some of them below 1, and a rule with limit 1 would
    exclude them.
    """
    pairs = list(combinations(first, 2))
    one = np.array([np.sign(first[a] - first[b]) for a, b in pairs])
    other = np.array([np.sign(second[a] - second[b]) for a, b in pairs])
    size = float(np.sqrt((one**2).sum() * (other**2).sum()))
    return float((one * other).sum()) / size if size else None


def log_exclusions(study: int, exclusions: Sequence[Exclusion]) -> None:
    """Log an event for each exclusion that is not in the study's log yet."""
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
