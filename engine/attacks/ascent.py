"""The top-k attack: gradient ascent from small seeded changes, many examples at once, each start stopped on its own.

Source: the thesis, sections 2.3 and 3.5; Ghorbani, Abid and Zou (2019), Interpretation of neural networks is fragile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from engine.attacks.mapping import Aim, Found, Mapper
from engine.attacks.params import TOLERANCE, AttackParams
from engine.attacks.ranks import Ranks
from engine.attacks.trail import Trail, Trails, Watch
from engine.explain import require_finite
from engine.lazy import torch
from engine.models.classifier import as_float64
from engine.progress import check_cancelled, reporting, silent, tell
from engine.removal import target_values

HALVED_EVERY = 200
QUIET_STEPS, QUIET = 20, 1e-5
"""So many steps of at most that size, one after the other, and the attack is over."""


@dataclass(frozen=True, eq=False)
class Ascended:
    """One item's attack: its change, and the map and the answer there; `scores` one a position, 0 at padding.

    `start`: which one is kept, from 0. `best`: its step that is kept, None where no step was better than to change
    nothing. `steps`: how many it made. `failed`: nothing was found, since the class was left for good or what was no
    finite number ended it; that says nothing about the map. `broken`: by start, at which step what was no finite
    number; empty where all were.
    """

    item: int
    start: int
    delta: Float[np.ndarray, "seq width"]
    before: Float[np.ndarray, "seq"]
    after: Float[np.ndarray, "seq"]
    logits: Float[torch.Tensor, "label"]
    best: int | None
    steps: int
    k: int
    top: tuple[int, ...]
    trail: Trail
    relative_epsilon: float | None
    failed: bool = False
    broken: Mapping[int, str] = field(default_factory=dict)


@dataclass(eq=False)
class _Best:
    """What is kept of each start of each item so far."""

    delta: torch.Tensor
    scores: torch.Tensor
    logits: torch.Tensor
    value: torch.Tensor
    step: torch.Tensor

    def update(self, better: torch.Tensor, items: torch.Tensor, delta: torch.Tensor, found: Found,
               value: torch.Tensor, step: int) -> None:  # fmt: skip
        """These items are better off here."""
        mine = items[better]
        self.delta[mine], self.scores[mine] = delta[better], found.scores[better]
        self.logits[mine], self.value[mine] = found.logits[better], value[better]
        self.step[mine] = step


@dataclass(eq=False)
class Ascent:
    """The attack on the items of a mapper. What ends is given out at once: who is stopped keeps what is finished.

    A row is a start of an item; the starts of one stand one after the other. Kept is the start that did not fail, that
    kept its constraint, and whose objective is the highest, in this order; of equals the first.
    """

    mapper: Mapper
    params: AttackParams
    watch: Watch | None = None
    _broken: dict[int, str] = field(default_factory=dict)

    def run(self) -> Iterator[Ascended]:
        """An outcome an item, as they end."""
        with reporting(silent):
            self._prepare()
        active = np.arange(len(self.mapper.items))
        delta = self.mapper.space.start(self.mapper.items, self.params.starts)
        ended: dict[int, int] = {}
        quiet = torch.zeros(len(active), dtype=torch.long, device=delta.device)
        for step in range(self.params.steps + 1):
            check_cancelled()
            tell(step, self.params.steps, "step")
            last = step == self.params.steps
            with reporting(silent):
                found = self.mapper.at(delta, active, None if last else self.aim)
            good = self._note(step, active, delta, found)
            moved = self._stepped(step, active, delta, found)
            quiet = torch.where((moved - delta).abs().amax((1, 2)) < QUIET, quiet + 1, 0)
            fine, over = good.cpu().numpy(), (~good | (quiet >= QUIET_STEPS)).cpu().numpy() | last
            for place in np.flatnonzero(over).tolist():
                row = int(active[place])
                self.made[row] = step if last or not fine[place] else step + 1
                item = row // self.params.starts
                ended[item] = ended.get(item, 0) + 1
                if ended[item] == self.params.starts:
                    yield self._outcome(item)
            stay = np.flatnonzero(~over)
            if not len(stay):
                return
            kept = torch.from_numpy(stay).to(delta.device)
            active, delta, quiet = active[stay], moved[kept], quiet[kept]

    def _prepare(self) -> None:
        """The map of the input itself, what is attacked in it, and that nothing is changed yet."""
        mapper, items = self.mapper, self.mapper.items
        nothing = torch.zeros_like(mapper.space.points)
        # All rows, though the starts of an item are alike: in a batch of another size rounding differs.
        self.here = mapper.at(nothing, np.arange(len(items)))
        require_finite(mapper.model, f"scores by {mapper.method}", as_float64(self.here.scores))
        self.ks = [self.params.k_of(len(item.encoded.features)) for item in items]
        self.ranks = Ranks(items, self.here.scores, self.ks)
        self.aim = Aim(self.ranks.top(nothing.shape[1]), self.here.answer, *self._weights())
        start = torch.arange(len(items), device=nothing.device)
        value = self.aim.value(self.here, start).double()
        self.best = _Best(
            nothing, self.here.scores.clone(), self.here.logits.clone(), value, torch.full_like(start, -1)
        )
        self.trails = Trails(len(items), self.params.steps, self.watch, self.params.starts)
        self.made = np.zeros(len(items), dtype=int)
        self.within = np.ones(len(items), dtype=bool)

    def _weights(self) -> tuple[int | float, int | float]:
        return (self.params.alpha, self.params.beta) if self.params.objective == "constrained" else (1, 0)

    def _note(self, step: int, active: np.ndarray, delta: torch.Tensor, found: Found) -> torch.Tensor:
        """Which items go on; what is known of all of them is kept, and the best of each."""
        items = torch.from_numpy(active).to(delta.device)
        value = self.aim.value(found, items).double()
        kept = self._class_kept(found.logits, items)
        ranks = self.ranks.change(found.scores, items)
        told = as_float64(torch.stack([value, ranks.double(), found.probability.double(), kept.double()], dim=1))
        self.trails.add(step, active.tolist(), told)
        self.within[active] = told[:, 3] == 1
        parts = {"map": found.scores, "probability": found.probability[:, None]}
        finite = {name: part.flatten(1).isfinite().all(1) for name, part in parts.items()}
        here = finite["map"] & finite["probability"] & value.isfinite()
        eligible = here if self.params.objective == "constrained" else here & kept
        self.best.update(eligible & (value > self.best.value[items]), items, delta, found, value, step)
        if found.gradient is not None:
            finite["gradient of the objective"] = found.gradient.flatten(1).isfinite().all(1)
        for name, fine in finite.items():
            for item in active[~fine.cpu().numpy()].tolist():
                self._broken.setdefault(item, f"step {step}: the {name}")
        return torch.stack([here, *finite.values()]).all(0)

    def _class_kept(self, logits: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        if self.mapper.model.regression:
            return torch.ones_like(items, dtype=torch.bool)
        return logits.argmax(1) == self.mapper.targets[items]

    def _stepped(self, step: int, active: np.ndarray, delta: torch.Tensor, found: Found) -> torch.Tensor:
        if found.gradient is None:  # the last point is only looked at
            return delta
        rate = self.params.learning_rate * 0.5 ** (step // HALVED_EVERY)
        slope = found.gradient.sign() if self.params.sign_steps else found.gradient
        return self.mapper.space.cut(delta + rate * slope, torch.from_numpy(active).to(delta.device))

    def _outcome(self, item: int) -> Ascended:
        """The best start of an item."""
        starts = self.params.starts
        rows = range(item * starts, (item + 1) * starts)
        row = max(rows, key=lambda at: (not self._failed(at), self._constraint_kept(at), float(self.best.value[at])))
        length, step = len(self.mapper.items[row].encoded), int(self.best.step[row])
        return Ascended(
            item=item,
            start=row - rows.start,
            delta=as_float64(self.best.delta[row, :length]),
            before=as_float64(self.here.scores[row, :length]),
            after=as_float64(self.best.scores[row, :length]),
            logits=self.best.logits[row],
            best=None if step < 0 else step,
            steps=int(self.made[row]),
            k=self.ks[row],
            top=tuple(self.ranks.first[row, : self.ks[row]].tolist()),
            trail=self.trails.of(row),
            relative_epsilon=self.mapper.space.relative(row, self.mapper.items[row], self.params),
            failed=self._failed(row),
            broken={at: self._broken[one] for at, one in enumerate(rows) if one in self._broken},
        )

    def _failed(self, row: int) -> bool:
        """Whether nothing beyond the draw itself is kept of an ascent that ended in another class or broke off."""
        return int(self.best.step[row]) <= 0 and (not self.within[row] or row in self._broken)

    def _constraint_kept(self, row: int) -> bool:
        """Whether what is kept has the class and, constrained, the probability of before."""
        rows = torch.tensor([row], device=self.best.logits.device)
        logits = self.best.logits[rows]
        after = target_values(self.mapper.model, logits, self.mapper.targets[rows])
        moved = float((after - self.here.probability[rows]).abs())
        return (self.params.objective == "unconstrained" or moved <= TOLERANCE) and bool(self._class_kept(logits, rows))


def like_lengths(lengths: Sequence[int], most: int, waste: float = 0.2) -> list[list[int]]:
    """Places of inputs that are attacked together: at most so many, and at most that share of a pass is padding."""
    groups: list[list[int]] = []
    for place in sorted(range(len(lengths)), key=lambda at: lengths[at]):
        group = groups[-1] if groups else []
        real = sum(lengths[at] for at in group) + lengths[place]
        if not group or len(group) == most or lengths[place] * (len(group) + 1) * (1 - waste) > real:
            groups.append([])
        groups[-1].append(place)
    return groups
