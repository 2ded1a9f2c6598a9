"""Take part: a participant agrees, and ranks unnamed explanations."""

from __future__ import annotations

from components.frame import ANNOTATE, guard, heading
from components.styles import use_styles

guard()
use_styles()
heading(ANNOTATE)
