"""How to cite an attack."""

from __future__ import annotations

from collections.abc import Mapping

from components.adversarial.words import CITED
from engine.attacks.result import Attacked
from engine.home import product_version
from engine.registry import Explainer


def cite(found: Attacked) -> str:
    """One sentence: what made these numbers, of which model, in which run."""
    origin = found.provenance
    settings = ", ".join(f"{name} = {value}" for name, value in found.attack.items() if name != "objective")
    return (
        f"Exegesis {product_version()}. Attack on {origin.method} of model {origin.model}, revision {origin.revision}, "
        f"{origin.dtype} on {origin.device}, seed {origin.seed}; {settings}."
    )


def references(found: Attacked, methods: Mapping[str, Explainer]) -> list[str]:
    """The attack, and the method that was attacked."""
    method = methods[found.provenance.method]
    return [CITED, f"{method.title} ({method.id}, version {method.version}): {method.citation.rstrip('.')}."]
