"""Evaluate: many methods on many examples, measured, and the measures questioned."""

from __future__ import annotations

from components.evaluate.page import PAGE
from components.experiment.page import experiment_page

experiment_page(PAGE)
