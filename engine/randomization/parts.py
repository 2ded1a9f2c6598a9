"""The parts of a model that are randomized as units: its head, its blocks, its embeddings; no weight is in two.

A block is attention and MLP with their LayerNorms. The head is all after the last block, a last LayerNorm and a pooler
included; the embeddings are all before the first, their LayerNorm included. T5's relative position bias, which all
blocks share, belongs to the first block: there it is computed and initialised. So to randomize T5's first block alone
changes the attention of all.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.classifiers import AnyClassifier
from engine.errors import ExegesisError

HEAD = "head"
EMBEDDINGS = "embeddings"


def parts_in_order(blocks: int, head: bool, embeddings: bool) -> tuple[str, ...]:
    """The parts as a cascade destroys them, from the answer to the input. Blocks are counted from 1, the first."""
    between = [str(number) for number in range(blocks, 0, -1)]
    return (*([HEAD] if head else []), *between, *([EMBEDDINGS] if embeddings else []))


def weights_of(model: AnyClassifier) -> dict[str, tuple[str, ...]]:
    """The names of the parameters of each part. Tied ones have one name."""
    names = [name for name, _ in model.module.named_parameters()]
    places = range(len(model.blocks))
    prefixes: dict[str, tuple[str, ...]] = {str(at + 1): (f"{model.adapter.blocks}.{at}.",) for at in places}
    prefixes[HEAD] = tuple(f"{name}." for name in model.adapter.after_blocks)
    found = {part: tuple(name for name in names if name.startswith(own)) for part, own in prefixes.items()}
    taken = {name for own in found.values() for name in own}
    found[EMBEDDINGS] = tuple(name for name in names if name not in taken)
    _check(model, found)
    return found


def _check(model: AnyClassifier, found: dict[str, tuple[str, ...]]) -> None:
    if not len(model.blocks):
        raise ExegesisError(
            f"model {model.id}: it has no blocks, so that none can be randomized. Choose another model."
        )
    empty = [part for part, names in found.items() if not names]
    if empty:
        raise ExegesisError(f"model {model.id}: no weights are known of its part {empty[0]}, so it is not randomized.")


def told(parts: Sequence[str]) -> str:
    """Parts in words, for people: "blocks 4 to 6, the head and the embeddings"."""
    blocks = sorted(int(part) for part in parts if part.isdecimal())
    named = [f"the {part}" for part in parts if not part.isdecimal()]
    if blocks:
        together = blocks == list(range(blocks[0], blocks[-1] + 1))
        many = f"{blocks[0]} to {blocks[-1]}" if together else ", ".join(map(str, blocks))
        named.insert(0, f"block {blocks[0]}" if len(blocks) == 1 else f"blocks {many}")
    return " and ".join(filter(None, (", ".join(named[:-1]), *named[-1:]))) or "nothing"
