"""Sanity checks: a model is randomized part by part, and explained again at each stage (Adebayo et al., 2018).

`plan` declares the experiment, `experiment` carries it out: `from engine.randomization.experiment import randomize`.
Importing this package loads neither, so that the command line starts quickly.
"""
