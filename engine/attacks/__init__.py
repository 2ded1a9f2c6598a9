"""Adversarial examples for explanations: small changes of an input that change its map and leave its class.

`attack` attacks one example or several, `plan` declares the experiment on many, `experiment` carries it out. Importing
this package loads none of them, so that the command line starts quickly.
"""
