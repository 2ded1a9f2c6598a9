"""What people are to guess of each item: what the model said when the study opened."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.orm import defer

from engine.result import Prediction
from engine.study.database import study_database
from engine.study.forward.guesses import Target
from engine.study.freezing import frozen_prediction
from engine.study.tables import Item


def targets_of(study: int) -> dict[str, Target]:
    """By the item's place, practice left out."""
    with study_database().reading() as session:
        found = sa.select(Item).where(Item.study == study, ~Item.practice).options(defer(Item.picture))
        return {str(item.place): target(frozen_prediction(item), item.label) for item in session.scalars(found)}


def target(said: Prediction, label: str | None) -> Target:
    """Whether the model is right is known where the data set names its class as the model does."""
    names = [name.casefold() for name in said.labels]
    known = label is not None and names.count(label.casefold()) == 1
    return Target(said.index, said.label.casefold() == str(label).casefold() if known else None)
