"""Computes the shipped results: `python -m engine.shipped.make`."""

from __future__ import annotations

import base64
import json
import os
import tempfile
import zlib
from collections.abc import Callable, Iterable

import numpy as np

from cache import encode
from cache.codec import Arrays, Meta
from engine import records, shipped
from engine.shipped.gallery import requests

BITS, USUAL_BITS = {"scores": 12}, 24
"""Binary digits of a number that is rounded, by the name of its array."""
CHANGES, CHANGE_BITS = ("delta", "picture_difference"), 12
"""What attacks add, a number for each number of the input: most of their bytes."""


def lines() -> list[str]:
    """Each entry of the gallery, computed anew on a CPU and sealed under its key."""
    from engine.explain import explain_many, key_of

    asked = requests()
    with shipped.set_aside():
        made = explain_many(asked)
    bodies = ((key_of(request), records.pack(answer)) for request, answer in zip(asked, made, strict=True))
    return [_line(key, encode(*packed, key)) for key, packed in bodies]


def evaluation_lines() -> list[str]:
    """The evaluations that the Evaluate page opens with, computed where this home does not have them."""
    from engine.shipped.evaluated import made

    return _packed(made)


def randomization_lines() -> list[str]:
    """The same of what the Randomization page opens with."""
    from engine.shipped.randomized import made

    return _packed(made, rounded)


def rounded(arrays: Arrays) -> Arrays:
    """Floats with fewer binary digits, so that they pack: maps, which are only looked at, to 2e-4, others to 1e-7."""
    return {
        name: _cut(values, BITS.get(name, USUAL_BITS)) if values.dtype.kind == "f" else values
        for name, values in arrays.items()
    }


def attack_lines() -> list[str]:
    """The same of what the Adversarial page opens with."""
    from engine.shipped.attacked import made

    return _packed(made, shortened)


def shortened(arrays: Arrays) -> Arrays:
    """What was added, to 5e-4: towards zero, so that it stays within the epsilon. The rest is exact."""
    return {name: _cut(values, CHANGE_BITS, np.trunc) if name in CHANGES else values for name, values in arrays.items()}


def _cut(values: np.ndarray, bits: int, to_whole: np.ufunc = np.rint) -> np.ndarray:
    mantissa, exponent = np.frexp(values)
    return np.ldexp(to_whole(np.ldexp(mantissa, bits)), exponent - bits).astype(values.dtype)


def _packed(made: Callable[[], Iterable[str]], change: Callable[[Arrays], Arrays] = lambda arrays: arrays) -> list[str]:
    from engine.store import result_store

    with shipped.set_aside():
        held = [(key, result_store().get(key)) for key in made()]
    return packed_lines((key, entry[0], change(entry[1])) for key, entry in held if entry is not None)


def packed_lines(entries: Iterable[tuple[str, Meta, Arrays]]) -> list[str]:
    """Entries under their keys, sealed and packed, a line each."""
    return [_line(key, zlib.compress(encode(meta, arrays, key), level=9)) for key, meta, arrays in entries]


def _line(key: str, body: bytes) -> str:
    return json.dumps({"key": key, "body": base64.b64encode(body).decode()})


def main() -> None:
    os.environ["EXEGESIS_DEVICE"] = "cpu"
    with tempfile.TemporaryDirectory(prefix="exegesis-shipped-") as home:
        os.environ["EXEGESIS_HOME"] = home
        found = {
            shipped.FILE: lines(),
            shipped.EVALUATIONS: evaluation_lines(),
            shipped.RANDOMIZATIONS: randomization_lines(),
            shipped.ATTACKS: attack_lines(),
        }
    for file, made in found.items():
        file.write_text("\n".join(made) + "\n", encoding="utf-8")
        print(f"{len(made)} results, {file.stat().st_size:,} bytes in {file}")


if __name__ == "__main__":
    main()
