"""Access rules: the models and data sets that a visitor of the server may name."""

from __future__ import annotations

import ipaddress
import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from engine.errors import UsageError, excerpt, not_allowed
from engine.lazy import LazyModule
from engine.models import label_prompts

if TYPE_CHECKING:
    from engine import input_kinds
    from engine.data import slices
    from engine.models import catalog
else:  # a circular import: they call this module before they read a file
    catalog, input_kinds = LazyModule("engine.models.catalog"), LazyModule("engine.input_kinds")
    slices = LazyModule("engine.data.slices")

PASSWORD, ADMINS = "EXEGESIS_ADMIN_PASSWORD", "EXEGESIS_ADMINS"
"""Environment variables: the organizer's password, and the comma-separated e-mail addresses of users who become
organizers when they log in."""
OPEN, STUDY_ONLY = "EXEGESIS_OPEN", "EXEGESIS_STUDY_ONLY"
"""Set to 1 by `exegesis app --open`, which opens all pages but the organizer's to everybody, and by `--study-only`,
which serves only the page Take part."""
MODELS, DATASETS = "EXEGESIS_MODELS", "EXEGESIS_DATASETS"
"""Models and data sets that the operator offers to remote visitors in addition to the embedded ones: names, folders,
files and hub ids, separated by spaces, and quoted if they contain one."""
MONITORS = "EXEGESIS_MONITORS"
"""Networks from which the metrics may be read, separated by spaces, such as 10.0.0.0/8."""
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
MODEL_FIELDS, DATASET_FIELDS = ("model", "models", "teacher", "base"), ("dataset", "data")
"""The fields of a job's specification that name models and data sets."""
EXPLAINER_FIELDS = ("of", "explainer")
"""The parameters of methods that name trained explainers."""


def nobody() -> bool:
    """Return False: the default test, for a process without visitors, in which nobody is restricted."""
    return False


_is_restricted: Callable[[], bool] = nobody


def restrict(is_restricted: Callable[[], bool]) -> None:
    """Set the test of whether the calling thread acts for a visitor who may only name offered models and data sets.

    Threads that compute for a visitor are not restricted: the thread that draws the page has to name the model and the
    data set first, to build the cache key.
    """
    global _is_restricted
    _is_restricted = is_restricted


def offered(variable: str) -> tuple[str, ...]:
    """Return the names in `EXEGESIS_MODELS` or `EXEGESIS_DATASETS`. Errors: an unclosed quotation mark."""
    listed = os.environ.get(variable, "")
    try:
        return tuple(shlex.split(listed))
    except ValueError as error:
        raise not_allowed(variable, f"names separated by spaces ({error})", listed) from None


def monitor_networks() -> list[Network]:
    """Return the networks in `EXEGESIS_MONITORS`. Errors: one of them is not a network."""
    networks: list[Network] = []
    for text in os.environ.get(MONITORS, "").split():
        try:
            networks.append(ipaddress.ip_network(text))
        except ValueError:
            raise not_allowed(MONITORS, "networks such as 10.0.0.0/8, separated by spaces", text) from None
    return networks


def check_model(name: str) -> None:
    """Refuse a model or base that is neither embedded nor offered, before its folder is read."""
    name = label_prompts.base_name(name)
    if _is_restricted() and name != "minilm" and not catalog.is_embedded(name):
        _check("model", name, MODELS)


def check_dataset(name: str) -> None:
    """Refuse a data set, or a slice of one, that is neither registered nor offered, before its file is read."""
    if _is_restricted() and not any(kind.is_registered(name) for kind in input_kinds.INPUT_KINDS.values()):
        _check("dataset", slices.whole_name(name), DATASETS)


def check_explainer(argument: str, name: str) -> None:
    """Refuse a trained explainer that a visitor names by its file, before the file is read."""
    if _is_restricted() and any(part in name for part in ("/", "\\", ".json", ".safetensors")):
        raise UsageError(
            f"{argument}: only the organizer may name files, got {excerpt(name)}. Give the name of an explainer."
        )


def check_spec(spec: Mapping[str, Any]) -> None:
    """Refuse a visitor's job that names a model, data set, explainer file or folder that is not allowed."""
    if not _is_restricted():
        return
    for name in _named(spec, MODEL_FIELDS):
        check_model(name)
    for code in _named(spec, ["pairs"]):  # method@model
        check_model(code.partition("@")[2])
    examples = spec.get("examples")
    for part in (spec, *(examples if isinstance(examples, list) else [])):
        for name in _named(part, DATASET_FIELDS) if isinstance(part, Mapping) else []:
            check_dataset(name)
    _check_explainers(spec)
    if spec.get("places"):
        raise UsageError("places: only the organizer may name folders. Leave places out, or log in.")


def _check_explainers(part: object) -> None:
    if isinstance(part, list):
        for one in part:
            _check_explainers(one)
    if isinstance(part, Mapping):
        for field, value in part.items():
            if field in EXPLAINER_FIELDS and isinstance(value, str):
                check_explainer(field, value)
            else:
                _check_explainers(value)


def _named(spec: Mapping[str, Any], fields: Iterable[str]) -> list[str]:
    values = [value for field in fields if (value := spec.get(field))]
    return [str(name) for value in values for name in (value if isinstance(value, list) else [value])]


def _check(argument: str, name: str, variable: str) -> None:
    names = offered(variable)
    if name not in {*names, *map(os.path.realpath, filter(os.path.exists, names))}:  # jobs name files by absolute paths
        raise UsageError(
            f"{argument}: {excerpt(name)} is not offered on this server. Pick one from the list, or ask whoever runs "
            f"the server to add it to {variable}."
        )
