"""What the recorded run says: which tests pass a mutant, how long each takes, and which are to be run for it."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Records:
    """Of each test: seconds by the clock, of the processor when it is run alone, outcome. Of each mutant: its tests."""

    wall: dict[str, float] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    outcome: dict[str, str] = field(default_factory=dict)
    mutants: Counter[str] = field(default_factory=Counter)
    """How many mutants each test passes."""
    passing: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    at_import: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Of each mutant that is passed when a file of tests is imported: these files."""

    def covering(self, mutant: int) -> list[str]:
        """The tests that can notice a mutant: they or their files pass it, and they are green; the fastest first."""
        of_files = {test for test in self.outcome if file_of(test) in self.at_import.get(mutant, ())}
        green = [test for test in self.passing[mutant] | of_files if self.outcome.get(test) == "passed"]
        return sorted(green, key=lambda test: (self.cpu[test], test))


def read(folder: Path) -> Records:
    found = Records()
    for file in folder.glob("*.jsonl"):
        for line in file.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            for mutant in record["hits"]:
                if "file" in record:
                    found.at_import[mutant].add(record["file"])
                else:
                    found.passing[mutant].add(record["test"])
            if "wall" in record:
                test = record["test"]
                found.wall[test], found.cpu[test] = record["wall"], record["cpu"] + record["shared"]
                found.outcome[test] = record["outcome"]
    found.mutants.update(test for tests in found.passing.values() for test in tests)
    return found


def file_of(test: str) -> str:
    return test.partition("::")[0]


def words(path: str) -> set[str]:
    """`tests/unit/study/test_ratings.py` -> study, ratings and less telling ones."""
    return set(re.findall("[a-z]+", path.lower()))


def chosen(known: Records, mutant: int, source: str, most: int, seconds: float) -> list[str]:
    """Half of what is allowed for tests whose path is most like the source's, those that pass few mutants first.

    The rest for the fastest test of each file, then the second of each and so on. A file's tests stand together.
    """
    covering = known.covering(mutant)
    files: dict[str, list[str]] = defaultdict(list)
    for test in covering:
        files[file_of(test)].append(test)
    close = sorted(covering, key=lambda test: (-len(words(file_of(test)) & words(source)), known.mutants[test]))
    wide = sorted((place, known.cpu[test], test) for tests in files.values() for place, test in enumerate(tests))
    taken: set[str] = set()
    for tests, share in ((close, 0.5), ([test for *_, test in wide], 1.0)):
        for test in tests:
            spent = sum(known.cpu[one] for one in taken) + known.cpu[test]
            if not taken or (test not in taken and len(taken) < share * most and spent <= share * seconds):
                taken.add(test)
    order = {name: number for number, name in enumerate(dict.fromkeys(file_of(test) for test in close))}
    return sorted(taken, key=lambda test: (order[file_of(test)], known.cpu[test], test))
