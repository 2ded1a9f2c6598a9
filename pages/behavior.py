"""Ask the model: what does it do when its input changes, and do attributions predict that?"""

from __future__ import annotations

from components.behavior.page import PAGE
from components.experiment.page import experiment_page

experiment_page(PAGE)
