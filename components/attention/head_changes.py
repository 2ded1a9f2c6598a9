"""Which heads are changed, and what one more change makes of that. Plain values; whole layers stand together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from components.attention.look import Head, head_name
from engine.heads.scales import OFF, HeadScales

PLAIN_SCALE = 1.0


@dataclass(frozen=True)
class Change:
    """Some heads with one scale: a single head, or all of a layer."""

    heads: tuple[Head, ...]
    scale: float
    name: str


def scale_of(scales: HeadScales, head: Head) -> float:
    """What the head's output is multiplied by."""
    return _by_head(scales).get(head, PLAIN_SCALE)


def with_scale(scales: HeadScales, heads: Iterable[Head], scale: float) -> HeadScales:
    """The same, but for these heads; a scale of 1 makes them as they were."""
    return HeadScales.of({**_by_head(scales), **dict.fromkeys(heads, scale)})


def of_layer(layer: int, count: int) -> tuple[Head, ...]:
    """All heads of a layer."""
    return tuple((layer, head) for head in range(count))


def is_off(scales: HeadScales, heads: Iterable[Head]) -> bool:
    """Whether all these heads are switched off."""
    return all(scale_of(scales, head) == OFF for head in heads)


def changes(scales: HeadScales, count: int) -> list[Change]:
    """What is changed, in the order of the layers; a layer whose `count` heads have one scale is one change."""
    found: list[Change] = []
    rows = _by_head(scales)
    for layer in sorted({layer for layer, _ in rows}):
        heads = [head for head in rows if head[0] == layer]
        sizes = {rows[head] for head in heads}
        if len(heads) == count > 1 and len(sizes) == 1:
            found.append(Change(tuple(heads), sizes.pop(), f"layer {layer}"))
        else:
            found += [Change((head,), rows[head], head_name(head)) for head in heads]
    return found


def in_words(change: Change) -> str:
    """3.7 off, layer 2 × 0.5."""
    return f"{change.name} off" if change.scale == OFF else f"{change.name} × {change.scale:g}"


def _by_head(scales: HeadScales) -> dict[Head, float]:
    return {(layer, head): float(scale) for layer, head, scale in scales.scales}
