"""The device: where models run and in which precision, and on a click whether this installation is sound."""

from __future__ import annotations

import os
import sys

import streamlit as st

from components.library_html import facts_html, looks_html
from engine import health, runtime
from engine.request import DTYPES

FINDINGS_KEY = "library_findings"


def draw_device() -> None:
    """Draw what needs no import, and a button for the rest, which takes seconds."""
    st.html(facts_html(device_facts()))
    if st.button("Examine this installation"):
        _examine()
    elif FINDINGS_KEY in st.session_state:
        st.html(looks_html(st.session_state[FINDINGS_KEY]))


def device_facts() -> dict[str, object]:
    """Device and precision as they are set; the device itself once the engine has been started."""
    chosen = os.environ.get("EXEGESIS_DEVICE")
    how = f"{chosen}, as EXEGESIS_DEVICE says" if chosen else "the GPU if there is one, else the CPU"
    return {
        "device": _device_in_use() or how,
        "chosen by": "EXEGESIS_DEVICE" if chosen else "Exegesis; EXEGESIS_DEVICE=cpu or cuda:0 overrules it",
        "precision": f"{DTYPES[0]}; a job or the command line may ask for {', '.join(DTYPES[1:])}",
    }


def _device_in_use() -> str:
    """The device in use; empty while nothing uses one, because choosing imports torch."""
    if "torch" not in sys.modules:
        return ""
    try:
        return str(runtime.device())
    except Exception as error:
        return f"none: {error}"


def _examine() -> None:
    place, findings = st.empty(), []
    with st.spinner("Looking …"):
        for finding in health.examine():
            findings.append((finding.status, finding.name, finding.detail, finding.advice))
            place.html(looks_html(findings))
    st.session_state[FINDINGS_KEY] = findings
