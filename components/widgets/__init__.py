"""Widgets that several pages share, each a folder with its Python, its JavaScript and its style sheet."""
