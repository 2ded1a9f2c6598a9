"""What people will see is fixed when a study opens: nothing is read from the cache, or computed, afterwards."""

from __future__ import annotations

import dataclasses
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from cache.codec import CorruptEntry, decode, encode
from engine.errors import ExegesisError, UsageError
from engine.explain import explain_many
from engine.home import product_version
from engine.progress import CancelToken, Report, silent
from engine.registry import explainer
from engine.request import Example, Input, Picture, Request
from engine.result import Explanation, Prediction, Token
from engine.serialization import pack, unpack_prediction
from engine.study.choosing import Chosen, choose
from engine.study.design import PLACEBO, PREDICT, Design, check_served
from engine.study.placebo import with_placebos
from engine.study.tables import Item, Shown

_SEEN = ("tokens", "grid", "truncated")
"""What of an explanation people see besides its scores; the rest of it would tell the method."""
_SHOWN_ELSEWHERE = ("prediction", *_SEEN)


@dataclass(frozen=True)
class FrozenItem:
    """An item and its explanations, one a method of `Design.shown`, as rows that are not stored yet."""

    item: Item
    shown: tuple[Shown, ...]


@dataclass(frozen=True)
class FrozenMap:
    """One explanation as it is drawn, without a word of how it was made. `grid`: rows and columns of patches."""

    tokens: tuple[Token, ...]
    scores: Float[np.ndarray, "seq"]
    grid: tuple[int, int] | None
    truncated: int


def freeze(design: Design, report: Report = silent, cancel: CancelToken | None = None) -> list[FrozenItem]:
    """The items of a checked design in their order, predicted and explained. Errors: those of the engine."""
    check_served(design)
    chosen = choose(design, report, cancel)
    if design.mode == PREDICT:
        _check_classes(chosen[0].prediction)
    requests = [
        Request(design.model, method.id, one.input, method.params, seed=design.seed)
        for method in design.shown
        if method.id != PLACEBO
        for one in chosen
    ]
    made = explain_many(requests, report, cancel)
    by_item = with_placebos([made[place :: len(chosen)] for place in range(len(chosen))], design)
    seen = [dataclasses.replace(one, input=_as_seen(one.input, design.model)) for one in chosen]
    return [_frozen(place, one, answers) for place, (one, answers) in enumerate(zip(seen, by_item, strict=True))]


def frozen_map(shown: Shown) -> FrozenMap:
    """What was frozen. Errors: the stored bytes are not those that were."""
    try:
        if hashlib.sha256(shown.body).hexdigest() != shown.digest:
            raise CorruptEntry("its digest does not fit")
        meta, arrays = decode(shown.body)
    except CorruptEntry as error:
        raise ExegesisError(f"study: explanation {shown.id} is damaged ({error}). Restore the database.") from error
    grid = tuple(meta["grid"]) if meta["grid"] else None
    return FrozenMap(tuple(Token(*token) for token in meta["tokens"]), arrays["scores"], grid, meta["truncated"])


def frozen_input(item: Item) -> Input:
    """The text or the picture as it was. Errors: the stored picture is another."""
    if item.picture is None:
        return Example(**item.input)
    from PIL import Image

    picture = Picture(np.asarray(Image.open(io.BytesIO(item.picture))))
    if picture.digest != item.input["picture"]:
        raise ExegesisError(f"study: the picture of item {item.id} is damaged. Restore the database.")
    return picture


def frozen_prediction(item: Item) -> Prediction:
    """What the model said when the study opened."""
    return unpack_prediction(item.prediction)


def _check_classes(said: Prediction) -> None:
    if said.regression or len(said.labels) < 2:
        what = "a score" if said.regression else "one class"
        raise UsageError(
            f"design.mode: must be rank for a model that answers with {what}: there is nothing to guess from. "
            "Rank its explanations, or choose a classifier."
        )


def _as_seen(given: Input, model: str) -> Input:
    """A picture as the model sees it, cropped and resized: the patches of its explanations are patches of that."""
    if not isinstance(given, Picture):
        return given
    from engine.vision.view import read_view

    return Picture(read_view(model).transform(given.pixels))


def _frozen(place: int, chosen: Chosen, answers: Sequence[Explanation]) -> FrozenItem:
    item = Item(
        place=place,
        practice=chosen.practice,
        input=chosen.input.as_plain(),
        picture=png(chosen.input) if isinstance(chosen.input, Picture) else None,
        label=chosen.label,
        prediction=dataclasses.asdict(chosen.prediction),
    )
    return FrozenItem(item, tuple(_shown(place, answer) for place, answer in enumerate(answers)))


def _shown(place: int, answer: Explanation) -> Shown:
    meta, arrays = pack(answer)
    body = encode({name: meta[name] for name in _SEEN}, arrays)
    return Shown(place=place, body=body, provenance=_provenance(answer, meta), digest=hashlib.sha256(body).hexdigest())


def _provenance(answer: Explanation, meta: dict[str, Any]) -> dict[str, Any]:
    """How it was made: the method and its parameters, the model, its check, its cost, the version of the product."""
    made = meta.pop("provenance")
    told = {name: value for name, value in meta.items() if name not in _SHOWN_ELSEWHERE}
    scored = answer.extras.get("permuted", made)
    method = explainer(scored["method"], "text" if answer.grid is None else "image")
    return {**made, **told, "signed": method.is_signed(scored["params"]), "exegesis": product_version()}


def png(picture: Picture) -> bytes:
    """The pixels and nothing else: no file name, no time, no maker."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(picture.pixels).save(file, "PNG")
    return file.getvalue()
