"""Browsing a data set, texts or pictures."""
