"""Layers: where inside the model is the prediction made, and what is it made from?"""

from __future__ import annotations

from components.compute import warm_up
from components.layers.page import layers_page
from components.navigation import LAYERS, heading
from components.styles import use_styles

use_styles()
heading(LAYERS)
layers_page()
warm_up()  # last: see components/compute.py
