"""Do the intervals of guesses hold what they say? `python -m benchmarks.study_guesses [--studies 400]`.

Guessers with a known skill, who differ from each other: the share of 95 % intervals of an accuracy that miss it, and
the share of studies in which any interval of a difference to no explanation does.
"""

from __future__ import annotations

import sys

from benchmarks.harness import Limit, benchmark_parser, judge
from engine.study.counted_votes import WITHOUT
from engine.study.ratings import ERROR_RATE
from engine.study.simulation import GuessSimulation, measure_coverage

STUDIES = 400
EQUAL = dict.fromkeys((WITHOUT, "A", "B", "C"), 0.6)
DIFFERENT = {WITHOUT: 0.6, "A": 0.75, "B": 0.9, "C": 0.6}
CASES = {
    "equal skills, 20 annotators": GuessSimulation(EQUAL),
    "different skills, 20 annotators": GuessSimulation(DIFFERENT),
    "different skills, 5 annotators": GuessSimulation(DIFFERENT, annotators=5),
    "different skills, 20 annotators who differ much": GuessSimulation(DIFFERENT, taste=1.0),
}


def main() -> int:
    studies = benchmark_parser(__doc__, as_json=False, studies=STUDIES).parse_args().studies
    limits = []
    for case, made in CASES.items():
        found = measure_coverage(made, studies)
        missed = {"accuracies missed": found.alone, "studies that miss a difference": found.together}
        limits += [Limit(f"{case}: {what}", 100 * (1 - held), 100 * ERROR_RATE, "%") for what, held in missed.items()]
    return judge(limits)


if __name__ == "__main__":
    sys.exit(main())
