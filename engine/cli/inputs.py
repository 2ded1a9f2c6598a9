"""What a command looks at: a text, a picture, or an example of a data set of either."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cli import values
from engine.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

    from engine.request import Input

BELONGS = {"--text-pair": "--text", "--index": "--dataset", "--split": "--dataset", "--column": "--dataset"}


@dataclass(frozen=True)
class Asked:
    """What a command's options say of the input; None is what was not given."""

    command: str
    model: str
    text: str | None
    text_pair: str | None
    image: str | None
    dataset: str | None
    index: str | None
    split: str | None
    column: list[str] | None


@dataclass(frozen=True)
class Given:
    """The input, and lines for people that say what it is."""

    example: Input
    told: tuple[str, ...]


def given(asked: Asked) -> Given:
    """The one input that the options name."""
    sources: Mapping[str, tuple[str | None, Callable[[Asked], Given]]] = {
        "--text": (asked.text, _text), "--image": (asked.image, _image), "--dataset": (asked.dataset, _of_dataset),
    }  # fmt: skip
    named = [option for option, (value, _) in sources.items() if value is not None]
    if len(named) != 1:
        got = " and ".join(named) or "none of them"
        raise UsageError(
            f"{asked.command}: needs one of --text, --image, and --dataset with --index, got {got}. "
            "Example: --text 'Not bad.'"
        )
    _check_others(asked, named[0])
    return sources[named[0]][1](asked)


def _check_others(asked: Asked, source: str) -> None:
    others = {"--text-pair": asked.text_pair, "--index": asked.index, "--split": asked.split, "--column": asked.column}
    for option, value in others.items():
        if value and BELONGS[option] != source:
            raise UsageError(f"{option}: belongs to {BELONGS[option]}, got {source}. Leave one of them out.")


def _text(asked: Asked) -> Given:
    pair = None if asked.text_pair is None else values.text("--text-pair", asked.text_pair)
    return _texts(values.text("--text", str(asked.text)), pair)


def _texts(text: str, pair: str | None) -> Given:
    from engine.request import Example

    return Given(Example(text, pair), tuple(" ".join(part.split())[:1000] for part in (text, pair) if part is not None))


def _image(asked: Asked) -> Given:
    from engine.data.picture_files import read_picture

    file = Path(str(asked.image)).expanduser()
    return _picture(read_picture(file, "--image"), file.name)


def _of_dataset(asked: Asked) -> Given:
    if asked.index is None:
        raise UsageError("--index: is missing; --dataset needs it. Example: --index 0 for the first example.")
    number = values.whole("--index", asked.index)
    mapping = values.pairs("--column", asked.column or [], "text=review") or None
    return (_of_pictures if _names_pictures(asked) else _of_texts)(asked, number, mapping)


def _names_pictures(asked: Asked) -> bool:
    """By the data set; where there is none of that name, by the model, so that the error lists what goes with it."""
    from engine.data.datasets import registered_name
    from engine.data.image_datasets import is_images
    from engine.models import catalog

    name = str(asked.dataset)
    known = registered_name(name) is not None or Path(name).exists()
    return is_images(name) or (not known and catalog.is_image_model(asked.model))


def _of_texts(asked: Asked, number: int, columns: Mapping[str, str] | None) -> Given:
    from engine.data.datasets import load

    example = load(str(asked.dataset), split=asked.split, columns=columns)[number].example
    return _texts(example.text, example.text_pair)


def _of_pictures(asked: Asked, number: int, columns: Mapping[str, str] | None) -> Given:
    from engine.data.image_datasets import load_images

    data = load_images(str(asked.dataset), split=asked.split, columns=columns)
    example = data[number]
    label = "" if example.label is None else f", labelled {data.label_names[example.label]}"
    return _picture(example.pixels, f"picture {number} of {data.id}{label}")


def _picture(pixels: np.ndarray, name: str) -> Given:
    from engine.request import Picture

    height, width, _ = pixels.shape
    return Given(Picture(pixels), (f"{name}, {width} x {height} pixels",))
