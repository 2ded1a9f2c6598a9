"""Ask the model: what will it do, and do attributions know?"""

from __future__ import annotations

from components.behavior.page import PAGE
from components.experiment.page import experiment_page

experiment_page(PAGE)
