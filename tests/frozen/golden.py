"""Golden files: written so that a change is a changed line, compared value by value."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
TOLERANCE = 1e-4
"""Of floats, relative to the golden one: no CPU, BLAS kernel or number of threads moves a result by as much."""
SMALLEST = 1e-6
"""Floats that differ by less are the same however small they are."""
WIDTH = 360
MOST_TOLD = 12


def file_of(part: str) -> Path:
    """Where a part's golden values are."""
    return DATA / f"{part}.json"


def write(part: str, values: dict[str, Any]) -> Path:
    """Write the part's values as JSON text, and leave alone what has not changed."""
    DATA.mkdir(exist_ok=True)
    kept = merge(read(part), values) if file_of(part).is_file() else values
    file_of(part).write_text(laid_out(kept) + "\n", encoding="utf-8")
    return file_of(part)


def read(part: str) -> dict[str, Any]:
    """The golden values of a part."""
    values: dict[str, Any] = json.loads(file_of(part).read_text(encoding="utf-8"))
    return values


def laid_out(value: Any, indent: int = 0) -> str:
    """JSON in which lists and objects are broken only where they are longer than a line."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or len(line) + indent <= WIDTH:
        return line
    if isinstance(value, dict):
        rows = [f"{json.dumps(k, ensure_ascii=False)}: {laid_out(v, indent + 1)}" for k, v in value.items()]
    else:
        rows = [laid_out(one, indent + 1) for one in value]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    pad = "\n" + " " * (indent + 1)
    return f"{begin}{pad}{(',' + pad).join(rows)}\n{' ' * indent}{end}"


def as_json(value: Any) -> Any:
    """The value as it comes back from a file: tuples are lists, keys are texts, floats have six digits."""
    return json.loads(json.dumps(_shortened(value), default=str))


def _shortened(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(name): _shortened(one) for name, one in value.items()}
    return [_shortened(one) for one in value] if isinstance(value, list | tuple) else value


def differences(golden: Any, now: Any, where: str = "") -> Iterator[str]:
    """Each place where two values differ, with what was frozen and what is there now."""
    if isinstance(golden, dict) and isinstance(now, dict):
        for name in dict.fromkeys([*golden, *now]):
            if name not in now or name not in golden:
                yield f"{where}/{name}: {'is gone' if name not in now else 'is new'}"
            else:
                yield from differences(golden[name], now[name], f"{where}/{name}")
    elif isinstance(golden, list) and isinstance(now, list) and len(golden) == len(now):
        for place, (old, new) in enumerate(zip(golden, now, strict=True)):
            yield from differences(old, new, f"{where}[{place}]")
    elif not equal(golden, now):
        yield f"{where}: frozen {json.dumps(golden)[:600]}, now {json.dumps(now)[:600]}"


def equal(golden: Any, now: Any) -> bool:
    """Whether two leaves are the same: floats within the tolerance, all else exactly and of the same type."""
    if isinstance(golden, float) and isinstance(now, float):
        return math.isclose(golden, now, rel_tol=TOLERANCE, abs_tol=SMALLEST)
    return type(golden) is type(now) and bool(golden == now)


def merge(golden: Any, now: Any) -> Any:
    """The values of now in the golden order, and the golden value of each leaf that is equal."""
    if isinstance(golden, dict) and isinstance(now, dict):
        names = [*(name for name in golden if name in now), *(name for name in now if name not in golden)]
        return {name: merge(golden[name], now[name]) if name in golden else now[name] for name in names}
    if isinstance(golden, list) and isinstance(now, list) and len(golden) == len(now):
        return [merge(old, new) for old, new in zip(golden, now, strict=True)]
    return golden if equal(golden, now) else now


def check(golden: Any, now: Any) -> None:
    """Fails with the first differences."""
    found = list(differences(golden, as_json(now)))
    assert not found, f"{len(found)} frozen values changed:\n" + "\n".join(found[:MOST_TOLD])


def summary(values: list[Any], most: int = 10) -> Any:
    """A long list by its beginning, its end, its length and a hash of all of it."""
    if len(values) <= most:
        return values
    whole = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
    return {"count": len(values), "sha256": whole, "first": values[: most // 2], "last": values[-2:]}
