"""Previews of costly maps: estimates by an empirical explainer, shown until the exact map is computed.

A preview is an explanation by another method, `empirical`. It is never exported or evaluated as the exact map.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from components.method_row import MethodRow
from components.numbers import hundredths
from components.widgets.patch_map import PatchCard
from engine.errors import ExegesisError
from engine.explain import cached_explanation
from engine.lazy import LazyModule
from engine.registry import explainer
from engine.request import PLAIN, Request
from engine.result import Explanation

if TYPE_CHECKING:
    from engine.empirical import errors as map_errors
    from engine.empirical import explainer as trained_explainers
else:  # they import the explainers
    map_errors = LazyModule("engine.empirical.errors")
    trained_explainers = LazyModule("engine.empirical.explainer")

METHOD = "empirical"
MethodMap = TypeVar("MethodMap", MethodRow, PatchCard)
"""A method's map with its title, notes and other text."""


def preview_request(request: Request) -> Request | None:
    """Return the request for the preview of a map, or None if no empirical explainer predicts it."""
    method = explainer(request.method, request.example.kind)
    if method.cheap or request.dtype != trained_explainers.SERVED_DTYPE or request.heads != PLAIN:
        return None
    try:
        trained = trained_explainers.preview_explainer(request.model, request.method, request.params)
    except ExegesisError:  # the exact map meets the same error and reports it
        return None
    return None if trained is None else replace(request, method=METHOD, params={"of": trained.reference})


def is_useful(preview: Explanation) -> bool:
    """Whether the expected error of a preview is smaller than that of a map of zeros."""
    return _expected(preview) < 1


def as_preview(drawn: MethodMap, preview: Explanation) -> MethodMap:
    """Mark a row or card as a preview, with its expected error.

    `drawn`: the row or card of the estimated map, under the title of the exact method.
    """
    error = hundredths(_expected(preview))
    sentence = f"Preview: estimated, expected error {error} (0: exact, 1: a map of zeros). The exact map replaces it."
    return replace(drawn, check=None, cost="Preview: estimated", notes=(sentence, *drawn.notes))


def preview_note(request: Request, exact: Explanation) -> tuple[str, ...]:
    """Return a note on the error of the preview of an exact map; empty if this input had no useful preview."""
    if (wanted := preview_request(request)) is None or (preview := cached_explanation(wanted)) is None:
        return ()
    if not is_useful(preview):
        return ()
    own = exact.features
    errors = map_errors.map_errors([exact.scores[own]], [preview.scores[own]])
    if errors is None:
        return ("Its preview cannot be compared: all exact scores are zero.",)
    alike = "" if errors.pearson is None else f"; correlation {hundredths(errors.pearson)}"
    expected = hundredths(_expected(preview))
    given = "text" if exact.grid is None else "picture"
    return (f"Its preview was off by {hundredths(errors.relative)} on this {given} (expected {expected}){alike}.",)


def _expected(preview: Explanation) -> float:
    trained = trained_explainers.find_explainer(str(preview.provenance.params["of"]), preview.provenance.model)
    return trained.card.expected(preview.provenance.target == preview.prediction.index)
