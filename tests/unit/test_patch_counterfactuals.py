"""Patches whose removal flips a picture's prediction, beside an exhaustive search and predictions run anew."""

from __future__ import annotations

import itertools
import json

import pytest

from engine.counterfactuals import patches as module
from engine.counterfactuals.patches import PatchCounterfactuals, patch_counterfactuals
from engine.data import image_datasets
from engine.errors import Cancelled, UsageError
from engine.explain import explain
from engine.metrics.ablation import PROBE, ablated_predictions
from engine.progress import CancelToken, cancellable
from engine.request import Picture, Request
from engine.result import Prediction
from tests.unit.vision.tiny_vit import blobs, vit_folder

pytestmark = pytest.mark.usefixtures("home")


def without(model: str, picture: Picture, patches: tuple[int, ...], removal: str = "mean") -> Prediction:
    request = Request(model, PROBE, picture)
    first = int(explain(request).features[0])
    [one] = ablated_predictions(request, [first + patch for patch in patches], (removal,))
    return one.left


def check(result: PatchCounterfactuals, model: str, picture: Picture) -> None:
    """Each set flips by itself, and no patch of it can be put back."""
    for one in result.results:
        assert list(one.patches) == sorted(set(one.patches))
        alone = without(model, picture, one.patches, result.removal)
        assert alone == one.prediction
        assert alone.index != result.original.index
        for patch in one.patches if len(one.patches) > 1 else ():
            rest = tuple(other for other in one.patches if other != patch)
            assert without(model, picture, rest, result.removal).index == result.original.index


@pytest.mark.parametrize("seed", range(4))
def test_a_wide_beam_finds_the_smallest_sets_of_an_exhaustive_search(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, picture = str(vit_folder()), blobs(seed)
    monkeypatch.setattr(module, "BEAM", 10_000)
    monkeypatch.setattr(module, "MOST_PATCHES", 3)
    result = patch_counterfactuals(model, picture)
    check(result, model, picture)
    sizes = {
        size: [
            patches
            for patches in itertools.combinations(range(12), size)
            if without(model, picture, patches).index != result.original.index
        ]
        for size in (1, 2)
    }
    fewest = next((size for size, sets in sizes.items() if sets), None)
    assert result.is_smallest
    assert [one.flipped for one in result.rounds[:2]] == [len(sizes[size]) for size in (1, 2)][: len(result.rounds)]
    if fewest is None:
        assert len(result.rounds) == 3
    else:
        assert len(result.rounds) == len(result.results[0].patches) == fewest
        assert {one.patches for one in result.results} <= set(sizes[fewest])


def test_a_narrow_beam_does_not_claim_what_it_did_not_try(monkeypatch: pytest.MonkeyPatch) -> None:
    model, picture = str(vit_folder()), blobs(0)
    original = explain(Request(model, PROBE, picture)).prediction
    rare = min(range(3), key=lambda at: original.probabilities[at])
    monkeypatch.setattr(module, "BEAM", 1)
    monkeypatch.setattr(module, "MOST_PATCHES", 4)
    result = patch_counterfactuals(model, picture, "blur", original.labels[rare])
    check(result, model, picture)
    assert all(one.complete == (one.changes == 1) for one in result.rounds)
    assert all(one.prediction.index == rare for one in result.results)
    if not result.results:
        assert result.closest is not None
        assert result.closest.prediction == without(model, picture, result.closest.patches, "blur")
        assert next(result.rows())["flips"] is False


def test_results_share_few_patches_and_rows_name_their_places() -> None:
    result = patch_counterfactuals("scenes-marked-vit", load("scenes-marked"))
    check(result, "scenes-marked-vit", load("scenes-marked"))
    assert result.rounds[0].flipped == 1, "the mark alone"
    [row] = result.rows()
    assert (row["row"] - 1, row["column"] - 1) == divmod(result.results[0].patches[0], result.grid[1])
    assert result.as_json()["results"][0]["patches"][0] == [row["row"], row["column"]]
    assert result.as_csv().count("\n") == 2
    assert "1 of 64 single patches flips it." in result.statements


def test_the_closest_set_is_told_where_no_flip_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module._Verifier, "flips", lambda self, patches: False)
    result = patch_counterfactuals("scenes-marked-vit", load("scenes-marked"))
    assert result.results == ()
    assert result.closest is not None


def load(name: str) -> Picture:
    return Picture(image_datasets.load_images(f"{name}:count=1")[0].pixels)


def test_a_second_call_reads_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    first = patch_counterfactuals(str(vit_folder()), blobs(1))
    monkeypatch.setattr(module, "_search", None)
    assert patch_counterfactuals(str(vit_folder()), blobs(1)) == first
    json.dumps(first.as_json(), allow_nan=False)
    assert first.evaluations > sum(one.tried for one in first.rounds)


def test_what_is_not_allowed_is_told() -> None:
    model, picture = str(vit_folder()), blobs(0)
    predicted = explain(Request(model, PROBE, picture)).prediction.label
    with pytest.raises(UsageError, match="target: must be another class than the predicted one"):
        patch_counterfactuals(model, picture, target=predicted)
    with pytest.raises(UsageError, match="removal: unknown name 'mask'"):
        patch_counterfactuals(model, picture, "mask")
    token = CancelToken()
    token.cancel()
    with cancellable(token), pytest.raises(Cancelled):
        patch_counterfactuals(model, picture)
