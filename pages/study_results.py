"""Study results: what people preferred, and how sure that is."""

from __future__ import annotations

from components.frame import RESULTS, guard, heading
from components.styles import use_styles

guard()
use_styles()
heading(RESULTS)
