"""Claims about a model as rules over its inputs, and tests of them: `plan` declares the experiment `rules`.

Importing this package loads nothing, so that the command line starts quickly.
"""
