"""Metrics: how well a map describes what the model does, and whether maps agree."""
