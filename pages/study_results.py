"""Study results: what people preferred, and how sure that is."""

from __future__ import annotations

from components.frame import RESULTS, guard, heading
from components.organiser import organiser
from components.results.page import results_page
from components.styles import use_styles

guard()
use_styles()
heading(RESULTS)
if organiser():
    results_page()
