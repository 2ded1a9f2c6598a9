"""Widgets that several pages share, each in a folder with its Python, JavaScript and style sheet."""
