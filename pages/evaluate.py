"""Evaluate: metrics of many methods over many examples, and tests of the metrics themselves."""

from __future__ import annotations

from components.evaluate.page import PAGE
from components.experiment.page import experiment_page

experiment_page(PAGE)
