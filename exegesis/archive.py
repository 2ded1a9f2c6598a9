"""Archives of results: an .npz of arrays, one of them the JSON of all else. Nothing in one is ever unpickled."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cache.codec import plain
from engine.errors import ExegesisError
from engine.format import size_text

HEADER = "exegesis"
LARGEST = 2**30
"""Bytes of all arrays of an archive, unpacked."""


def write_archive(kind: str, meta: Mapping[str, Any], arrays: Sequence[Mapping[str, np.ndarray]]) -> bytes:
    """An archive of `kind`. The array `name` of part n is there as `n.name`, for anyone who reads it with numpy."""
    text = json.dumps(plain({"kind": kind, "parts": len(arrays), "meta": meta}), allow_nan=False)
    named: dict[str, Any] = {
        f"{part}.{name}": values for part, own in enumerate(arrays) for name, values in own.items()
    }
    file = io.BytesIO()
    named[HEADER] = np.frombuffer(text.encode(), np.uint8)
    np.savez_compressed(file, **named)
    return file.getvalue()


def read_archive(file: Path) -> tuple[str, dict[str, Any], list[dict[str, np.ndarray]]]:
    """Kind, meta and arrays of an archive. Errors: it is damaged, too large, or not ours."""
    try:
        with zipfile.ZipFile(file) as packed:
            size = sum(entry.file_size for entry in packed.infolist())
        if size > LARGEST:
            raise ExegesisError(
                f"path: {file.name} must unpack to at most {size_text(LARGEST)}, got {size_text(size)}."
            )
        with np.load(file, allow_pickle=False) as opened:
            arrays = {name: opened[name] for name in opened.files}
        stated = json.loads(arrays.pop(HEADER).tobytes().decode())
        parts: list[dict[str, np.ndarray]] = [{} for _ in range(stated["parts"])]
        for name, values in arrays.items():
            part, _, own = name.partition(".")
            parts[int(part)][own] = values
        return stated["kind"], stated["meta"], parts
    except (OSError, ValueError, KeyError, TypeError, IndexError, zipfile.BadZipFile, EOFError) as error:
        raise ExegesisError(f"path: {file.name} is no result that save wrote ({error}). Save it again.") from error
