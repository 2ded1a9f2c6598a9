"""Tests of whether a model's predictions depend on concepts given by examples: TCAV, Kim et al. (2018)."""
