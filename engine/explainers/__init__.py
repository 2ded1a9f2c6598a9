"""The explanation methods, one file a family. Importing this package registers them all, in this order."""

from engine.explainers import (  # noqa: F401, I001
    gradients,
    integrated_gradients,
    grad_cam,
    perturbation,
    attention,
    lrp,
    ensemble,
    captum,
)
