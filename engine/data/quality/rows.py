"""`quality`: English sentences with German translations of every quality, with exact tags for their words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from engine.data.examples import Dataset, Drawn, LabelledExample, Span
from engine.data.generated import made
from engine.data.quality.errors import Translation, Word, translated
from engine.data.quality.sentence import Sentence, sentence
from engine.data.sized import COUNTS, SizedParams, chosen_split, size
from engine.params import from_mapping


def quality(options: Mapping[str, str], split: str | None, limit: int | None) -> Dataset:
    """Pairs of sentences; the label is the share of intact words of the translation, 0 to 1."""
    params = from_mapping(SizedParams, options, "quality")
    chosen = chosen_split(split, COUNTS)

    def draw(index: int) -> LabelledExample:
        return _example(Random(f"{params.seed}/{chosen}/{index}/quality"))

    return made("quality", params, chosen, Drawn(size(params, chosen, limit), draw), ())


def _example(chance: Random) -> LabelledExample:
    right = sentence(chance)
    return labelled(right, translated(right, chance))


def labelled(right: Sentence, found: Translation) -> LabelledExample:
    """Source and translation with a span for each bad word, and their tags: one figure a word, 1 is bad."""
    source, source_spans = written([(word, sense.comma) for word, sense in right.source])
    target, target_spans = written([(word.text, _comma(word)) for word in found.words])
    lost = {id(sense) for sense in found.lost}
    source_bad = [id(sense) in lost for _, sense in right.source]
    target_bad = [word.bad for word in found.words]
    extra: dict[str, object] = {
        "reference": written([(sense.german, sense.comma) for sense in right.target])[0],
        "source_tags": tags(source_bad),
        "target_tags": tags(target_bad),
        "missing": len(found.missing),
        "errors": list(found.errors),
    }
    return LabelledExample(
        source, target, found.score, _marked(source_spans, source_bad), _marked(target_spans, target_bad), extra
    )


def written(words: Sequence[tuple[str, bool]]) -> tuple[str, list[Span]]:
    """The words as a sentence, and where each stands. True: a comma before the word."""
    text, spans = "", list[Span]()
    for word, comma in words:
        text += ", " if comma and text else " " if text else ""
        spans.append((len(text), len(text) + len(word)))
        text += word if spans[0][0] != len(text) else word[0].upper() + word[1:]
    return f"{text}.", spans


def tags(bad: Sequence[bool]) -> str:
    return "".join(str(int(is_bad)) for is_bad in bad)


def _marked(spans: Sequence[Span], bad: Sequence[bool]) -> tuple[Span, ...]:
    return tuple(span for span, is_bad in zip(spans, bad, strict=True) if is_bad)


def _comma(word: Word) -> bool:
    return word.sense is not None and word.sense.comma
