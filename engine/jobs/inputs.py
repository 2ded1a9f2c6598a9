"""The examples of an explain job: texts that stand in it, or pictures that it names by data set and place.

Pictures are read one at a time, whenever their turn comes: all of them would not fit into memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cache import key_for
from engine.errors import ExegesisError, UsageError
from engine.request import Example, Input, Picture

if TYPE_CHECKING:
    from engine.data.examples import ImageDataset

TEXT, PICTURE = {"text", "text_pair"}, {"dataset", "index", "split"}
SHAPE = 'a list of {"text": ..., "text_pair"?: ...} or of {"dataset": ..., "index": ..., "split"?: ...}'


def is_example(given: object) -> bool:
    """Whether it names a text or a picture."""
    return isinstance(given, dict) and (_is_text(given) or _is_picture(given))


def kind_of_all(examples: Sequence[Mapping[str, Any]]) -> str:
    """ "text" or "image"; all examples of a job are of one kind."""
    kinds = {"text" if "text" in example else "image" for example in examples}
    if len(kinds) > 1:
        raise UsageError("examples of an explain job: must be texts or pictures, got both. Make two jobs of them.")
    return kinds.pop()


class Inputs:
    """The examples of one job by number. Each picture set is opened once."""

    def __init__(self, examples: Sequence[Mapping[str, Any]]) -> None:
        self._examples = examples
        self._sets: dict[tuple[str, str | None], ImageDataset] = {}

    def check(self) -> None:
        """Refuses texts that are too long and picture sets that are not there; hub and files are not looked into."""
        for number, example in enumerate(self._examples, 1):
            try:
                if "text" in example:
                    Example(**example).check_length()
                else:
                    self._check_set(example["dataset"], example.get("split"))
            except UsageError as error:
                raise UsageError(f"example {number} of an explain job: {error}") from None

    def __getitem__(self, number: int) -> Input:
        example = self._examples[number]
        if "text" in example:
            return Example(**example)
        return Picture(self._set(example["dataset"], example.get("split"))[example["index"]].pixels)

    def _set(self, name: str, split: str | None) -> ImageDataset:
        from engine.data.image_datasets import load_images

        if (name, split) not in self._sets:
            self._sets[name, split] = load_images(name, split)
        return self._sets[name, split]

    def _check_set(self, name: str, split: str | None) -> None:
        from engine.data.hub import HUB_PREFIX
        from engine.data.image_datasets import registered_name

        if registered_name(name) or not (name.startswith(HUB_PREFIX) or Path(name).exists()):
            self._set(name, split)


def key_of_unreadable(method: str, example: Mapping[str, Any], error: ExegesisError) -> str:
    """A key under which nothing is ever found, so that every run tries the picture again."""
    return key_for({"kind": "picture that cannot be read", "method": method, "example": example, "error": str(error)})


def _is_text(given: Mapping[str, object]) -> bool:
    pair = given.get("text_pair")
    return {"text"} <= given.keys() <= TEXT and isinstance(given["text"], str) and isinstance(pair, str | None)


def _is_picture(given: Mapping[str, object]) -> bool:
    index = given.get("index")
    return (
        {"dataset", "index"} <= given.keys() <= PICTURE
        and isinstance(given["dataset"], str)
        and type(index) is int
        and index >= 0
        and isinstance(given.get("split"), str | None)
    )
