"""Evaluation of explanation methods on a data set by several metrics."""
