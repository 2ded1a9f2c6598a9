"""The thesis's fine-tunings: each model on each data set by the recipe of section 3.6.3, once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.progress import Report, silent, token_here
from engine.reproduction.asked import Asked, Player, experiments
from engine.reproduction.marked_sst import write_marked
from engine.reproduction.scales import MARKED_SST, scale_of

if TYPE_CHECKING:
    from engine.training.config import TrainConfig


@dataclass(frozen=True)
class FineTuning:
    """A model that is still to be made: what `exegesis train` is told. `source`: of the marked reviews."""

    name: str
    base: str
    dataset: str
    out: str
    source: str = ""

    @property
    def config(self) -> TrainConfig:
        """The defaults of `exegesis train` are the thesis's recipe."""
        from engine.training.config import TrainConfig

        return TrainConfig(base=self.base, dataset=self.dataset, out=self.out)

    def run(self, report: Report = silent) -> None:
        """Goes on from its checkpoint where it was stopped. Errors: those of the base, the data set, the training."""
        from engine.training.finetuning import train

        if self.source:
            write_marked(self.source, Path(self.dataset))
        train(self.config, report, token_here())


def to_do(asked: Asked) -> tuple[FineTuning, ...]:
    """The fine-tunings that the chosen claims need and that are not there."""
    if not scale_of(asked.scale).trains:
        return ()
    players = (player for experiment in experiments(asked) for player in experiment.players)
    return tuple(dict.fromkeys(_fine_tuning(asked, player) for player in players if not player.there))


def _fine_tuning(asked: Asked, player: Player) -> FineTuning:
    where, name = asked.where, player.data.dataset
    base = where.base(where.scale.bases[player.parts[0]])
    source = where.dataset("sst2") if name == MARKED_SST and name not in where.given else ""
    return FineTuning(player.name, base, where.dataset(name), player.place, source)
