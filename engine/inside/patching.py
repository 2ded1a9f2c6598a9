"""Activation patching and attribution patching: which activations carry the difference between two runs.

A clean and a corrupted run differ in a metric. An activation of the clean run is inserted into the corrupted run, at
one place, and the metric is measured again. The restored share is (patched - corrupted) / (clean - corrupted): 0 if the
place changes nothing, 1 if it alone restores the clean value; it can be negative or above 1. Site, corruption and
metric change the result, so each result names them. Source: Zhang and Nanda (2024), Towards best practices of
activation patching in language models, sections 2 and 3 (arXiv:2309.16042).

Attribution patching is its first-order preview, (clean - corrupted activation) times the gradient of the metric in the
corrupted run: two forward passes and one backward pass for all places. Source: Nanda (2023), Attribution patching;
Kramar et al. (2024), AtP*, eq. 3 (arXiv:2403.00745).
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float

from cache import key_for
from cache.codec import Arrays, Meta
from engine import runtime
from engine.errors import UsageError, not_allowed, unknown
from engine.explain import require_finite
from engine.format import visible_token
from engine.heads.scaling import layers_and_heads
from engine.inside.outputs import chosen_output, contrast_output, load_text_model, output_label, outputs
from engine.inside.query import InsideQuery
from engine.inside.sites import HEADS, RESIDUAL, SITES, Tap, place_count, recording, replacement, rewriting, taps
from engine.lazy import torch
from engine.models.classifier import as_float64
from engine.models.text_classifier import EncodedText
from engine.params import option
from engine.progress import report_here, reporting
from engine.request import Example
from engine.result import Check, Token
from engine.store import result_store

VERSION = 2
PREVIEW, EXACT = "attribution patching", "activation patching"
TEXT, NOISE, MEAN = "text", "noise", "mean"
CORRUPTIONS = (TEXT, NOISE, MEAN)
LOGIT_DIFFERENCE, PROBABILITY, KL = "logit_difference", "probability", "kl"
METRICS = (LOGIT_DIFFERENCE, PROBABILITY, KL)
LEAST_DIFFERENCE = 1e-4
"""Minimum change of the metric; a smaller one is rounding, and shares of it are meaningless."""
CHECK = "largest error on two known cases (patching nothing should restore 0, patching everything 1)"
CHECK_LIMITS = {"float64": 1e-6, "float32": 1e-3, "bfloat16": 0.2, "float16": 0.1}
Effects = Float[np.ndarray, "layer place"]


@dataclass(frozen=True)
class PatchQuery(InsideQuery):
    """A patching experiment.

    corrupted, corrupted_pair: the texts of the corrupted run, each of as many tokens as its clean one (corruption
    `text`); None for the clean text, but not both. tokens: positions whose embeddings are corrupted, by Gaussian noise
    of `noise` standard deviations of the embeddings (Meng et al., 2022) or by the mean embedding. contrast: the class
    that the target's logit is compared with; None for the highest other class of the corrupted run. A prompt brings its
    own target and contrast.
    """

    corrupted: str | None = None
    corruption: str = option(TEXT, "How the corrupted run differs from the clean one", choices=CORRUPTIONS)
    tokens: tuple[int, ...] = ()
    site: str = option(RESIDUAL, "The activations that are restored", choices=SITES)
    metric: str = option(LOGIT_DIFFERENCE, "What is measured", choices=METRICS)
    target: int | str | None = None
    contrast: int | str | None = None
    noise: float = option(3.0, "Standard deviations of the embeddings", low=0.1, high=20)
    seed: int = 0
    corrupted_pair: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, known in (("corruption", CORRUPTIONS), ("site", SITES), ("metric", METRICS)):
            if getattr(self, name) not in known:
                raise unknown(name, getattr(self, name), known)
        if not 0.1 <= self.noise <= 20:
            raise not_allowed("noise", "a number from 0.1 to 20", self.noise)
        if type(self.seed) is not int or self.seed < 0:
            raise not_allowed("seed", "a whole number of at least 0", self.seed)
        if self.corrupted_pair is not None and self.example.text_pair is None:
            raise UsageError("corrupted_pair: needs a clean second text. Give the text pair too.")
        if self.corruption == TEXT and not (self.corrupted or self.corrupted_pair or "").strip():
            raise UsageError("corrupted: is missing. Give a text of as many tokens as the clean one.")
        if self.corruption != TEXT and not self.tokens:
            raise UsageError(f"tokens: is empty, and the corruption '{self.corruption}' needs positions, such as 3,4.")

    @property
    def corrupted_example(self) -> Example:
        """The input of the corrupted run, before its embeddings are changed."""
        if self.corruption != TEXT:
            return self.example
        text, pair = self.corrupted or self.example.text, self.corrupted_pair or self.example.text_pair
        return dataclasses.replace(self.example, text=text, text_pair=pair)

    def key(self, kind: str) -> str:
        """Return the cache key of a result."""
        texts = ("corrupted", "corrupted_pair")
        unused = {TEXT: ("tokens", "noise", "seed"), NOISE: texts, MEAN: (*texts, "noise", "seed")}
        dropped = {"model", "example", *unused[self.corruption], *(("site",) if kind == PREVIEW else ())}
        plain = {name: value for name, value in vars(self).items() if name not in dropped}
        return self.cache_key(kind, VERSION, **plain | {"tokens": list(self.tokens) if "tokens" in plain else []})


@dataclass(frozen=True, eq=False)
class PatchPreview:
    """Both runs, and the effect of each place by attribution patching.

    clean, corrupted: the metric of each run, in logits, as a probability, or in nats. predicted, corrupted_predicted:
    the prediction of each run with its probability (for a regression head, its score). effects: by site, the estimated
    restored share, unbounded; for head outputs by layer and head, summed over positions. pass_seconds: duration of one
    run on this machine. operations: approximate number of multiplications and additions in one run.
    """

    query: PatchQuery
    revision: str
    tokens: tuple[Token, ...]
    corrupted_tokens: tuple[Token, ...]
    target: str
    contrast: str | None
    predicted: tuple[str, float]
    corrupted_predicted: tuple[str, float]
    clean: float
    corrupted: float
    effects: dict[str, Effects]
    pass_seconds: float
    operations: float

    @property
    def metric_name(self) -> str:
        """The metric with its classes, in words."""
        if self.query.metric == KL:
            return "KL divergence from the clean prediction, in nats"
        if self.contrast is None:
            return "score"
        if self.query.metric == PROBABILITY:
            return f"probability of “{visible_token(self.target)}”"
        return f"logit of “{visible_token(self.target)}” minus logit of “{visible_token(self.contrast)}”"

    @property
    def corruption_name(self) -> str:
        """The corruption, in words."""
        names = ", ".join(f"“{visible_token(self.tokens[at].text)}” ({at})" for at in self.query.tokens)
        return {
            TEXT: "another text of equal length",
            NOISE: f"Gaussian noise ({self.query.noise:g} SD, one draw, seed {self.query.seed}) on {names}",
            MEAN: f"the mean embedding in place of {names}",
        }[self.query.corruption]


@dataclass(frozen=True, eq=False)
class PatchingResult:
    """The restored share of each place of a site, with its preview.

    shares: `[layer place]`; for the residual stream, row 0 is the embedding, row `l + 1` the output of block `l`.
    """

    preview: PatchPreview
    site: str
    shares: Effects
    check: Check
    evaluations: int
    seconds: float

    @property
    def correlation(self) -> float:
        """Pearson correlation of exact shares and preview over all places; NaN if one of them is constant."""
        one, two = self.shares.ravel(), self.preview.effects[self.site].ravel()
        return float(np.corrcoef(one, two)[0, 1]) if np.ptp(one) and np.ptp(two) else math.nan


def patch_preview(query: PatchQuery) -> PatchPreview:
    """Run both runs and estimate the effect of every place of every site by attribution patching.

    Errors: texts of unequal length; unknown positions, target or contrast; a corruption that changes nothing.
    """
    query.example.check_length()
    key = query.key(PREVIEW)
    if (entry := result_store().get(key)) is None:
        with runtime.turn():
            computed = preview_of(PatchRuns(query))
        result_store().put(key, *_pack(computed))
        return computed
    return _unpack(query, *entry)


def patch_map(query: PatchQuery) -> PatchingResult:
    """Patch every place of the query's site, many places per pass. A stopped map resumes at the layer where it stopped.

    Errors: those of `patch_preview`.
    """
    preview, key = patch_preview(query), query.key(EXACT)
    if (entry := result_store().get(key)) is None:
        with runtime.turn():
            computed = map_of(PatchRuns(query), preview, key)
        meta = {"check": asdict(computed.check), "evaluations": computed.evaluations, "seconds": computed.seconds}
        result_store().put(key, meta, {"shares": computed.shares})
        return computed
    plain: dict[str, Any] = dict(entry[0])
    shares, check = np.array(entry[1]["shares"]), Check(**plain["check"])
    return PatchingResult(preview, query.site, shares, check, plain["evaluations"], plain["seconds"])


def is_patched(query: PatchQuery) -> bool:
    """Whether the exact map is in the cache."""
    return result_store().contains(query.key(EXACT))


class PatchRuns:
    """The clean and the corrupted run of a query. The caller holds the device."""

    def __init__(self, query: PatchQuery) -> None:
        self.query, self.model = query, load_text_model(query.model, query.dtype)
        self.clean = self.model.encode(query.example)
        self.corrupted = self._encode_corrupted()
        if unread := max(self.clean.truncated, self.corrupted.truncated):
            raise UsageError(f"text: has {unread:,} tokens more than {self.model.id} reads. Shorten both texts.")
        embeds = [self.model.embed(self.model.collate([one])).detach() for one in (self.clean, self.corrupted)]
        self.embeds = {"clean": embeds[0], "corrupted": self._corrupt(embeds[1])}
        with torch.inference_mode():
            clean, corrupted = self.outputs("clean"), self.outputs("corrupted")
        require_finite(self.model, "logits", as_float64(clean).sum() + as_float64(corrupted).sum())
        self.target = chosen_output(self.model, self.clean, query.target, clean)
        contrast = query.contrast or getattr(query.example, "contrast", None)
        self.contrast = contrast_output(self.model, contrast, self.target, corrupted)
        if self.contrast is None and query.metric != LOGIT_DIFFERENCE:
            raise UsageError(f"metric: must be '{LOGIT_DIFFERENCE}' for a score, got {query.metric!r}.")
        self.log_clean = torch.log_softmax(clean.double(), -1)
        self.predicted, self.corrupted_predicted = self._top(clean), self._top(corrupted)
        self.clean_value, self.corrupted_value = float(self.metric(clean)[0]), float(self.metric(corrupted)[0])
        if abs(self.clean_value - self.corrupted_value) < LEAST_DIFFERENCE:
            raise UsageError(
                f"corruption: must change the metric, but both runs have {self.clean_value:.4g}. Corrupt a word that "
                "the prediction depends on."
            )

    def _encode_corrupted(self) -> EncodedText:
        query, clean = self.query, self.clean
        if query.corruption != TEXT:
            if wrong := [at for at in query.tokens if not 0 <= at < len(clean)]:
                raise not_allowed("tokens", f"positions from 0 to {len(clean) - 1} of this text", wrong[0])
            return clean
        corrupted = self.model.encode(query.corrupted_example)
        if len(corrupted) != len(clean):
            raise UsageError(
                f"corrupted: must have as many tokens as the clean text, {len(clean)}, got {len(corrupted)}. Replace "
                f"words by words of as many tokens, or use the corruption '{NOISE}' or '{MEAN}'."
            )
        if [token.segment for token in corrupted.tokens] != [token.segment for token in clean.tokens]:
            raise UsageError(
                "corrupted: each text of the pair must have as many tokens as its clean one, and only their sum is "
                "equal. Replace words by words of as many tokens."
            )
        return corrupted

    def _corrupt(self, embeds: Float[torch.Tensor, "1 seq d_model"]) -> Float[torch.Tensor, "1 seq d_model"]:
        """Corrupt the embeddings.

        Source of the noise: Meng et al. (2022), Locating and editing factual associations in GPT, section 2.1.
        """
        query, places = self.query, list(self.query.tokens)
        if query.corruption == TEXT:
            return embeds
        changed = embeds.clone()
        if query.corruption == MEAN:
            changed[:, places] = self.model.removal_embedding(self.model.collate([self.clean]), "mean")
            return changed
        generator = torch.Generator().manual_seed(query.seed)
        normal = torch.randn((len(places), embeds.shape[-1]), generator=generator, dtype=torch.float64)
        scale = query.noise * float(self.model.embedding.weight.double().std())
        changed[:, places] += (scale * normal).to(embeds)
        return changed

    def outputs(self, run: str, embeds: torch.Tensor | None = None) -> Float[torch.Tensor, "row output"]:
        """Return the outputs of the clean or the corrupted run. `embeds`: the run's embeddings, to take gradients."""
        start = self.embeds[run] if embeds is None else embeds
        with rewriting([Tap(self.model.embedding)], lambda *_: start):
            return outputs(self.model, self.model.collate([getattr(self, run)]))

    def metric(self, logits: Float[torch.Tensor, "row output"]) -> Float[torch.Tensor, "row"]:
        """Return the metric of each row, in double precision."""
        wide = logits.double()
        if self.query.metric == KL:
            return (self.log_clean.exp() * (self.log_clean - torch.log_softmax(wide, -1))).sum(-1)
        if self.query.metric == PROBABILITY:
            return torch.softmax(wide, -1)[:, self.target]
        return wide[:, self.target] - (0.0 if self.contrast is None else wide[:, self.contrast])

    def restored(self, values: Float[np.ndarray, "row"]) -> Float[np.ndarray, "row"]:
        """Return the restored share of metric values."""
        return (values - self.corrupted_value) / (self.clean_value - self.corrupted_value)

    def _top(self, logits: Float[torch.Tensor, "1 output"]) -> tuple[str, float]:
        values = logits[0].double() if self.contrast is None else torch.softmax(logits[0].double(), -1)
        best = int(values.argmax())
        return output_label(self.model, best), float(values[best])


def preview_of(runs: PatchRuns) -> PatchPreview:
    """Run attribution patching of every site. The caller holds the device."""
    points = {site: taps(runs.model, site) for site in SITES}
    with torch.inference_mode(), contextlib.ExitStack() as stack:
        clean = {site: stack.enter_context(recording(own)) for site, own in points.items()}
        started = time.perf_counter()
        runs.outputs("clean")
        pass_seconds = time.perf_counter() - started
    with torch.enable_grad(), contextlib.ExitStack() as stack:
        corrupted = {site: stack.enter_context(recording(own)) for site, own in points.items()}
        value = runs.metric(runs.outputs("corrupted", embeds=runs.embeds["corrupted"].clone().requires_grad_()))
        slopes = torch.autograd.grad(value.sum(), [one for own in corrupted.values() for one in own])
    heads, total, effects = layers_and_heads(runs.model)[1], runs.clean_value - runs.corrupted_value, {}
    rest = iter(slopes)
    for site in SITES:
        rows = [
            as_float64((one - other.detach()) * next(rest))[0]
            for one, other in zip(clean[site], corrupted[site], strict=True)
        ]
        by_place = [row.reshape(len(row), heads, -1).sum((0, 2)) if site == HEADS else row.sum(-1) for row in rows]
        effects[site] = np.stack(by_place) / total
    require_finite(runs.model, "gradients at the patched places", sum(own.sum() for own in effects.values()))
    contrast = None if runs.contrast is None else output_label(runs.model, runs.contrast)
    return PatchPreview(
        runs.query, runs.model.revision, runs.clean.tokens, runs.corrupted.tokens,
        output_label(runs.model, runs.target), contrast, runs.predicted, runs.corrupted_predicted,
        runs.clean_value, runs.corrupted_value, effects, pass_seconds,
        2.0 * len(runs.clean) * sum(weight.numel() for weight in runs.model.blocks.parameters()),
    )  # fmt: skip


def map_of(runs: PatchRuns, preview: PatchPreview, key: str) -> PatchingResult:
    """Compute the exact map: one row per place; the first row patches nothing, one more pass restores everything.

    `key`: the cache key of the map, under which each layer is cached. The caller holds the device.
    """
    site, started = runs.query.site, time.perf_counter()
    with torch.inference_mode(), recording(taps(runs.model, site)) as clean:
        runs.outputs("clean")
    nothing, *shares = runs.restored(_patch_layers(runs, key, clean))
    everything = runs.restored(_restore_all(runs, site, clean))[0]
    check = Check(CHECK, float(max(abs(nothing), abs(everything - 1))), CHECK_LIMITS[runs.query.dtype])
    require_finite(runs.model, "restored shares", np.sum(shares))
    shape, seconds = place_count(runs.model, site, len(runs.clean)), time.perf_counter() - started
    return PatchingResult(preview, site, np.reshape(shares, shape), check, len(shares) + 5, seconds)


def _patch_layers(runs: PatchRuns, key: str, clean: list[torch.Tensor]) -> Float[np.ndarray, "row"]:
    """Return the metric with nothing patched, then with each place of each layer in turn."""
    site, model, report = runs.query.site, runs.model, report_here()
    heads, points = layers_and_heads(model)[1], taps(model, site)
    shape = place_count(model, site, len(runs.clean))
    places, size = math.prod(shape), runtime.rows_at_once(model, len(runs.clean))

    def tell_from(first: int, done: int, _: int, label: str) -> None:
        report(first + done, places + 1, label)

    def compute(layer_rows: np.ndarray, part: slice) -> np.ndarray:
        rows = layer_rows[part]
        where = (rows[:, None] == np.arange(1, places + 1)).reshape(len(rows), *shape)
        with torch.inference_mode(), rewriting(points, replacement(site, heads, where, clean)):
            # One row until the first patched layer: the replacement is broadcast to the rows that differ from there on.
            return as_float64(runs.metric(runs.outputs("corrupted")))

    values: list[np.ndarray] = []
    for layer, rows in enumerate(np.split(np.arange(places + 1), range(shape[1] + 1, places + 1, shape[1]))):
        own = key_for({"kind": "patched layer", "map": key, "layer": layer})
        if (entry := result_store().get(own)) is None:
            with reporting(partial(tell_from, int(rows[0]))):
                chunks = runtime.in_chunks(partial(compute, rows), len(rows), size)
            result_store().put(own, {}, {"metric": np.concatenate(chunks)})
            values += chunks
        else:
            values.append(np.array(entry[1]["metric"]))
    return np.concatenate(values)


def _restore_all(runs: PatchRuns, site: str, clean: list[torch.Tensor]) -> Float[np.ndarray, "1"]:
    """Return the metric of the corrupted run with the embedding and all places of the site restored."""
    entry = taps(runs.model, RESIDUAL)[:1]
    with torch.inference_mode(), recording(entry) as embedding:
        runs.outputs("clean")
    whole = np.ones((1, *place_count(runs.model, site, len(runs.clean))), dtype=bool)
    start = np.ones((1, 1, len(runs.clean)), dtype=bool)
    heads = layers_and_heads(runs.model)[1]
    with (
        torch.inference_mode(),
        rewriting(entry, replacement(RESIDUAL, heads, start, embedding)),
        rewriting(taps(runs.model, site), replacement(site, heads, whole, clean)),
    ):
        return as_float64(runs.metric(runs.outputs("corrupted")))


def preview_to_json(one: PatchPreview, site: str) -> dict[str, Any]:
    """Return the runs and the preview of one site as JSON values."""
    query = one.query
    return {
        "model": query.model, "revision": one.revision, "dtype": query.dtype, "text": query.example.text,
        "text_pair": query.example.text_pair, **({"chat": True} if getattr(query.example, "chat", False) else {}),
        "corruption": one.corruption_name,
        "corrupted_text": query.corrupted_example.text, "corrupted_text_pair": query.corrupted_example.text_pair,
        "tokens": [token.text for token in one.tokens],
        "corrupted_tokens": [token.text for token in one.corrupted_tokens],
        "predicted": list(one.predicted), "corrupted_predicted": list(one.corrupted_predicted),
        "metric": query.metric, "metric_name": one.metric_name, "target": one.target, "contrast": one.contrast,
        "clean": one.clean, "corrupted": one.corrupted, "site": site, "attribution": one.effects[site].tolist(),
    }  # fmt: skip


def map_to_json(one: PatchingResult) -> dict[str, Any]:
    """Return the whole result as JSON values."""
    correlation = one.correlation
    return {
        **preview_to_json(one.preview, one.site), "restored_share": one.shares.tolist(),
        "correlation": None if math.isnan(correlation) else correlation, "check": asdict(one.check),
        "evaluations": one.evaluations, "seconds": one.seconds,
    }  # fmt: skip


def map_rows(preview: PatchPreview, site: str, exact: PatchingResult | None) -> Iterator[dict[str, Any]]:
    """Yield a row for each place, for files. Layer -1 is the embedding; a share is None before it is computed."""
    effects = preview.effects[site]
    for row, place in np.ndindex(effects.shape):
        is_head = site == HEADS
        yield {
            "site": site, "layer": row - 1 if site == RESIDUAL else row,
            "position": None if is_head else place, "token": None if is_head else preview.tokens[place].text,
            "head": place if is_head else None,
            "restored_share": None if exact is None else float(exact.shares[row, place]),
            "attribution": float(effects[row, place]),
        }  # fmt: skip


def evaluations(preview: PatchPreview, site: str) -> int:
    """Return the number of model evaluations for the exact map."""
    return preview.effects[site].size + 5


def _pack(one: PatchPreview) -> tuple[Meta, Arrays]:
    meta = {name: value for name, value in vars(one).items() if name not in ("query", "effects")}
    for name in ("tokens", "corrupted_tokens"):
        meta[name] = [asdict(token) for token in meta[name]]
    return meta | {"predicted": list(one.predicted), "corrupted_predicted": list(one.corrupted_predicted)}, one.effects


def _unpack(query: PatchQuery, meta: Meta, arrays: Arrays) -> PatchPreview:
    plain: dict[str, Any] = dict(meta)
    for name in ("tokens", "corrupted_tokens"):
        plain[name] = tuple(Token(**token) for token in plain[name])
    for name in ("predicted", "corrupted_predicted"):
        plain[name] = tuple(plain[name])
    return PatchPreview(query, **plain, effects={site: np.array(arrays[site]) for site in SITES})
