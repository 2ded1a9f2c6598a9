"""Every benchmark, one after the other: `python -m benchmarks [NAME ...]`."""

from __future__ import annotations

import subprocess
import sys

NAMES = (
    "model_work", "evaluation_work", "whole_evaluation", "picture_work", "relevance_work", "heads_work", "attack",
    "randomization", "scaffold", "picture_memory", "path_evaluations", "shapley_error", "captum", "cache_hits",
    "explain_hit", "study_claims", "study_placebo", "study_guesses", "study_votes", "page_script", "picture_page",
    "attention_page", "page_bytes", "sessions", "page_memory", "first_heatmap",
)  # fmt: skip


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(f"error: benchmark: unknown name {unknown[0]!r}. Known: {', '.join(NAMES)}.", file=sys.stderr)
        return 2
    failed = [
        name for name in names or NAMES if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"]).returncode
    ]
    if failed:
        print(f"error: these benchmarks failed: {', '.join(failed)}.", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
