"""Evaluating methods on a data set: which metrics say what of which method, on which model."""
