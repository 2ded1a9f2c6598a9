"""The Randomization page: curves and verdicts of each model, models over each other, one example stage by stage."""
