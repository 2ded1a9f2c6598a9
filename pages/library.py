"""Library: jobs, models, data sets, the cache, the device."""

from __future__ import annotations

from components.library.page import draw_library
from components.navigation import LIBRARY, heading
from components.styles import use_styles

use_styles()
heading(LIBRARY)
draw_library()
