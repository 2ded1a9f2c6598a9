"""Computes the shipped results: `python -m engine.shipped.make`."""

from __future__ import annotations

import base64
import json
import os
import tempfile
import zlib

from cache import encode
from engine import records, shipped
from engine.shipped.gallery import requests


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
    from engine.store import result_store

    with shipped.set_aside():
        held = [(key, result_store().get(key)) for key in made()]
    return [_line(key, zlib.compress(encode(*entry, key), level=9)) for key, entry in held if entry is not None]


def _line(key: str, body: bytes) -> str:
    return json.dumps({"key": key, "body": base64.b64encode(body).decode()})


def main() -> None:
    os.environ["EXEGESIS_DEVICE"] = "cpu"
    with tempfile.TemporaryDirectory(prefix="exegesis-shipped-") as home:
        os.environ["EXEGESIS_HOME"] = home
        found = {shipped.FILE: lines(), shipped.EVALUATIONS: evaluation_lines()}
    for file, made in found.items():
        file.write_text("\n".join(made) + "\n", encoding="utf-8")
        print(f"{len(made)} results, {file.stat().st_size:,} bytes in {file}")


if __name__ == "__main__":
    main()
