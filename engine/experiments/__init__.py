"""Experiments: each is declared once, and its command, page, link, job and files follow from the declaration.

`base` defines experiments and their registry, `options` the fields of their plans; both import almost nothing. `run`
carries out a plan. The two jobs of `example_jobs` have no plan: their results are the entries that they cache.
"""
