"""Questions to the maps of one picture."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from jaxtyping import Float

from components.picture.results import request_for
from components.picture.session import key
from components.picture.state import PictureState
from components.question_words import PICTURE_WORDS
from components.questions import Made, Questioned, questions
from engine.registry import Explainer
from engine.result import Explanation


def question_area(state: PictureState, methods: Mapping[str, Explainer], made: Made, probe: Explanation) -> None:
    """Below the maps: curves of deletion and insertion or the agreement of the maps, computed once it is asked for."""
    page = Questioned("picture", state, PICTURE_WORDS, "patch", partial(request_for, state), key, _scores)
    questions(page, methods, made, probe)


def _scores(made: Explanation) -> Float[np.ndarray, "patch"]:
    return made.scores[made.features]
