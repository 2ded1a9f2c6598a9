"""The explanation methods, one file a family. Importing this package registers them all, in this order."""

from engine.explainers import (  # noqa: F401, I001
    gradients,
    path,
    pictures,
    occlusion,
    lime,
    shap,
    attention,
    learned,
    relevancy,
    lrp,
    ensemble,
    baseline,
)
