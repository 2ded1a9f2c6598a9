"""The Images page: one picture, its prediction, and its explanations by many methods."""
