"""Concepts of labeled examples: does a model's prediction depend on them? TCAV, Kim et al. (2018)."""
