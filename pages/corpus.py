"""Words: which words or patches matter to a model over a whole data set?"""

from __future__ import annotations

from components.corpus.page import PAGE
from components.experiment.page import experiment_page

experiment_page(PAGE)
