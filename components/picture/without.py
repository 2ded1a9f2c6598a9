"""The prediction without the pinned patches of a picture."""

from __future__ import annotations

from collections.abc import Mapping

from components.picture.results import request_for
from components.picture.state import PictureState
from components.prediction_area import PROBE
from components.question_words import PICTURE_WORDS
from components.without import pinned, without_pinned
from engine.registry import Explainer
from engine.result import Explanation


def without_area(
    state: PictureState, methods: Mapping[str, Explainer], made: Mapping[str, Explanation], probe: Explanation
) -> None:
    """Below the maps: what becomes of the prediction without the pinned patches, or how to pin one."""
    # Pins number the patches; what is beyond them is beyond the positions too, and no patch.
    positions = [int(probe.features[0]) + patch for patch in state.pins]
    names = [probe.tokens[position].text for position in pinned(positions, probe.tokens)]
    without_pinned(request_for(state, PROBE), positions, names, PICTURE_WORDS, methods, made, probe)
