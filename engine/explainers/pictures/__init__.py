"""The methods that serve pictures in their own way; importing this package registers them, in this order."""

from engine.explainers.pictures import (  # noqa: F401, I001
    gradients,
    path,
    grad_cam,
    occlusion,
    lime,
    shap,
)
