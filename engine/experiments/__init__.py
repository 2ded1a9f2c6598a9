"""Experiments: each is declared once, and its command, page, link, job and files follow from the declaration.

`base` says what an experiment is and lists them, `options` what the fields of its plan are; both load next to nothing.
`run` carries a plan out. The two jobs of `example_jobs` have no plan: what they leave in the cache is all.
"""
