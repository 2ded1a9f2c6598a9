"""The Text page: one text, its prediction, and its explanations by several methods."""
