"""The top-k attack: gradient ascent from a small seeded change, many examples at once, each stopped on its own.

Source: the thesis, sections 2.3 and 3.5; Ghorbani, Abid and Zou (2019), Interpretation of neural networks is fragile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from engine.attacks.mapping import Aim, Found, Mapper
from engine.attacks.params import AttackParams
from engine.attacks.ranks import Ranks
from engine.attacks.trail import Trail, Trails, Watch
from engine.explain import require_finite
from engine.late import torch
from engine.models.text import as_float64
from engine.progress import check_cancelled, reporting, silent, tell

HALVED_EVERY = 200
QUIET_STEPS, QUIET = 20, 1e-5
"""So many steps of at most that size, one after the other, and the attack is over."""


@dataclass(frozen=True, eq=False)
class Ascended:
    """One item's attack: its change, and the map and the answer there; `scores` one a position, 0 at padding.

    `best`: the step that is kept, None where no step was better than to change nothing. `steps`: how many were made.
    `broken`: at which step what was no finite number; empty where all were.
    """

    item: int
    delta: Float[np.ndarray, "seq width"]
    before: Float[np.ndarray, "seq"]
    after: Float[np.ndarray, "seq"]
    logits: Float[torch.Tensor, "label"]
    best: int | None
    steps: int
    k: int
    top: tuple[int, ...]
    trail: Trail
    broken: str = ""


@dataclass(eq=False)
class _Best:
    """What is kept of each item so far."""

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
    """The attack on the items of a mapper. What ends is given out at once: who is stopped keeps what is finished."""

    mapper: Mapper
    params: AttackParams
    watch: Watch | None = None
    _broken: dict[int, str] = field(default_factory=dict)

    def run(self) -> Iterator[Ascended]:
        """An outcome an item, as they end."""
        with reporting(silent):
            self._prepare()
        active = np.arange(len(self.mapper.items))
        delta = self.mapper.space.start(self.mapper.items)
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
                yield self._outcome(int(active[place]), step if last or not fine[place] else step + 1)
            stay = np.flatnonzero(~over)
            if not len(stay):
                return
            kept = torch.from_numpy(stay).to(delta.device)
            active, delta, quiet = active[stay], moved[kept], quiet[kept]

    def _prepare(self) -> None:
        """The map of the input itself, what is attacked in it, and that nothing is changed yet."""
        mapper, items = self.mapper, self.mapper.items
        everyone = np.arange(len(items))
        nothing = torch.zeros_like(mapper.space.points)
        self.here = mapper.at(nothing, everyone)
        require_finite(mapper.model, f"scores by {mapper.method}", as_float64(self.here.scores))
        self.ks = [self.params.k_of(len(item.encoded.features)) for item in items]
        self.ranks = Ranks(items, self.here.scores, self.ks)
        self.aim = Aim(self.ranks.top(nothing.shape[1]), self.here.probability, *self._weights())
        start = torch.arange(len(items), device=nothing.device)
        value = self.aim.value(self.here, start).double()
        self.best = _Best(
            nothing, self.here.scores.clone(), self.here.logits.clone(), value, torch.full_like(start, -1)
        )
        self.trails = Trails(len(items), self.params.steps, self.watch)

    def _weights(self) -> tuple[int | float, int | float]:
        return (self.params.alpha, self.params.beta) if self.params.objective == "constrained" else (1, 0)

    def _note(self, step: int, active: np.ndarray, delta: torch.Tensor, found: Found) -> torch.Tensor:
        """Which items go on; what is known of all of them is kept, and the best of each."""
        items = torch.from_numpy(active).to(delta.device)
        value = self.aim.value(found, items).double()
        kept = self._class_kept(found, items)
        ranks = self.ranks.change(found.scores, items)
        told = torch.stack([value, ranks.double(), found.probability.double(), kept.double()], dim=1)
        self.trails.add(step, active.tolist(), as_float64(told))
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

    def _class_kept(self, found: Found, items: torch.Tensor) -> torch.Tensor:
        if self.mapper.model.regression:
            return torch.ones_like(items, dtype=torch.bool)
        return found.logits.argmax(1) == self.mapper.targets[items]

    def _stepped(self, step: int, active: np.ndarray, delta: torch.Tensor, found: Found) -> torch.Tensor:
        if found.gradient is None:  # the last point is only looked at
            return delta
        rate = self.params.learning_rate * 0.5 ** (step // HALVED_EVERY)
        slope = found.gradient.sign() if self.params.sign_steps else found.gradient
        return self.mapper.space.cut(delta + rate * slope, torch.from_numpy(active).to(delta.device))

    def _outcome(self, item: int, steps: int) -> Ascended:
        length, step = len(self.mapper.items[item].encoded), int(self.best.step[item])
        k = self.ks[item]
        return Ascended(
            item=item,
            delta=as_float64(self.best.delta[item, :length]),
            before=as_float64(self.here.scores[item, :length]),
            after=as_float64(self.best.scores[item, :length]),
            logits=self.best.logits[item],
            best=None if step < 0 else step,
            steps=steps,
            k=k,
            top=tuple(self.ranks.first[item, :k].tolist()),
            trail=self.trails.of(item),
            broken=self._broken.get(item, ""),
        )


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
