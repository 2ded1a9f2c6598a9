"""Differences that are not there: `python -m benchmarks.study_claims [--studies 200]`.

The share of simulated studies of equally good methods in which the partial order tells any two apart. Each of the
annotators has a taste of their own, drawn anew for each study, so that their votes are not independent.
"""

from __future__ import annotations

import sys

from benchmarks.harness import Limit, benchmark_parser, judge
from engine.study.ratings import ERROR_RATE
from engine.study.simulation import RankingSimulation, false_difference_rate

STUDIES = 200
CASES = {
    "4 methods, 20 annotators, 10 items": RankingSimulation(dict.fromkeys("ABCD", 0.0), annotators=20, items=10),
    "6 methods, 20 annotators, 10 items": RankingSimulation(dict.fromkeys("ABCDEF", 0.0), annotators=20, items=10),
    "4 methods, 3 annotators, 10 items": RankingSimulation(dict.fromkeys("ABCD", 0.0), annotators=3, items=10),
}


def main() -> int:
    studies = benchmark_parser(__doc__, as_json=False, studies=STUDIES).parse_args().studies
    shares = {case: false_difference_rate(made, studies) for case, made in CASES.items()}
    return judge(
        [Limit(f"{case}, {studies} studies", 100 * share, 100 * ERROR_RATE, "%") for case, share in shares.items()]
    )


if __name__ == "__main__":
    sys.exit(main())
