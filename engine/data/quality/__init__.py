"""Sentences with their German translation by a small grammar, and errors put into it whose place is known."""
