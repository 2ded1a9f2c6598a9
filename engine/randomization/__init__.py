"""Sanity checks: randomize a model part by part and explain it again at each stage (Adebayo et al., 2018).

`plan` declares the experiment, `experiment` runs it: `from engine.randomization.experiment import randomize`. Importing
this package imports neither, so the command line starts quickly.
"""
