"""Study: an organiser designs a blind study, opens it, and sends its link."""

from __future__ import annotations

from components.frame import STUDY, guard, heading
from components.styles import use_styles

guard()
use_styles()
heading(STUDY)
