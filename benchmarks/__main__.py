"""Every benchmark, one after the other, or those named: `python -m benchmarks [NAME ...] [--json] [OPTION ...]`.

`python -m benchmarks NAME --help` describes a benchmark and lists its options.
"""

from __future__ import annotations

import importlib
import itertools
import subprocess
import sys
from collections.abc import Sequence

MODULES = {
    "model_work": "explainers",
    "evaluation_work": "explainers",
    "whole_evaluation": "whole_evaluation",
    "picture_work": "explainers",
    "relevance_work": "explainers",
    "heads_work": "explainers",
    "attack": "experiments",
    "randomization": "experiments",
    "scaffold": "scaffold",
    "picture_memory": "explainers",
    "kept_memory": "explainers",
    "path_evaluations": "exactness",
    "shapley_error": "shapley",
    "shapley_error_many": "shapley",
    "shapley_error_models": "shapley_models",
    "captum": "captum",
    "scale": "scale",
    "causal_work": "causal",
    "causal_context": "causal",
    "causal_shapes": "causal",
    "gpu": "gpu",
    "cache_hits": "cached",
    "explain_hit": "cached",
    "study_claims": "study",
    "study_placebo": "study",
    "study_guesses": "study",
    "study_votes": "study",
    "picture_page": "pages",
    "attention_page": "pages",
    "page_bytes": "pages",
    "sessions": "pages",
    "page_memory": "pages",
    "first_heatmap": "waiting",
    "page_switches": "waiting",
    "page_script": "waiting",
    "study_ratings": "waiting",
}
"""The module of each benchmark, which is a function of that name."""
NEED_CUDA = ("causal_shapes", "gpu")
"""The benchmarks that refuse to run without CUDA. Without names they are left out on such a machine, with a line."""


def main(arguments: Sequence[str]) -> int:
    """Run one benchmark in this process, several each in its own."""
    names = list(itertools.takewhile(lambda argument: not argument.startswith("-"), arguments))
    options = arguments[len(names) :]
    if unknown := [name for name in names if name not in MODULES]:
        print(f"error: benchmark: unknown name {unknown[0]!r}. Known: {', '.join(MODULES)}.", file=sys.stderr)
        return 2
    if len(names) == 1:
        module = importlib.import_module(f"benchmarks.{MODULES[names[0]]}")
        return int(getattr(module, names[0])(options))
    left_out = () if names or importlib.import_module("torch").cuda.is_available() else NEED_CUDA
    if left_out:
        print(f"Left out without CUDA: {', '.join(left_out)}.", file=sys.stderr)
    chosen = names or [name for name in MODULES if name not in left_out]
    commands = {name: [sys.executable, "-m", "benchmarks", name, *options] for name in chosen}
    failed = [name for name, command in commands.items() if subprocess.run(command).returncode]
    if failed:
        print(f"error: these benchmarks failed: {', '.join(failed)}.", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
