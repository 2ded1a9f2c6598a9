"""Scaffold: how well does an explanation teach a student what the model will say?"""

from __future__ import annotations

from components.compute import warm_up
from components.navigation import SCAFFOLD, heading
from components.scaffold.page import scaffold_page
from components.styles import use_styles

use_styles()
heading(SCAFFOLD)
scaffold_page()
warm_up()  # last: see components/compute.py
