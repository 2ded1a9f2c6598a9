"""Concepts: does the prediction depend on a concept that is given by examples?"""

from __future__ import annotations

from components.concepts.page import PAGE
from components.experiment.page import experiment_page

experiment_page(PAGE)
