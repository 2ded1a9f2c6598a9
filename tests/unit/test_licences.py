"""What the product installs may be used under terms like its own, Apache-2.0."""

from __future__ import annotations

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from unittest.mock import Mock

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PERMISSIVE = re.compile(r"MIT|BSD|Apache|ISC|PSF|Python Software Foundation|Mozilla|MPL-2\.0")
BINDING = re.compile(r"GPL|General Public|SSPL|Commons Clause|NonCommercial|Proprietary", re.IGNORECASE)
"""Terms that would bind the whole product, or forbid some of its uses."""
CUDA = re.compile(r"nvidia-|cuda-")
"""What a build of torch for NVIDIA's GPUs brings with it, under NVIDIA's terms; the product runs without."""


def installed(name: str) -> dict[str, Distribution]:
    """The distribution and all that it requires on this machine but CUDA, by name."""
    waiting, seen = [(name, "")], set[tuple[str, str]]()
    found: dict[str, Distribution] = {}
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        found[canonicalize_name(one[0])] = of = distribution(one[0])
        for wanted in map(Requirement, of.requires or ()):
            if CUDA.match(canonicalize_name(wanted.name)):
                continue
            if wanted.marker is None or wanted.marker.evaluate({"extra": one[1]}):
                waiting += [(wanted.name, extra) for extra in ("", *wanted.extras)]
    return found


def license(found: Distribution) -> str:
    """As the package says it: an expression, else its classifiers, else the first line of its text."""
    expression, classifiers, text = (
        found.metadata.get_all(name, []) for name in ("License-Expression", "Classifier", "License")
    )
    listed = [line.rpartition(" :: ")[2] for line in classifiers if line.startswith("License ::")]
    return "".join(expression) or " AND ".join(listed) or "".join(text).partition("\n")[0]


def is_permissive(said: str) -> bool:
    """One of the terms that it may be chosen under is."""
    return any(PERMISSIVE.search(term) and not BINDING.search(term) for term in said.split(" OR "))


def test_the_licence_of_all_that_is_installed_is_permissive() -> None:
    found = installed("exegesis")
    assert {"torch", "streamlit", "sqlalchemy"} <= found.keys()
    assert {name: license(one) for name, one in found.items() if not is_permissive(license(one))} == {}


@pytest.mark.parametrize(
    ("said", "permissive"),
    [
        ("GPL-3.0-or-later", False),
        ("GNU Lesser General Public License v3 (LGPLv3)", False),
        ("MIT AND LGPL-2.1", False),
        ("", False),
        ("Apache-2.0 OR GPL-2.0-only", True),
        ("BSD-3-Clause AND MIT", True),
    ],
)
def test_what_is_permissive(said: str, permissive: bool) -> None:
    assert is_permissive(said) is permissive


def test_cuda_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = Mock(requires=["nvidia-cublas>=13", "cuda-bindings", "sympy"], metadata={})
    named = {"torch": torch, "sympy": Mock(requires=None)}
    monkeypatch.setattr(f"{__name__}.distribution", named.__getitem__)
    assert installed("torch").keys() == {"torch", "sympy"}


def test_a_package_that_is_missing_is_no_licence() -> None:
    with pytest.raises(PackageNotFoundError):
        installed("exegesis-of-nothing")
