"""Items of a study: a snapshot of what people see, taken when the study opens, and functions that read it.

After the snapshot, nothing is computed or read from the cache. The placebo's scores are those of one of the study's
methods for another item, moved at random. So they look like those of a method, but they carry no information about this
item and equal no other scores on the ballot.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

import numpy as np
import sqlalchemy as sa
from jaxtyping import Float
from PIL import Image
from sqlalchemy.orm import Session, defer

from cache.codec import CorruptEntry, decode, encode
from engine.data.labels import match_classes
from engine.data.sources import ExampleSource, SourceExample, load_source
from engine.errors import ExegesisError, UsageError
from engine.explain import explain_many
from engine.home import product_version
from engine.predictions import predictions
from engine.progress import CancelToken, Report, silent
from engine.registry import explainer
from engine.request import Example, Input, Picture, Request, read_example
from engine.result import Explanation, Prediction, Token, pack, unpack_prediction
from engine.study.database import Item, ItemExplanation, study_database
from engine.study.design import COUNTERFACTUAL, DECIDE, PLACEBO, Design, check_available
from engine.study.edits import ItemEdit, choose_edits
from engine.vision.picture import read_view

MAX_CHARACTERS = 70
ELLIPSIS = "…"
BATCH = 64
"""Number of candidates that are read and predicted at a time."""
JITTER = 0.1
"""Standard deviation of the log-normal factor that changes each score of a placebo."""
_VISIBLE = ("tokens", "grid", "truncated")
"""Parts of an explanation that people see in addition to its scores. Other parts would reveal the method."""


@dataclass(frozen=True)
class ItemMap:
    """One explanation as it is drawn, without any trace of its method. `grid`: rows and columns of patches."""

    tokens: tuple[Token, ...]
    scores: Float[np.ndarray, "seq"]
    grid: tuple[int, int] | None
    truncated: int


@dataclass(frozen=True)
class ItemName:
    """Name of an item, and the model's prediction.

    `name`: such as Item 3 or Practice 1, counted separately from 1. `text`: start of the text, on one line; empty for a
    picture.
    """

    name: str
    text: str
    prediction: Prediction

    @property
    def title(self) -> str:
        """The name with the start of the text."""
        return f"{self.name}: {self.text}" if self.text else self.name


def store_items(session: Session, study: int, items: Sequence[Item]) -> None:
    """Add the rows of the items and their explanations to the database."""
    for item in items:
        item.study = study
    session.add_all(items)
    session.flush()


def study_items(session: Session, study: int) -> Sequence[Item]:
    """Return all items in order, including practice items."""
    return session.scalars(sa.select(Item).where(Item.study == study).order_by(Item.place)).all()


def count_items(session: Session, study: int) -> int:
    """Return the number of stored items, including practice items."""
    return session.scalars(sa.select(sa.func.count()).where(Item.study == study)).one()


def decode_map(explanation: ItemExplanation) -> ItemMap:
    """Decode a stored explanation. Errors: the bytes have changed."""
    try:
        if hashlib.sha256(explanation.body).hexdigest() != explanation.digest:
            raise CorruptEntry("its digest does not match")
        meta, arrays = decode(explanation.body)
    except CorruptEntry as error:
        raise ExegesisError(
            f"study: explanation {explanation.id} is damaged ({error}). Restore the database."
        ) from error
    grid = tuple(meta["grid"]) if meta["grid"] else None
    return ItemMap(tuple(Token(*token) for token in meta["tokens"]), arrays["scores"], grid, meta["truncated"])


def item_input(item: Item) -> Input:
    """Return the stored text or picture. Errors: the picture has changed."""
    if item.picture is None:
        return read_example(item.input)
    picture = Picture(np.asarray(Image.open(io.BytesIO(item.picture))))
    if picture.digest != item.input["picture"]:
        raise ExegesisError(f"study: the picture of item {item.id} is damaged. Restore the database.")
    return picture


def item_prediction(item: Item) -> Prediction:
    """Return the model's prediction at the time when the study opened."""
    return unpack_prediction(item.prediction)


def item_edit(item: Item) -> ItemEdit:
    """Return the stored edit of an item in a study of edits. Errors: it has none."""
    if item.edit is None:
        raise ExegesisError(f"study: item {item.place} has no edit. Restore the database.")
    return ItemEdit.from_json(item.edit)


def true_class(prediction: Prediction, label: str | None) -> int | None:
    """Return the index of the true class, ignoring case; None unless exactly one class of the model has its name."""
    names = [name.casefold() for name in prediction.labels]
    return names.index(label.casefold()) if label is not None and names.count(label.casefold()) == 1 else None


def encode_png(picture: Picture) -> bytes:
    """Encode only the pixels of a picture as PNG, without file name, time or author."""
    file = io.BytesIO()
    Image.fromarray(picture.pixels).save(file, "PNG")
    return file.getvalue()


def item_names(study: int) -> dict[str, ItemName]:
    """Return item names by place. Places are those in votes and files, and include practice items."""
    with study_database().reading() as session:
        query = sa.select(Item).where(Item.study == study).options(defer(Item.picture)).order_by(Item.place)
        items = session.scalars(query).all()
    numbers, names = {True: count(1), False: count(1)}, {}
    for item in items:
        name = f"{'Practice' if item.practice else 'Item'} {next(numbers[item.practice])}"
        text = "" if "picture" in item.input else text_start(read_example(item.input))
        names[str(item.place)] = ItemName(name, text, item_prediction(item))
    return names


def item_pictures(study: int) -> dict[str, Picture]:
    """Return the pictures of a study by the places of their items; empty for texts."""
    with study_database().reading() as session:
        items = session.scalars(sa.select(Item).where(Item.study == study, Item.picture.is_not(None)))
        inputs = {str(item.place): item_input(item) for item in items}
    return {place: picture for place, picture in inputs.items() if isinstance(picture, Picture)}


def text_start(example: Example) -> str:
    """Return the first characters of a text, or of a pair of texts, on one line."""
    line = " ".join(" / ".join(example.texts).split())
    return line if len(line) <= MAX_CHARACTERS else f"{line[:MAX_CHARACTERS].rstrip()}{ELLIPSIS}"


@dataclass(frozen=True)
class SelectedItem:
    """An item that is not stored yet. `index`: its index in the data set. `label`: name of its label, if known."""

    index: int
    practice: bool
    input: Input
    label: str | None
    prediction: Prediction


def take_snapshot(design: Design, report: Report = silent, cancel: CancelToken | None = None) -> list[Item]:
    """Select, predict and explain the items of a checked design. Returns rows in order, which are not stored yet.

    Each item has one explanation for each of `Design.ballot_methods`. Errors: those of the engine.
    """
    check_available(design)
    items = select_items(design, report, cancel)
    prediction = items[0].prediction
    if design.guessing and (prediction.regression or len(prediction.labels) < 2):
        what = "predicts a score" if prediction.regression else "has a single class"
        raise UsageError(
            f"design.mode: must be rank for a model that {what}, because there is nothing to guess. Rank its "
            "explanations, or choose a classifier."
        )
    if design.mode == DECIDE:
        _check_truths(design, items)
    requests = [
        Request(design.model, method.id, item.input, method.params, seed=design.seed)
        for method in design.ballot_methods
        if method.id != PLACEBO
        for item in items
    ]
    explanations = explain_many(requests, report, cancel)
    by_item = add_placebos([explanations[place :: len(items)] for place in range(len(items))], design)
    rows = [_item_row(place, item, by_item[place], design.model) for place, item in enumerate(items)]
    if design.mode == COUNTERFACTUAL:
        texts = [item.input for item in items if isinstance(item.input, Example)]
        originals = [item.prediction for item in items]
        edits = choose_edits(design.model, texts, originals, design.practice, design.seed, report, cancel)
        for row, edit in zip(rows, edits, strict=True):
            row.edit = edit.to_json()
    return rows


def _check_truths(design: Design, items: Sequence[SelectedItem]) -> None:
    """Refuse items whose true class is unknown or is not a class of the model."""
    for item in items:
        if true_class(item.prediction, item.label) is None:
            raise UsageError(
                f"design.mode: decide needs a true class for every item (one of {', '.join(item.prediction.labels)}), "
                f"but example {item.index} of {design.dataset} has {item.label or 'no label'}. Choose a data set with "
                "the classes of the model."
            )


def _item_row(place: int, selected: SelectedItem, explanations: Sequence[Explanation], model: str) -> Item:
    """Create the row of an item. A picture is stored as the model sees it, cropped and resized, as the patches are."""
    given = selected.input
    if isinstance(given, Picture):
        given = Picture(read_view(model).transform(given.pixels))
    return Item(
        place=place,
        practice=selected.practice,
        input=given.as_plain(),
        picture=encode_png(given) if isinstance(given, Picture) else None,
        label=selected.label,
        prediction=dataclasses.asdict(selected.prediction),
        explanations=[_explanation_row(method, explanation) for method, explanation in enumerate(explanations)],
    )


def _explanation_row(place: int, explanation: Explanation) -> ItemExplanation:
    """Create the row of an explanation.

    `provenance` records the method, its parameters, the model, the check, the cost and the version of Exegesis.
    """
    meta, arrays = pack(explanation)
    body = encode({name: meta.pop(name) for name in _VISIBLE}, arrays)
    del meta["prediction"]
    provenance: dict[str, Any] = meta.pop("provenance")
    source = explanation.extras.get("permuted", provenance)
    method = explainer(source["method"], explanation.kind)
    signed = method.is_signed(source["params"])
    provenance = {**provenance, **meta, "signed": signed, "exegesis": product_version()}
    return ItemExplanation(place=place, body=body, provenance=provenance, digest=hashlib.sha256(body).hexdigest())


def select_items(design: Design, report: Report = silent, cancel: CancelToken | None = None) -> list[SelectedItem]:
    """Select the items, practice items first. The same design, data set and model always give the same items.

    `design` is checked. Errors: too few examples meet the conditions; those of the data set and the model.
    """
    source = load_source(design.kind, design.dataset, design.items.split)
    candidates = read_candidates(design, source)
    if design.items.how == "hand":
        pairs = _predict(design, list(candidates), report, cancel)
        return _to_items(pairs[: design.practice], True) + _to_items(pairs[design.practice :], False)
    total = design.items.count + design.practice
    pairs = []
    while len(pairs) < total and (batch := list(islice(candidates, BATCH))):
        pairs += _judge(design, source, _predict(design, batch, report, cancel))
    if len(pairs) < total:
        raise ExegesisError(
            f"design.items: {total} are needed, including practice items, but only {len(pairs)} of the "
            f"{source.count:,} examples of {source.name} match. Use fewer items, or relax the filters."
        )
    counted, practice = pairs[: design.items.count], pairs[design.items.count : total]
    return _to_items(practice, True) + _to_items(counted, False)


def read_candidates(design: Design, source: ExampleSource) -> Iterator[SourceExample]:
    """Return the examples in the order in which they are considered.

    `items.judged` is not applied, because it needs predictions, which are computed when the study opens. Errors: an
    unknown class, or an index beyond the data set.
    """
    items = design.items
    if items.how == "hand":
        for index in items.indices:
            if index >= source.count:
                allowed = f"0 to {source.count - 1} in {source.name}"
                raise UsageError(f"design.items.indices: must be {allowed}, got {index}.")
        return (source.read(index) for index in items.indices)
    if items.how == "filter" and items.label is not None and items.label not in source.labels:
        known = ", ".join(source.labels) or "none"
        raise UsageError(f"design.items.label: must be a class of {source.name} ({known}), got {items.label!r}.")
    return _shuffled_candidates(design, source)


def _shuffled_candidates(design: Design, source: ExampleSource) -> Iterator[SourceExample]:
    """Yield examples that pass the filter, in an order drawn by the seed. Duplicate inputs are skipped."""
    inputs, label = set[Input](), design.items.label
    wanted = source.labels.index(label) if design.items.how == "filter" and label is not None else None
    for index in np.random.default_rng(design.seed).permutation(source.count):
        candidate = source.read(int(index))
        if candidate.input not in inputs and (
            design.items.how != "filter" or _passes_filter(design, candidate, wanted)
        ):
            inputs.add(candidate.input)
            yield candidate


def _passes_filter(design: Design, candidate: SourceExample, wanted: int | None) -> bool:
    """Whether an example has the wanted class and length.

    `wanted`: index of the class, or None for any. The label itself is not compared: for a prompt, it is a token.
    """
    items = design.items
    if wanted is not None and candidate.class_index != wanted:
        return False
    if not isinstance(candidate.input, Example):
        return True
    words = len(" ".join(candidate.input.texts).split())
    return items.least_words <= words and (items.most_words is None or words <= items.most_words)


def _judge(
    design: Design, source: ExampleSource, pairs: list[tuple[SourceExample, Prediction]]
) -> list[tuple[SourceExample, Prediction]]:
    """Keep only examples that the model classifies correctly, or incorrectly, if the filter says so."""
    judged = design.items.judged
    if design.items.how != "filter" or judged == "any":
        return pairs
    classes = match_classes(source.labels, pairs[0][1].labels, source.unnamed)
    if classes.indices is None:
        raise UsageError(f"design.items.judged: {classes.note} Choose 'any'.")
    return [
        (candidate, prediction)
        for candidate, prediction in pairs
        if candidate.class_index is not None
        and (truth := classes.indices[candidate.class_index]) is not None
        and (truth == prediction.index) is (judged == "right")
    ]


def _predict(
    design: Design, batch: list[SourceExample], report: Report, cancel: CancelToken | None
) -> list[tuple[SourceExample, Prediction]]:
    inputs = [candidate.input for candidate in batch]
    return list(zip(batch, predictions(design.model, inputs, report=report, cancel=cancel), strict=True))


def _to_items(pairs: Sequence[tuple[SourceExample, Prediction]], practice: bool) -> list[SelectedItem]:
    return [SelectedItem(one.index, practice, one.input, one.label, prediction) for one, prediction in pairs]


def add_placebos(by_item: Sequence[Sequence[Explanation]], design: Design) -> list[list[Explanation]]:
    """Return the explanations of each item, one for each of `Design.ballot_methods`.

    `by_item`: explanations of each item by the real methods. The method `random`, added as the placebo or listed in the
    design, is replaced by an explanation of another item, moved to this one. In a study of a single item, its own
    explanations are used.
    """
    real = [iter(explanations) for explanations in by_item]
    candidates = [
        (place, one, bool(np.ptp(one.scores[one.features])))
        for place, explanations in enumerate(by_item)
        for one in explanations
    ]
    return [
        [
            _placebo(candidates, by_item[place][0], design, place) if method.id == PLACEBO else next(real[place])
            for method in design.ballot_methods
        ]
        for place in range(len(by_item))
    ]


def _placebo(
    candidates: Sequence[tuple[int, Explanation, bool]], own: Explanation, design: Design, place: int
) -> Explanation:
    """Create a placebo. Its source and the move are drawn by the seed and the place. Special tokens get 0.

    `candidates`: place of the item, explanation, and whether its scores differ. `own`: an explanation of this item. The
    placebo has no check and no cost; its `extras` name the source of its scores.
    """
    rng = np.random.default_rng([design.seed, place])
    others = [one for one in candidates if one[0] != place] or candidates
    varied = [one for one in others if one[2]] or others
    item, source, _ = varied[int(rng.integers(len(varied)))]
    scores = np.zeros_like(own.scores)
    scores[own.features] = _move_scores(source, own, rng)
    method, random = source.provenance, explainer(PLACEBO, own.kind)
    extras = {"permuted": {"method": method.method, "params": dict(method.params), "item": item}}
    provenance = dataclasses.replace(
        own.provenance, method=PLACEBO, version=random.version, params={}, seed=design.seed
    )
    return dataclasses.replace(
        own, scores=scores, provenance=provenance, extras=extras, evaluations=0, seconds=0.0, check=None, notes=()
    )


def _move_scores(source: Explanation, own: Explanation, rng: np.random.Generator) -> Float[np.ndarray, "feature"]:
    """Move another item's scores to this item's tokens or patches: shifted, mirrored at random, and slightly changed.

    Neighbors stay neighbors, so that a picture's map stays as smooth as its method makes it.
    """
    values = source.scores[source.features]
    if own.grid is not None and source.grid == own.grid:
        values = values.reshape(own.grid)
    else:
        count = len(own.features)
        values = values[np.arange(count) * len(values) // count]
    for axis, length in enumerate(values.shape):
        values = np.roll(values, int(rng.integers(length)), axis)
        if rng.integers(2):
            values = np.flip(values, axis)
    return np.ravel(values) * np.exp(JITTER * rng.standard_normal(values.size))
