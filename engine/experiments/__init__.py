"""Experiments: each is declared once, and its command, page, link, job and files follow from the declaration.

`base` says what an experiment is and lists them, `options` what the fields of its plan are; both load next to nothing.
`run` carries a plan out. `explain_many` and `predict` are jobs without a plan: what they leave in the cache is all.
"""
