"""Reproduction of papers: declared claims, the experiments that try them, verdicts, and reports of these.

`papers.py` holds what is data of a paper; `thesis.py` and `smat.py` its question and experiments.
"""
