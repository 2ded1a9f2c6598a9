"""Reproduction: claims of papers, declared before a run, and whether they hold."""

from __future__ import annotations

from components.navigation import REPRODUCTION, heading
from components.reproduction.page import reproduction_page
from components.styles import use_styles

use_styles()
heading(REPRODUCTION)
reproduction_page()
