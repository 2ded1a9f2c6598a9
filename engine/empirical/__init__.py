"""Empirical explainers: a small model that predicts the map of a costly method for one classifier."""
