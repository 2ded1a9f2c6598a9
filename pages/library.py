"""Library: long work and what it draws on - jobs, models, data sets, the cache, the device."""

from __future__ import annotations

import streamlit as st

from components.frame import LIBRARY, guard, heading
from components.library.cache import cache_area
from components.library.data import data_cards
from components.library.device import device_area
from components.library.job_form import job_form
from components.library.jobs import job_list
from components.library.models import model_cards, model_check
from components.library.sections import section
from components.styles import use_styles

guard()
use_styles()
heading(LIBRARY)

shown = section()
with st.container(width=960):
    if shown == "jobs":
        job_form()
        job_list()
    elif shown == "models":
        model_cards()
        model_check()
    elif shown == "data":
        data_cards()
    elif shown == "cache":
        cache_area()
    else:
        device_area()
