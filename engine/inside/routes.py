"""Information flow routes: which tokens and heads write to the positions that the prediction is read from.

After attention, position i of the residual stream is a sum: the stream before it, and for each head and position j the
vector that the head moves from j to i. The importance of a term z in the sum y is its proximity,
max(0, |y|_1 - |y - z|_1), as a share of the proximities of all terms. So one forward pass gives every edge of a graph
from the prediction back to the input, and edges below a threshold are pruned top-down. Source: Ferrando and Voita
(2024), Information flow routes, sections 2.1 and 2.2 (arXiv:2403.00824).

Biases of the output projection come from no position and are left out. The MLP reads only its own position, so it moves
nothing between positions; its share in the next sum is separate. If a norm follows each sum (BERT), proximity is
computed before the norm. Shares have no sign: they show where the stream was written from, not for which class.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from cache.codec import Arrays, Meta
from engine import runtime
from engine.data.sources import SourceExample
from engine.errors import Cancelled, ExegesisError, not_allowed, one_line
from engine.experiments.sample import draw_sample
from engine.explain import require_finite
from engine.explainers.attention import pooled_rows
from engine.heads.flow import AttentionFlow, FlowEdge, PrunedFlow
from engine.heads.readings import require_attention
from engine.inside.outputs import chosen_output, load_text_model, output_label, outputs
from engine.inside.query import InsideQuery
from engine.inside.sites import ATTENTION, MLP, RESIDUAL, Tap, block_parts, is_parallel, recording, taps
from engine.lazy import torch
from engine.models.attention import capture_attention
from engine.models.classifier import as_float64
from engine.models.text_classifier import TextClassifier
from engine.progress import check_cancelled, report_here
from engine.request import DTYPES, Example
from engine.result import Check, Token
from engine.store import result_store

VERSION = 2
KIND = "routes"
CHECK = "largest relative difference between the attention output and the sum of all heads' contributions and the bias"
CHECK_LIMITS = {"float64": 1e-6, "float32": 1e-4, "bfloat16": 5e-2, "float16": 1e-2}
NUMBERS_AT_ONCE = 1 << 24
"""Maximum number of values of terms that are held in memory at once."""
MOST_EXAMPLES = 1000

Layers = Float[np.ndarray, "layer target source"]


@dataclass(frozen=True)
class RoutesQuery(InsideQuery):
    """A query for the routes of one input."""

    @property
    def key(self) -> str:
        """The cache key."""
        return self.cache_key("information flow routes", VERSION)


@dataclass(frozen=True, eq=False)
class InformationRoutes:
    """The importance of every edge.

    edges: `[layer target source]`, summed over heads; the diagonal includes what stays in place. Rows sum to 1.
    heads: `[layer head target]`, the share of a head in the sum at each position. mlp: the share of the MLP in the next
    sum. reads: the share of each position in what the prediction is read from.
    """

    model: str
    revision: str
    tokens: tuple[Token, ...]
    predicted: str
    probability: float
    edges: Layers
    heads: Float[np.ndarray, "layer head target"]
    mlp: Float[np.ndarray, "layer target"]
    reads: Float[np.ndarray, "position"]
    check: Check

    @property
    def flow(self) -> AttentionFlow:
        """The graph: the share of the prediction that passes through each position at each depth."""
        nodes = [self.reads]
        for layer in reversed(self.edges):
            nodes.append(nodes[-1] @ layer)
        return AttentionFlow(KIND, self.edges, self.reads, np.stack(nodes[::-1]))

    @property
    def head_shares(self) -> Float[np.ndarray, "layer head"]:
        """The share of the prediction that each head moves: its share at each position, weighted by the flow there.

        From 0 to 1; the heads of a layer and what stays in place sum to 1.
        """
        shares: np.ndarray = np.einsum("lht,lt->lh", self.heads, self.flow.nodes[1:])
        return shares


@dataclass(frozen=True, eq=False)
class HeadImportance:
    """The mean share of the prediction that each head moves, over examples of a data set.

    error: the standard error of the mean; NaN for a single example. failed: number of failed examples by reason.
    """

    model: str
    dataset: str
    seed: int
    examples: int
    mean: Float[np.ndarray, "layer head"]
    error: Float[np.ndarray, "layer head"]
    failed: dict[str, int]


def information_routes(query: RoutesQuery) -> InformationRoutes:
    """Compute the routes of one input. Errors: a model whose attention output is not a sum over heads."""
    query.example.check_length()
    if (entry := result_store().get(query.key)) is not None:
        return _unpack(*entry)
    with runtime.turn():
        computed = _routes(query)
    result_store().put(query.key, *_pack(computed))
    return computed


def prune_edges(
    flow: AttentionFlow, threshold: int | float, most: int, reached: Bool[np.ndarray, "position"] | None = None
) -> PrunedFlow:
    """Return edges of at least `threshold` importance, top-down from the prediction (algorithm 1 of the source).

    `most`: maximum number of edges, those that carry most of the prediction first. `reached`: the positions at the top,
    by default those that the prediction reads.
    """
    if not 0 <= threshold <= 1:
        raise not_allowed("threshold", "a number from 0 to 1", threshold)
    passing, here = np.zeros(flow.weights.shape, dtype=bool), flow.reads > 0 if reached is None else reached
    for layer in reversed(range(len(passing))):
        passing[layer] = (flow.weights[layer] >= threshold) & (flow.weights[layer] > 0) & here[:, None]
        here = passing[layer].any(0)
    carried = flow.reads
    for weights, own in zip(flow.weights[::-1], passing[::-1], strict=True):
        carried = carried @ np.where(own, weights, 0)
    places = np.argwhere(passing)
    order = np.argsort(-flow.edges[passing], kind="stable")[:most]
    edges = tuple(
        FlowEdge(layer, source, target, float(flow.weights[layer, target, source]),
                 float(flow.edges[layer, target, source]))
        for layer, target, source in places[order].tolist()
    )  # fmt: skip
    return PrunedFlow(edges, float(carried.sum()), len(places) - len(edges))


def _routes(query: RoutesQuery) -> InformationRoutes:
    model = load_text_model(query.model, query.dtype)
    parts = block_parts(model)
    if parts.attention != parts.projection:
        raise ExegesisError(
            f"model {model.id}: its blocks normalize the attention output before they add it, so it is no sum over "
            "heads. Use a model of another family, such as Llama."
        )
    encoded = model.encode(query.example)
    middles = [Tap(block.get_submodule(parts.middle), before=True) for block in model.blocks] if parts.middle else []
    with (
        torch.inference_mode(), capture_attention(model.module) as recorder,
        recording(taps(model, RESIDUAL)) as stream, recording(taps(model, ATTENTION)) as attended,
        recording(taps(model, MLP)) as written, recording(middles) as middle,
    ):  # fmt: skip
        logits = outputs(model, model.collate([encoded]))
    require_attention(model, len(recorder.probabilities))
    require_finite(model, "logits", as_float64(logits).sum())
    edges, heads, mlp, gaps = [], [], [], []
    for layer in range(len(model.blocks)):
        check_cancelled()
        before, added, more = stream[layer][0], attended[layer][0], written[layer][0]
        own = _attention_terms(model, layer, recorder.probabilities[layer][0], recorder.values[layer][0])
        total = before + added + more if is_parallel(model) else before + added
        moved, stays, gap = _proximities(before, total, added, *own)
        fed = _proximity(total, more).cpu().numpy() if is_parallel(model) else 0.0
        whole = moved.sum((0, 2)) + stays + fed
        # If no term is near the sum (they cancel each other), the position counts as unchanged.
        stays, whole = np.where(whole > 0, stays, 1.0), np.where(whole > 0, whole, 1.0)
        edges.append(moved.sum(0) / whole[:, None] + np.diag((stays + fed) / whole))
        heads.append(moved.sum(2) / whole)
        mlp.append(_mlp_share(middle[layer][0] if middle else total, more, fed / whole if is_parallel(model) else None))
        gaps.append(gap)
    predicted = chosen_output(model, encoded, None, logits)
    value = as_float64(logits if model.regression else torch.softmax(logits.double(), -1))[0, predicted]
    return InformationRoutes(
        query.model, model.revision, encoded.tokens, output_label(model, predicted), float(value), np.stack(edges),
        np.stack(heads), np.stack(mlp), as_float64(pooled_rows(model.adapter, model.collate([encoded]))[0]),
        Check(CHECK, max(gaps), CHECK_LIMITS[query.dtype]),
    )  # fmt: skip


def _attention_terms(
    model: TextClassifier, layer: int, attention: torch.Tensor, values: torch.Tensor
) -> tuple[Float[torch.Tensor, "head query key"], Float[torch.Tensor, "head key d_model"]]:
    """Return each head's attention, and the vectors that it moves: values through its part of the projection."""
    projection: Any = model.blocks[layer].get_submodule(block_parts(model).projection)
    # The Conv1D of GPT-2 is transposed.
    weight = projection.weight if isinstance(projection, torch.nn.Linear) else projection.weight.T
    by_head = weight.reshape(weight.shape[0], len(values), -1)  # [d_model head d_head]
    return attention, torch.einsum("hkd,mhd->hkm", values, by_head)


def _proximities(
    before: Float[torch.Tensor, "seq d_model"],
    total: Float[torch.Tensor, "seq d_model"],
    added: Float[torch.Tensor, "seq d_model"],
    attention: Float[torch.Tensor, "head query key"],
    moved: Float[torch.Tensor, "head key d_model"],
) -> tuple[Float[np.ndarray, "head query key"], Float[np.ndarray, "query"], float]:
    """Return the proximity of each moved vector and of the stream before, and the gap to the attention output.

    The gap is the relative difference between the attention output and the sum of the terms and the bias.
    """
    size = max(1, NUMBERS_AT_ONCE // moved.numel())
    parts, sums = [], []
    for start in range(0, len(total), size):
        terms = attention[:, start : start + size, :, None] * moved[:, None]
        parts.append(_proximity(total[None, start : start + size, None], terms))
        sums.append(terms.sum((0, 2)))
    # The bias of the projection is the same at all positions.
    rest = added - torch.cat(sums)
    gap = float((rest - rest.mean(0)).abs().max() / added.abs().max().clamp(min=1e-6))
    return torch.cat(parts, 1).double().cpu().numpy(), _proximity(total, before).double().cpu().numpy(), gap


def _proximity(total: torch.Tensor, term: torch.Tensor) -> torch.Tensor:
    """Compute max(0, |y|_1 - |y - z|_1), equation 3 of the source."""
    return (total.abs().sum(-1) - (total - term).abs().sum(-1)).clamp(min=0)


def _mlp_share(
    middle: torch.Tensor, more: torch.Tensor, parallel: Float[np.ndarray, "query"] | None
) -> Float[np.ndarray, "query"]:
    if parallel is not None:
        return parallel
    total = middle + more
    fed, stays = (_proximity(total, one).double().cpu().numpy() for one in (more, middle))
    share: np.ndarray = fed / np.maximum(fed + stays, 1e-12)
    return share


def head_importance(
    model: str, dataset: str, examples: int = 50, seed: int = 0, split: str | None = None, dtype: str = DTYPES[0]
) -> HeadImportance:
    """Return the mean share of each head over examples drawn by the seed. The routes of each example are cached.

    Errors: those of reading the data set; no example whose routes can be computed.
    """
    if not 1 <= examples <= MOST_EXAMPLES:
        raise not_allowed("examples", f"a whole number from 1 to {MOST_EXAMPLES:,}", examples)
    report, sample = report_here(), draw_sample(Example.kind, dataset, split, examples, seed)
    shares: list[np.ndarray] = []
    failed: Counter[str] = Counter()
    for done, index in enumerate(sample.indices):
        check_cancelled()
        report(done, len(sample.indices), "examples")
        [one] = sample.read([index])
        try:
            if not isinstance(one, SourceExample) or not isinstance(one.input, Example):
                raise ExegesisError(getattr(one, "why", "not a text"))
            shares.append(information_routes(RoutesQuery(model, one.input, dtype=dtype)).head_shares)
        except Cancelled:
            raise
        except ExegesisError as problem:
            failed[one_line(problem)] += 1
    report(len(sample.indices), len(sample.indices), "examples")
    if not shares:
        raise ExegesisError(f"{next(iter(failed))} None of the {len(sample.indices)} examples could be read.")
    error = np.std(shares, 0, ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else np.full(shares[0].shape, np.nan)
    return HeadImportance(model, dataset, seed, len(shares), np.mean(shares, 0), error, dict(failed))


def routes_to_json(one: InformationRoutes, threshold: float) -> dict[str, Any]:
    """Return the graph above the threshold, and the shares of heads and MLPs, as JSON values."""
    pruned = prune_edges(one.flow, threshold, one.edges.size)
    return {
        "model": one.model, "revision": one.revision, "tokens": [token.text for token in one.tokens],
        "predicted": one.predicted, "probability": one.probability, "threshold": threshold,
        "edges": [asdict(edge) for edge in pruned.edges], "carried": pruned.carried,
        "head_shares": one.head_shares.tolist(), "mlp_shares": one.mlp.tolist(), "check": asdict(one.check),
    }  # fmt: skip


def importance_to_json(one: HeadImportance) -> dict[str, Any]:
    """Return the means and their errors as JSON values."""
    errors = [[None if np.isnan(value) else value for value in row] for row in one.error.tolist()]
    return {**vars(one), "mean": one.mean.tolist(), "error": errors}


def _pack(one: InformationRoutes) -> tuple[Meta, Arrays]:
    meta = {name: value for name, value in vars(one).items() if not isinstance(value, np.ndarray)}
    meta |= {"tokens": [asdict(token) for token in one.tokens], "check": asdict(one.check)}
    return meta, {name: value for name, value in vars(one).items() if isinstance(value, np.ndarray)}


def _unpack(meta: Meta, arrays: Arrays) -> InformationRoutes:
    plain: dict[str, Any] = dict(meta)
    plain |= {"tokens": tuple(Token(**token) for token in plain["tokens"]), "check": Check(**plain["check"])}
    return InformationRoutes(**plain | {name: np.array(own) for name, own in arrays.items()})
