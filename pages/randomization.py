"""Randomization: does a method's map change when the model is destroyed block by block?"""

from __future__ import annotations

from components.experiment.page import experiment_page
from components.randomization.page import PAGE

experiment_page(PAGE)
