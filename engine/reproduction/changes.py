"""What attacks changed, as values that claims are about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from engine.metrics.results import MetricKey, MetricRow
from engine.reproduction.measures import MEASURES

if TYPE_CHECKING:
    from engine.attacks.findings import Row as AttackRow


def rows_of_attacks(rows: Sequence[AttackRow]) -> Iterator[MetricRow]:
    """Of the attacked methods, each measure by its objective; what no claim is about is left out."""
    for row in rows:
        of, id = row.of, f"{row.of.objective}_{row.of.metric}"
        if of.method == of.attacked and id in MEASURES:
            yield MetricRow(MetricKey(of.model, of.dataset, of.method, id), row.example, row.value)
