"""Study results: what participants preferred, and how certain that is."""

from __future__ import annotations

from components.navigation import RESULTS, heading
from components.organizer import admit_organizer
from components.results.page import draw_results_page
from components.styles import use_styles

use_styles()
heading(RESULTS)
if admit_organizer():
    draw_results_page()
