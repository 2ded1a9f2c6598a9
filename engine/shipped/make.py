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
from engine import serialization, shipped
from engine.explain import explain_many, key_of
from engine.shipped.experiments import compute_attacks, compute_evaluations, compute_randomizations
from engine.shipped.gallery import gallery_requests
from engine.store import result_store

BITS, DEFAULT_BITS = {"scores": 12}, 24
"""Binary digits of a number that is rounded, by the name of its array."""
CHANGES, CHANGE_BITS = ("delta", "picture_difference"), 12
"""The arrays of an attack's changes, a number for each number of the input: most of its bytes."""


def explanation_lines() -> list[str]:
    """Each explanation of the gallery, computed anew and sealed under its key."""
    requests = gallery_requests()
    with shipped.ignore_entries():
        explanations = explain_many(requests)
    keyed = [(key_of(request), made) for request, made in zip(requests, explanations, strict=True)]
    return [_line(key, encode(*serialization.pack(explanation), key)) for key, explanation in keyed]


def experiment_lines(
    compute: Callable[[], Iterable[str]], change: Callable[[Arrays], Arrays] = lambda arrays: arrays
) -> list[str]:
    """The results of `compute`, which returns their keys; their arrays changed."""
    with shipped.ignore_entries():
        entries = [(key, result_store().get(key)) for key in compute()]
    return pack_lines((key, entry[0], change(entry[1])) for key, entry in entries if entry is not None)


def round_floats(arrays: Arrays) -> Arrays:
    """Floats with fewer binary digits, so that they pack: maps, which are only looked at, to 2e-4, others to 1e-7."""
    return {
        name: _reduce_digits(values, BITS.get(name, DEFAULT_BITS)) if values.dtype.kind == "f" else values
        for name, values in arrays.items()
    }


def truncate_changes(arrays: Arrays) -> Arrays:
    """The changes to 5e-4, towards zero, so that they stay within the epsilon. The rest is exact."""
    return {
        name: _reduce_digits(values, CHANGE_BITS, np.trunc) if name in CHANGES else values
        for name, values in arrays.items()
    }


def _reduce_digits(values: np.ndarray, bits: int, to_whole: np.ufunc = np.rint) -> np.ndarray:
    mantissa, exponent = np.frexp(values)
    return np.ldexp(to_whole(np.ldexp(mantissa, bits)), exponent - bits).astype(values.dtype)


def pack_lines(entries: Iterable[tuple[str, Meta, Arrays]]) -> list[str]:
    """Entries under their keys, sealed and packed, a line each."""
    return [_line(key, zlib.compress(encode(meta, arrays, key), level=9)) for key, meta, arrays in entries]


def _line(key: str, body: bytes) -> str:
    return json.dumps({"key": key, "body": base64.b64encode(body).decode()})


def main() -> None:
    os.environ["EXEGESIS_DEVICE"] = "cpu"
    with tempfile.TemporaryDirectory(prefix="exegesis-shipped-") as home:
        os.environ["EXEGESIS_HOME"] = home
        lines = {
            shipped.EXPLANATIONS: explanation_lines(),
            shipped.EVALUATIONS: experiment_lines(compute_evaluations),
            shipped.RANDOMIZATIONS: experiment_lines(compute_randomizations, round_floats),
            shipped.ATTACKS: experiment_lines(compute_attacks, truncate_changes),
        }
    for file, entries in lines.items():
        file.write_text("\n".join(entries) + "\n", encoding="utf-8")
        print(f"{len(entries)} results, {file.stat().st_size:,} bytes in {file}")


if __name__ == "__main__":
    main()
