"""Comparison of the maps of several models and methods: aligned on common parts, with measures of their agreement."""
