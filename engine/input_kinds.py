"""The kinds of input that models read. Each has an adapter, so that all other code works with any kind of input.

A new kind needs its own `Input`, `EncodedInput`, `Classifier` and `InputKind`. Existing methods that support it without
changes are added by `engine.registry.serve`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from engine import access
from engine.errors import ExegesisError, unknown
from engine.lazy import LazyModule, torch
from engine.models import catalog
from engine.models.classifier import AnyClassifier
from engine.removal_operators import BASELINES, DELETE, DROP, OPERATORS, PATCH_BASELINES, PATCH_OPERATORS
from engine.request import DTYPES
from engine.word_units import UNITS

if TYPE_CHECKING:
    from engine.data import datasets, image_datasets, sources
    from engine.data.sources import ExampleSource
    from engine.models import inspection, loading
else:  # these import pandas, transformers and torch, which are not needed to name a kind
    datasets = LazyModule("engine.data.datasets")
    image_datasets = LazyModule("engine.data.image_datasets")
    sources = LazyModule("engine.data.sources")
    inspection = LazyModule("engine.models.inspection")
    loading = LazyModule("engine.models.loading")


class InputKind(ABC):
    """One kind of input. `id`: its name in links, cache keys and files. `plural`: the name of its inputs on pages.

    `feature`: the name of the parts that are removed and ranked. `units`: the units that scores can be summed into, the
    features themselves first. `removals`: the removal operators, the default first (see `engine.removal`).
    `second_removal`: the operator of a second evaluation. The default replaces a feature, while the second operator
    takes it out, so that the replacement cannot determine the result (Jain et al., 2022, Missingness bias in model
    debugging). `baselines`: the operators that insert an embedding, so that a path can end there. `incomplete`: the
    name of inputs with removed features. `varies_in_length`: whether passes are shorter if inputs of similar length
    share them.
    """

    id: ClassVar[str]
    plural: ClassVar[str]
    feature: ClassVar[str]
    units: ClassVar[tuple[str, ...]]
    removals: ClassVar[tuple[str, ...]]
    second_removal: ClassVar[str]
    baselines: ClassVar[tuple[str, ...]]
    incomplete: ClassVar[str]
    varies_in_length: ClassVar[bool] = False

    @abstractmethod
    def reads(self, config: Mapping[str, Any]) -> bool:
        """Whether a model with this config.json reads inputs of this kind."""

    @abstractmethod
    def embedded_models(self) -> list[str]:
        """The names of the models that come with the project."""

    @abstractmethod
    def load_model(self, model: str, dtype: str, device: torch.device | None) -> AnyClassifier:
        """Return the shared, read-only model. Errors: it cannot be loaded, or reads another kind of input."""

    @abstractmethod
    def open_checkpoint(self, source: catalog.ModelSource) -> None:
        """Load a checkpoint on the CPU without keeping it. Errors: it cannot be loaded."""

    @abstractmethod
    def inspect_model(self, model: str) -> dict[str, Any]:
        """Return facts and checks of a model as plain values, after a trial run. Errors: it cannot be used."""

    @abstractmethod
    def registered_datasets(self) -> list[str]:
        """The names of the registered data sets."""

    @abstractmethod
    def holds(self, dataset: str) -> bool:
        """Whether a file, folder or hub id holds inputs of this kind. Errors: it cannot be read."""

    @abstractmethod
    def is_registered(self, dataset: str) -> bool:
        """Whether a data set of that name, with or without options, is registered."""

    @abstractmethod
    def load_source(self, dataset: str, split: str | None, tolerant: bool) -> ExampleSource:
        """Load the data set. `tolerant`: see `engine.data.sources.load_source`."""


class TextKind(InputKind):
    """Texts and pairs of texts."""

    id = "text"
    plural = "texts"
    feature = "token"
    units = UNITS
    removals = OPERATORS
    second_removal = DELETE
    baselines = BASELINES
    incomplete = "shortened texts"
    varies_in_length = True

    def reads(self, config: Mapping[str, Any]) -> bool:
        return config.get("model_type") not in catalog.IMAGE_TYPES

    def embedded_models(self) -> list[str]:
        return catalog.embedded_models()

    def load_model(self, model: str, dtype: str, device: torch.device | None) -> AnyClassifier:
        return loading.load_model(model, dtype, device)

    def open_checkpoint(self, source: catalog.ModelSource) -> None:
        loading.load(source, "", torch.float32, torch.device("cpu"))

    def inspect_model(self, model: str) -> dict[str, Any]:
        return inspection.inspect_text_model(model)

    def registered_datasets(self) -> list[str]:
        return list(datasets.dataset_names())

    def holds(self, dataset: str) -> bool:
        return not image_datasets.is_images(dataset)

    def is_registered(self, dataset: str) -> bool:
        return bool(datasets.registered_name(dataset))

    def load_source(self, dataset: str, split: str | None, tolerant: bool) -> ExampleSource:
        return sources.load_texts(dataset, split, tolerant)


class ImageKind(InputKind):
    """Pictures."""

    id = "image"
    plural = "pictures"
    feature = "patch"
    units = ("patch",)
    removals = PATCH_OPERATORS
    second_removal = DROP
    baselines = PATCH_BASELINES
    incomplete = "pictures with holes"

    def reads(self, config: Mapping[str, Any]) -> bool:
        return config.get("model_type") in catalog.IMAGE_TYPES

    def embedded_models(self) -> list[str]:
        return catalog.embedded_image_models()

    def load_model(self, model: str, dtype: str, device: torch.device | None) -> AnyClassifier:
        return loading.load_image_model(model, dtype, device)

    def open_checkpoint(self, source: catalog.ModelSource) -> None:
        loading.load_image(source, "", torch.float32, torch.device("cpu"))

    def inspect_model(self, model: str) -> dict[str, Any]:
        return inspection.inspect_image_model(model)

    def registered_datasets(self) -> list[str]:
        return list(image_datasets.image_names())

    def holds(self, dataset: str) -> bool:
        return image_datasets.is_images(dataset)

    def is_registered(self, dataset: str) -> bool:
        return bool(image_datasets.registered_name(dataset))

    def load_source(self, dataset: str, split: str | None, tolerant: bool) -> ExampleSource:
        return sources.load_pictures(dataset, split)


INPUT_KINDS: dict[str, InputKind] = {kind.id: kind for kind in (TextKind(), ImageKind())}
"""All kinds of input by id; the first one is the default."""


def input_kind(id: str) -> InputKind:
    """Return the kind of input with that id. Errors: an unknown id, with the known ones."""
    if id not in INPUT_KINDS:
        raise unknown("kind", id, INPUT_KINDS)
    return INPUT_KINDS[id]


def check_removal(operator: str, kind: str) -> None:
    """Refuse an operator that does not remove features of that kind."""
    if operator not in input_kind(kind).removals:
        raise unknown("removal", operator, input_kind(kind).removals)


def check_unit(unit: str, kind: str) -> None:
    """Refuse a unit into which scores of that kind cannot be summed."""
    if unit not in input_kind(kind).units:
        raise unknown("unit", unit, input_kind(kind).units)


def kind_of_model(model: str) -> str:
    """Return the id of the kind of input that a model reads, from its config.json. Loads no model."""
    config = catalog.config(catalog.locate(model))
    others = list(INPUT_KINDS.values())[1:]
    return next((kind.id for kind in others if kind.reads(config)), next(iter(INPUT_KINDS)))


def kind_of_dataset(dataset: str) -> str:
    """Return the id of the kind of a data set's inputs. Errors: it cannot be read."""
    others = list(INPUT_KINDS.values())[1:]
    return next((kind.id for kind in others if kind.holds(dataset)), next(iter(INPUT_KINDS)))


def list_models(kind: str) -> list[str]:
    """Return the models for a kind of input: the embedded ones, then those that the operator offers."""
    offered = [model for model in access.offered(access.MODELS) if kind_or_default(kind_of_model, model) == kind]
    return list(dict.fromkeys([*input_kind(kind).embedded_models(), *offered]))


def kind_or_default(kind_of: Callable[[str], str], name: str) -> str:
    """Return the kind of a model or data set; the default if it cannot be read, which is reported once it is chosen."""
    try:
        return kind_of(name)
    except ExegesisError:
        return next(iter(INPUT_KINDS))


def load_classifier(kind: str, model: str, dtype: str = DTYPES[0], device: torch.device | None = None) -> AnyClassifier:
    """Return the shared, read-only model for inputs of a kind.

    Errors: those of the kind's `load_model`; a model that reads another kind is refused.
    """
    return input_kind(kind).load_model(model, dtype, device)
