"""The Randomization page: curves and verdicts of each model, models in one chart, and one example stage by stage."""
