"""The top-k attack: gradient ascent from small random changes, for a batch of examples and starts.

Source: the thesis, sections 2.3 and 3.5; Ghorbani, Abid and Zou (2019), Interpretation of neural networks is fragile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from engine.attacks.plan import TOLERANCE, AttackParams
from engine.attacks.result import Trajectory
from engine.attacks.saliency import Objective, PointValues, SaliencyMapper
from engine.explain import require_finite
from engine.lazy import torch
from engine.metrics.ranking import TIES, rank_features
from engine.models.classifier import as_float64
from engine.progress import check_cancelled, reporting, silent, tell
from engine.removal import target_values
from engine.result import predicted_class
from engine.task import TaskItem

HALVED_EVERY = 200
QUIET_STEPS, QUIET = 20, 1e-5
"""An attack ends after `QUIET_STEPS` consecutive steps of at most the size `QUIET`."""


@dataclass(frozen=True, eq=False)
class StepValues:
    """Values of a batch of examples after a step. Finished examples keep their last values.

    With several starts the values are those of the first, because the best one is known only at the end.
    """

    step: int
    steps: int
    objective: Float[np.ndarray, "example"]
    rank_change: Float[np.ndarray, "example"]
    probability: Float[np.ndarray, "example"]


OnStep = Callable[[StepValues], None]
"""Called after each step by the attacking thread; it must return quickly."""


class TrajectoryRecorder:
    """Collects the trajectories of a batch. The `starts` of an example are consecutive items."""

    def __init__(self, items: int, steps: int, on_step: OnStep | None, starts: int = 1) -> None:
        self._points: list[list[tuple[float, ...]]] = [[] for _ in range(items)]
        self._steps, self._on_step, self._starts = steps, on_step, starts

    def add(self, step: int, items: Sequence[int], values: Float[np.ndarray, "item 4"]) -> None:
        """Record the values of these items after a step; non-finite ones are dropped."""
        for item, own in zip(items, values.tolist(), strict=True):
            if np.isfinite(own).all():
                self._points[item].append((step, *own))
        if self._on_step is not None:
            self._on_step(self._step_values(step))

    def trajectory(self, item: int) -> Trajectory:
        """The trajectory of one item."""
        points = np.array(self._points[item], dtype=np.float64).reshape(-1, 5)
        return Trajectory(points[:, 0].astype(np.int64), points[:, 1], points[:, 2], points[:, 3], points[:, 4] == 1)

    def _step_values(self, step: int) -> StepValues:
        first = self._points[:: self._starts]
        last = np.array([own[-1] if own else (step, *[np.nan] * 4) for own in first])
        return StepValues(step, self._steps, last[:, 1], last[:, 2], last[:, 3])


def order_of(item: TaskItem, scores: Float[np.ndarray, "feature"]) -> Int[np.ndarray, "feature"]:
    """Order features by score, highest first. Ties are broken at random, the same way for all maps."""
    return rank_features(scores, _ties(item))


def _ties(item: TaskItem) -> tuple[int, ...]:
    return (item.seed, *item.encoded.ids.tolist())


class RankTracker:
    """Rank change of a batch of items, computed on the device."""

    def __init__(self, items: Sequence[TaskItem], before: Float[torch.Tensor, "item seq"], ks: Sequence[int]) -> None:
        self.device, width = before.device, before.shape[1]
        mixed = np.zeros((len(items), width), dtype=np.int64)
        valid = np.zeros((len(items), width), dtype=bool)
        for row, item in enumerate(items):
            features = item.encoded.features
            chance = np.random.default_rng([TIES, *_ties(item)]).permutation(len(features))
            mixed[row, : len(features)] = features[np.argsort(chance)]
            valid[row, : len(features)] = True
        self.mixed, self.valid = torch.from_numpy(mixed).to(self.device), torch.from_numpy(valid).to(self.device)
        self.most = max(ks)
        self.k = torch.tensor(ks, device=self.device)
        self.first = self._order(before, torch.arange(len(items), device=self.device))

    def top_mask(self, width: int) -> torch.Tensor:
        """Mask `[item seq]` of the attacked positions: the top k of each item."""
        marked = torch.zeros(len(self.k), width, dtype=torch.bool, device=self.device)
        # Only these: an item may have fewer features than another item's k.
        rows, places = self._within(self.k).nonzero(as_tuple=True)
        marked[rows, self.first[rows, places]] = True
        return marked

    def rank_change(self, scores: Float[torch.Tensor, "row seq"], items: torch.Tensor) -> Float[torch.Tensor, "row"]:
        """Share of the top k ranks of these items that changed."""
        k = self.k[items]
        moved = (self._order(scores, items) != self.first[items]) & self._within(k)
        return moved.sum(1) / k

    def _within(self, k: torch.Tensor) -> torch.Tensor:
        return torch.arange(self.most, device=self.device) < k[:, None]

    def _order(self, scores: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        """Positions by score. Shuffled, then sorted stably, so that ties are in random order."""
        mixed = self.mixed[items]
        values = scores.gather(1, mixed).masked_fill(~self.valid[items], -torch.inf)
        return mixed.gather(1, values.sort(dim=1, descending=True, stable=True).indices)[:, : self.most]


@dataclass(frozen=True, eq=False)
class OptimizerResult:
    """Result of one attack: the change, and the map and logits of the changed input.

    `start`: index of the best start. `step`: its best step, None if no step improved on the original input. `steps`:
    number of steps made. `failed`: see `engine.attacks.result.AttackResult`. `broken`: for each start that ended at a
    non-finite value, the step and the name of that value.
    """

    item: int
    start: int
    delta: Float[np.ndarray, "seq width"]
    before: Float[np.ndarray, "seq"]
    after: Float[np.ndarray, "seq"]
    logits: Float[torch.Tensor, "label"]
    step: int | None
    steps: int
    k: int
    top: tuple[int, ...]
    trajectory: Trajectory
    relative_epsilon: float | None
    failed: bool = False
    broken: Mapping[int, str] = field(default_factory=dict)


@dataclass(eq=False)
class _BestPoints:
    """Best point so far of each start of each item."""

    delta: torch.Tensor
    scores: torch.Tensor
    logits: torch.Tensor
    value: torch.Tensor
    step: torch.Tensor

    def update(self, better: torch.Tensor, items: torch.Tensor, delta: torch.Tensor, point: PointValues,
               value: torch.Tensor, step: int) -> None:  # fmt: skip
        """Replace the best points of the items that improved."""
        rows = items[better]
        self.delta[rows], self.scores[rows] = delta[better], point.scores[better]
        self.logits[rows], self.value[rows] = point.logits[better], value[better]
        self.step[rows] = step


@dataclass(eq=False)
class TopKOptimizer:
    """The attack on the items of a mapper. Each result is yielded when it ends, so a stopped run keeps finished ones.

    A row is one start of an item; the starts of an item are consecutive rows. The best start is the one that did not
    fail, that met its constraint, and that has the highest objective, in this order; ties go to the first.
    """

    mapper: SaliencyMapper
    params: AttackParams
    on_step: OnStep | None = None
    _broken: dict[int, str] = field(default_factory=dict)

    def run(self) -> Iterator[OptimizerResult]:
        """Yield a result per item as they end."""
        with reporting(silent):
            self._prepare()
        active = np.arange(len(self.mapper.items))
        delta = self.mapper.space.draw_starts(self.mapper.items, self.params.starts)
        ended: dict[int, int] = {}
        quiet = torch.zeros(len(active), dtype=torch.long, device=delta.device)
        for step in range(self.params.steps + 1):
            check_cancelled()
            tell(step, self.params.steps, "step")
            last = step == self.params.steps
            with reporting(silent):
                point = self.mapper.evaluate(delta, active, None if last else self.objective)
            good = self._record(step, active, delta, point)
            moved = self._take_step(step, active, delta, point)
            quiet = torch.where((moved - delta).abs().amax((1, 2)) < QUIET, quiet + 1, 0)
            fine, over = good.cpu().numpy(), (~good | (quiet >= QUIET_STEPS)).cpu().numpy() | last
            for place in np.flatnonzero(over).tolist():
                row = int(active[place])
                self.steps_made[row] = step if last or not fine[place] else step + 1
                item = row // self.params.starts
                ended[item] = ended.get(item, 0) + 1
                if ended[item] == self.params.starts:
                    yield self._outcome(item)
            stay = np.flatnonzero(~over)
            if not len(stay):
                return
            rows = torch.from_numpy(stay).to(delta.device)
            active, delta, quiet = active[stay], moved[rows], quiet[rows]

    def _prepare(self) -> None:
        """Compute the original map, the attacked features and the initial state."""
        mapper, items = self.mapper, self.mapper.items
        nothing = torch.zeros_like(mapper.space.points)
        # All rows, although the starts of an item are equal: rounding depends on the batch size.
        self.start_point = mapper.evaluate(nothing, np.arange(len(items)))
        require_finite(mapper.model, f"scores by {mapper.method}", as_float64(self.start_point.scores))
        self.predicted = torch.tensor([item.prediction.index for item in items], device=nothing.device)
        # The labels of the widest item: where it has "other tokens", other items have them too, or padding.
        self.labels = max((item.prediction.labels for item in items), key=len)
        self.ks = [self.params.k_of(len(item.encoded.features)) for item in items]
        self.ranks = RankTracker(items, self.start_point.scores, self.ks)
        params = self.params
        weights = (params.alpha, params.beta) if params.objective == "constrained" else (1, 0)
        self.objective = Objective(self.ranks.top_mask(nothing.shape[1]), self.start_point.answer, *weights)
        start = torch.arange(len(items), device=nothing.device)
        value = self.objective.value(self.start_point, start).double()
        self.best = _BestPoints(
            nothing, self.start_point.scores.clone(), self.start_point.logits.clone(), value, torch.full_like(start, -1)
        )
        self.trajectories = TrajectoryRecorder(len(items), params.steps, self.on_step, params.starts)
        self.steps_made = np.zeros(len(items), dtype=int)
        self.within = np.ones(len(items), dtype=bool)

    def _record(self, step: int, active: np.ndarray, delta: torch.Tensor, point: PointValues) -> torch.Tensor:
        """Record all rows after a step and update the best points. Returns which rows continue."""
        items = torch.from_numpy(active).to(delta.device)
        value = self.objective.value(point, items).double()
        class_kept = self._class_kept(point.logits, items)
        ranks = self.ranks.rank_change(point.scores, items)
        columns = [value, ranks.double(), point.probability.double(), class_kept.double()]
        values = as_float64(torch.stack(columns, dim=1))
        self.trajectories.add(step, active.tolist(), values)
        self.within[active] = values[:, 3] == 1
        parts = {"map": point.scores, "probability": point.probability[:, None]}
        finite = {name: part.flatten(1).isfinite().all(1) for name, part in parts.items()}
        here = finite["map"] & finite["probability"] & value.isfinite()
        eligible = here if self.params.objective == "constrained" else here & class_kept
        self.best.update(eligible & (value > self.best.value[items]), items, delta, point, value, step)
        if point.gradient is not None:
            finite["gradient of the objective"] = point.gradient.flatten(1).isfinite().all(1)
        for name, fine in finite.items():
            for item in active[~fine.cpu().numpy()].tolist():
                self._broken.setdefault(item, f"step {step}: the {name}")
        return torch.stack([here, *finite.values()]).all(0)

    def _class_kept(self, logits: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        """Whether the predicted class is the original one, whichever class is explained."""
        if self.mapper.model.regression:
            return torch.ones_like(items, dtype=torch.bool)
        kept: torch.Tensor = predicted_class(logits, self.labels) == self.predicted[items]
        return kept

    def _take_step(self, step: int, active: np.ndarray, delta: torch.Tensor, point: PointValues) -> torch.Tensor:
        if point.gradient is None:  # no gradient at the last point
            return delta
        rate = self.params.learning_rate * 0.5 ** (step // HALVED_EVERY)
        slope = point.gradient.sign() if self.params.sign_steps else point.gradient
        return self.mapper.space.clip(delta + rate * slope, torch.from_numpy(active).to(delta.device))

    def _outcome(self, item: int) -> OptimizerResult:
        """The result of the best start of an item."""
        starts = self.params.starts
        rows = range(item * starts, (item + 1) * starts)
        row = max(rows, key=lambda at: (not self._failed(at), self._constraint_kept(at), float(self.best.value[at])))
        length, step = len(self.mapper.items[row].encoded), int(self.best.step[row])
        return OptimizerResult(
            item=item,
            start=row - rows.start,
            delta=as_float64(self.best.delta[row, :length]),
            before=as_float64(self.start_point.scores[row, :length]),
            after=as_float64(self.best.scores[row, :length]),
            logits=self.best.logits[row],
            step=None if step < 0 else step,
            steps=int(self.steps_made[row]),
            k=self.ks[row],
            top=tuple(self.ranks.first[row, : self.ks[row]].tolist()),
            trajectory=self.trajectories.trajectory(row),
            relative_epsilon=self.mapper.space.relative_epsilon(row, self.mapper.items[row], self.params),
            failed=self._failed(row),
            broken={at: self._broken[one] for at, one in enumerate(rows) if one in self._broken},
        )

    def _failed(self, row: int) -> bool:
        """Whether no step improved and the search ended in another class or at a non-finite value."""
        return int(self.best.step[row]) <= 0 and (not self.within[row] or row in self._broken)

    def _constraint_kept(self, row: int) -> bool:
        """Whether the best point keeps the class and, if constrained, the probability."""
        rows = torch.tensor([row], device=self.best.logits.device)
        logits = self.best.logits[rows]
        after = target_values(self.mapper.model, logits, self.mapper.targets[rows])
        moved = float((after - self.start_point.probability[rows]).abs())
        return (self.params.objective == "unconstrained" or moved <= TOLERANCE) and bool(self._class_kept(logits, rows))


def group_by_length(lengths: Sequence[int], most: int, waste: float = 0.2) -> list[list[int]]:
    """Group inputs into batches of at most `most`, with at most the share `waste` of padding."""
    groups: list[list[int]] = []
    for place in sorted(range(len(lengths)), key=lambda at: lengths[at]):
        group = groups[-1] if groups else []
        real = sum(lengths[at] for at in group) + lengths[place]
        if not group or len(group) == most or lengths[place] * (len(group) + 1) * (1 - waste) > real:
            groups.append([])
        groups[-1].append(place)
    return groups
