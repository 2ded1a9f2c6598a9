"""What is known of a set's pictures without running the model or reading one of them."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from components.browse.examples import ExampleTable
from components.browse.results import ExampleResults, Stamp, count_losses, results_by_jobs
from components.picture.open_pictures import OpenPictures
from components.picture.rows import picture_table
from engine.data.examples import ImageDataset
from engine.data.hub import HUB_PREFIX
from engine.data.image_datasets import registered_name
from engine.home import home


def known_pictures(model: str, opened: OpenPictures) -> ExampleResults:
    """What there is of this model's predictions, and the jobs that make them."""
    return results_by_jobs(picture_spec(model, opened), lambda stamp: _rows(model, opened.data, stamp))


def picture_spec(model: str, opened: OpenPictures) -> dict[str, object]:
    """What a predict job needs."""
    return {"model": model, "data": portable_pictures(opened.name), "split": opened.data.split}


def portable_pictures(name: str) -> str:
    """The name by which a job finds a picture set. A path is made absolute: it may be resumed from another folder."""
    return name if registered_name(name) or name.startswith(HUB_PREFIX) else str(Path(name).resolve())


def _rows(model: str, data: ImageDataset, stamp: Stamp) -> ExampleTable:
    from engine.models.catalog import revision

    content = (data.id, data.revision, data.split, len(data))
    return _read(model, revision(model), content, stamp, count_losses(), str(home()), data)


@st.cache_resource(max_entries=4, show_spinner="Looking for predictions …")
def _read(
    model: str, revision: str, content: tuple[object, ...], stamp: Stamp, losses: int, home: str, _data: ImageDataset
) -> ExampleTable:
    from engine.image_predictions import cached_set_predictions  # imports what runs models

    return picture_table(_data, cached_set_predictions(model, _data))
