"""The explanation methods, one file a family. Importing this package registers them all."""

from engine.explainers import (  # noqa: F401
    attention,
    baseline,
    ensemble,
    gradients,
    lime,
    occlusion,
    path,
)
