"""Claims about a model, written as rules over its inputs, and tests of these claims.

`plan` declares the experiment `rules`. Importing this package imports no modules, so the command line starts quickly.
"""
