"""The check for trivial protocols: which features are which, shares by hand, and its verdict."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from engine.data.sources import load_source
from engine.request import Example
from engine.scaffold import measurement
from engine.scaffold.explainer_checks import (
    BORDER,
    FIRST,
    LAST,
    LEAN_THRESHOLD,
    PUNCTUATION,
    STATIC,
    STOP,
    STOP_WORDS,
    UNIFORM,
    TrivialProtocols,
    border_patches,
    feature_kinds,
    trivial_protocols,
)
from engine.scaffold.plan import SMAT, EvaluationSample
from engine.scaffold.result import HeadCoefficients
from engine.vision.picture import read_view
from tests.explaining import checkpoint, classifier
from tests.unit.scaffold.marking import marked_file, marked_pictures
from tests.unit.vision.tiny_vit import save_vit

pytestmark = pytest.mark.usefixtures("home")


def asked(folder: Path) -> EvaluationSample:
    data = str(marked_file(folder / "data.jsonl"))
    source = load_source("text", data, None, tolerant=True)
    return EvaluationSample(str(checkpoint("bert")), data, None, tuple(range(source.count)), source)


def made_up(learned: list[float], uniform: list[float]) -> TrivialProtocols:
    of = EvaluationSample("bert-marked", "reviews", None, (0, 1, 2), load_source("text", "reviews"))
    shares: Mapping[tuple[str, str], np.ndarray] = {
        (PUNCTUATION, UNIFORM): np.array(uniform), (PUNCTUATION, SMAT): np.array(learned),
    }  # fmt: skip
    return TrivialProtocols(of, (0, 1, 2), shares, {})


def test_kinds_of_tokens() -> None:
    given = Example("The film, wasn't good - it's not!")
    coded = classifier("bert").encode(given)
    kinds = feature_kinds(coded, given)
    pieces = [given.text[coded.tokens[at].start : coded.tokens[at].end] for at in coded.features]
    assert {piece for piece, hit in zip(pieces, kinds[PUNCTUATION], strict=True) if hit} == {",", "'", "-", "!"}
    stops = "".join(piece for piece, hit in zip(pieces, kinds[STOP], strict=True) if hit)
    assert stops.lower() == "the"  # a negation is no stop word, nor is what is joined to another word
    assert kinds[FIRST].tolist() == [True] + [False] * (len(pieces) - 1)
    assert kinds[LAST].tolist() == [False] * (len(pieces) - 1) + [True]


def test_words_that_decide_labels_are_no_stop_words() -> None:
    assert not STOP_WORDS & {"not", "no", "never", "nor", "but", "very", "too", "more", "most", "only"}
    assert {"the", "is", "and", "of"} <= STOP_WORDS


def test_the_border_of_a_grid() -> None:
    assert border_patches((3, 4)).reshape(3, 4).tolist() == [[True] * 4, [True, False, False, True], [True] * 4]
    assert border_patches((2, 2)).all()


def test_shares_are_those_of_the_maps(tmp_path: Path) -> None:
    of = asked(tmp_path)
    found = trivial_protocols(of, HeadCoefficients(np.full(12, 1 / 12)))
    assert found.explainers == (UNIFORM, STATIC, SMAT)
    assert sorted(found.examples) == list(of.indices)
    at = found.examples.index(0)  # the film is a quiet triumph
    stops, tokens = 3, len(classifier("bert").encode(Example("the film is a quiet triumph")).features)
    assert found.shares[STOP, UNIFORM][at] == pytest.approx(stops / tokens)
    assert found.shares[FIRST, UNIFORM][at] == pytest.approx(1 / tokens)
    for kind in found.kinds:  # it starts as the static explainer
        np.testing.assert_allclose(found.shares[kind, SMAT], found.shares[kind, STATIC], atol=1e-6)
        assert found.mass(kind, UNIFORM).excess == 0


def test_all_mass_lies_on_the_only_token(tmp_path: Path) -> None:
    found = trivial_protocols(asked(tmp_path), None)
    assert found.explainers == (UNIFORM, STATIC)
    at = found.examples.index(5)  # film, a token of this model
    assert found.shares[FIRST, STATIC][at] == found.shares[LAST, STATIC][at] == pytest.approx(1.0)
    assert found.suspects == ()


def test_pictures_are_checked_for_their_border(tmp_path: Path) -> None:
    of = marked_pictures(str(save_vit(tmp_path / "vit")), 3)
    found = trivial_protocols(of, None)
    assert found.kinds == (BORDER,)
    np.testing.assert_allclose(found.shares[BORDER, UNIFORM], border_patches(read_view(of.teacher).grid).mean())


def test_an_explainer_that_moved_enough_mass_is_suspect() -> None:
    leaning = made_up([0.5, 0.6, 0.55], [0.1, 0.1, 0.1])
    [found] = leaning.suspects
    assert found.excess == pytest.approx(0.45)
    assert found.excess >= LEAN_THRESHOLD
    assert not made_up([0.15, 0.18, 0.16], [0.1, 0.1, 0.1]).suspects
    assert not made_up([0.0, 0.9, 0.0], [0.1, 0.1, 0.1]).suspects, "one example of three proves nothing"


def test_what_is_measured_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = asked(tmp_path)
    first = trivial_protocols(of, None)
    monkeypatch.setattr(measurement, "measure_masses", lambda asked, learned: 1 / 0)
    np.testing.assert_array_equal(trivial_protocols(of, None).shares[STOP, STATIC], first.shares[STOP, STATIC])
    with pytest.raises(ZeroDivisionError):
        trivial_protocols(of, HeadCoefficients(np.full(12, 1 / 12)))
