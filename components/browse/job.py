"""The work that fills the list: predicting a whole data set, comparing methods on it, with progress and cancel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from components.browse.known import Jobs, Known
from components.job_area import JobArea

AREA = JobArea("browse")


@dataclass(frozen=True)
class Offer:
    """A job that would fill the list: what its button says, a name of its own, what it is submitted with and as."""

    label: str
    name: str
    spec: Mapping[str, object]
    help: str | None = None
    kind: str = "predict"


def job_area(held: Known | Jobs, offers: Sequence[Offer]) -> None:
    """What is still missing as buttons, or the job that makes it; the page is drawn again when that is over."""
    AREA.trouble()
    if held.running is not None:
        AREA.progress(held.running.id)
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if offers:
            AREA.go_on(held.last)
        for offer in offers:
            AREA.offer(offer.label, offer.name, offer.kind, offer.spec, help=offer.help)
