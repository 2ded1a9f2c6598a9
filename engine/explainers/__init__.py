"""The explanation methods, one file per family. Importing this package registers them all, in this order."""

from engine.explainers import gradients, perturbation, attention, lrp, ensemble, captum, bee, empirical  # noqa: F401, I001
