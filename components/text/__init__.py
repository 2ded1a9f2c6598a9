"""Texts: what is looked at, maps of tokens, the Text page."""
