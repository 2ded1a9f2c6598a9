"""Reproduction of papers: declared claims, the experiments that test them, verdicts, and reports.

`papers.py` holds each paper's data; `thesis.py` and `smat.py` hold the queries and experiments.
"""
