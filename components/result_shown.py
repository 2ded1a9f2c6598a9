"""The results of a study as its page shows them: methods go by their titles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from components.result_forward import titled_forward
from components.result_names import titled, titles_of
from engine.study.forward.summary import ForwardSummary
from engine.study.ratings.summary import Summary
from engine.study.results import Results


@dataclass(frozen=True)
class Shown:
    """Results, and what each of their methods is called."""

    found: Results

    @cached_property
    def titles(self) -> Mapping[str, str]:
        return titles_of(self.found.study.design)

    @cached_property
    def summary(self) -> Summary | None:
        """None where nothing is ranked."""
        return None if self.found.summary is None else titled(self.found.summary, self.titles)

    @cached_property
    def forward(self) -> ForwardSummary | None:
        """None where nobody guesses."""
        return None if self.found.forward is None else titled_forward(self.found.forward, self.titles)
