"""What was guessed, by item and by annotator, as tables. First looks alone are counted, as in the answer above."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from engine.study.forward.guesses import Guessed
from engine.study.item_names import NamedItem


def guessed_items_table(answers: Sequence[Guessed], items: Mapping[str, NamedItem]) -> pd.DataFrame:
    """A row an item: what the model said, what people guessed, how many were right, and how sure they were."""
    groups = _groups((answer.item, answer) for answer in answers if not answer.repeat)
    return pd.DataFrame(
        [
            {
                "Item": items[place].title,
                "Model said": items[place].said.label,
                "Guessed": _classes(groups[place], items[place].said.labels),
                "Right": _right(groups[place]),
                **_rest(groups[place]),
            }
            for place in sorted(groups, key=int)
        ]
    )


def guessers_table(answers: Sequence[Guessed]) -> pd.DataFrame:
    """A row an annotator: how many were right, with and without an explanation, and how sure they were."""
    groups = _groups((answer.annotator, answer) for answer in answers if not answer.repeat)
    return pd.DataFrame(
        [
            {
                "Annotator": name,
                "Right": _right(own),
                "With an explanation": _right([one for one in own if one.explained]),
                "Without": _right([one for one in own if not one.explained]),
                **_rest(own),
            }
            for name, own in sorted(groups.items())
        ]
    )


def _groups(named: Iterable[tuple[str, Guessed]]) -> dict[str, list[Guessed]]:
    groups: dict[str, list[Guessed]] = defaultdict(list)
    for name, answer in named:
        groups[name].append(answer)
    return groups


def _right(own: Sequence[Guessed]) -> str | None:
    """Of those that were guesses."""
    told = [answer for answer in own if answer.label is not None]
    return f"{sum(answer.right for answer in told):,} of {len(told):,}" if told else None


def _classes(own: Sequence[Guessed], labels: Sequence[str]) -> str | None:
    """The classes that were guessed, the most frequent first."""
    counts = Counter(answer.label for answer in own if answer.label is not None).most_common()
    return ", ".join(f"{labels[label]} {times:,}" for label, times in counts) or None


def _rest(own: Sequence[Guessed]) -> dict[str, float | None]:
    sure = [answer.sure for answer in own if answer.sure is not None]
    took = [answer.seconds for answer in own if answer.seconds > 0]
    return {
        "How sure": round(float(np.mean(sure)), 1) if sure else None,
        "Cannot tell": sum(answer.label is None for answer in own),
        "Median seconds": round(float(np.median(took)), 1) if took else None,
    }
