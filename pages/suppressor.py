"""Suppressor: do methods credit a feature that carries no information about the class?"""

from __future__ import annotations

from components.compute import warm_up
from components.navigation import SUPPRESSOR, heading
from components.styles import use_styles
from components.suppressor.page import suppressor_page

use_styles()
heading(SUPPRESSOR)
suppressor_page()
warm_up()  # last: see components/compute.py
