"""What stands in a column, as a link and a command name it."""

from __future__ import annotations

import pytest

from engine.comparison.plan import ModelMethodPair, check_pairs, read_pair
from engine.errors import UsageError

PAIRS = [
    ModelMethodPair("reviews-minilm", "gradient_l2"),
    ModelMethodPair("owner/name@1a2b", "occlusion", (("removal", "pad"), ("window", "2"))),
    ModelMethodPair("/a folder, with = and @/it", "integrated_gradients", (("n_steps", "20"), ("steps", "fixed"))),
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.method)
def test_a_pair_comes_back_from_its_code(pair: ModelMethodPair) -> None:
    assert read_pair(pair.code) == pair


def test_the_code_is_short() -> None:
    assert PAIRS[1].code == "occlusion,removal=pad,window=2@owner/name@1a2b"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("gradient_l2", "column: must be method@model"),
        ("gradient_l2@", "column: must be method@model"),
        ("gradient_l2@ ", "column: must be method@model"),
        ("@reviews-minilm", "column: must be method@model"),
        ("gradiant@m", "Did you mean 'gradient'"),
        ("occlusion,windw=2@m", "parameter of occlusion: unknown name 'windw'"),
        ("occlusion,window=0@m", "occlusion.window: must be"),
    ],
)
def test_what_is_wrong_in_a_code_is_said(code: str, told: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_pair(code)
    assert told in str(refused.value)


def test_methods_of_pictures_are_others() -> None:
    assert read_pair("grad_cam@scenes-vit", "image").method == "grad_cam"
    with pytest.raises(UsageError, match="grad_cam"):
        read_pair("grad_cam@scenes-vit")


def test_two_to_eight_different_pairs_are_compared() -> None:
    check_pairs(PAIRS)
    for wrong in (PAIRS[:1], [ModelMethodPair(str(number), "random") for number in range(9)]):
        with pytest.raises(UsageError, match="columns: must be 2 to 8 pairs"):
            check_pairs(wrong)
    with pytest.raises(UsageError, match="lists the same model, method and parameters twice"):
        check_pairs([PAIRS[0], PAIRS[0]])
