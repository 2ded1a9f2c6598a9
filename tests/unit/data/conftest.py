"""Small pictures made here: files of every kind, class folders, zips."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

Save = Callable[..., bytes]
COLORS = {"blue": (30, 30, 220), "red": (220, 30, 30)}


def saved(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    """The bytes of a picture file."""
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def plain(color: tuple[int, ...] = (200, 40, 90), size: tuple[int, int] = (6, 4), mode: str = "RGB") -> Image.Image:
    return Image.new(mode, size, color)


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def class_files(per_class: int = 3, splits: tuple[str, ...] = ("train", "test"), side: int = 8) -> dict[str, bytes]:
    """`set/split/color/i.png`, each picture in the color of its class with some noise."""
    chance = np.random.default_rng(0)
    files = {}
    for split in splits:
        for name, color in COLORS.items():
            for i in range(per_class):
                noise = chance.integers(-25, 26, (side, side, 3))
                pixels = (np.array(color) + noise).clip(0, 255).astype(np.uint8)
                files[f"set/{split}/{name}/{i}.png"] = saved(Image.fromarray(pixels))
    return files


def unpacked(root: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


@pytest.fixture(params=["folder", "zip"])
def packed(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[dict[str, bytes]], Path]:
    """Packs files as a folder or as a zip, so that a test runs on both."""
    if request.param == "zip":
        return lambda files: zipped(tmp_path / "set.zip", files)
    return lambda files: unpacked(tmp_path / "set-folder", files)
