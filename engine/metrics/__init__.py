"""Metrics: how well a map tells what the model does, and whether maps agree."""
