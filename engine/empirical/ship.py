"""Train the empirical explainers that ship with the project: `python -m engine.empirical.ship`.

SST-2 does not ship with the project; it must be in EXEGESIS_DATA. Cached maps are not computed again.
"""

from __future__ import annotations

from engine.empirical.explainer import SHIPPED, save
from engine.empirical.training import EmpiricalPlan, compute

PLANS = (
    EmpiricalPlan("reviews-minilm", "kernel_shap", "sst2", "reviews-minilm-kernel_shap", train_size=200, longest=150),
    EmpiricalPlan(
        "reviews-minilm",
        "integrated_gradients",
        "sst2",
        "reviews-minilm-integrated_gradients",
        train_size=200,
        longest=150,
    ),
    EmpiricalPlan("scenes-vit", "kernel_shap", "scenes", "scenes-vit-kernel_shap", train_size=70, held_out=30),
)


def main() -> None:
    for plan in PLANS:
        trained = save(compute(plan), SHIPPED)
        print(f"{trained.name}: expected error {trained.card.expected():.3f}", flush=True)


if __name__ == "__main__":
    main()
