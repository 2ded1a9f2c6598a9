"""Families by their config.json: which adapter, what is refused, and the table of the documentation."""

from __future__ import annotations

import pytest

from engine.errors import ExegesisError
from engine.models.adapters import ADAPTERS, CAUSAL_ADAPTERS, OTHER_ADAPTERS, adapter_of_config
from engine.models.text_adapter import TextAdapter
from tests.project import ROOT

EVERY = (*ADAPTERS.values(), *OTHER_ADAPTERS.values(), *CAUSAL_ADAPTERS.values())
DOCUMENT = ROOT / "docs" / "models-and-data.md"


def row(adapter: TextAdapter) -> str:
    """A family's line in the documentation."""
    lrp = "yes" if adapter.lrp else f"no rule for {adapter.lrp_missing}"
    layers = "yes" if adapter.reading != "decoder" else "no: its head reads a decoder"
    return f"| {adapter.family} | `{adapter.architecture}` | {lrp} | {layers} |"


def test_the_documentation_says_what_works_with_each_family() -> None:
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    start = lines.index("| --- | --- | --- | --- |") + 1
    assert lines[start : start + len(EVERY)] == [row(adapter) for adapter in EVERY]
    assert not lines[start + len(EVERY)].startswith("|")


def test_the_architecture_decides_where_a_family_has_two() -> None:
    t5 = {"model_type": "t5"}
    assert adapter_of_config(t5 | {"architectures": ["T5ForSequenceClassification"]}, "m").reading == "decoder"
    assert adapter_of_config(t5 | {"architectures": ["T5EncoderForSequenceClassification"]}, "m") is ADAPTERS["t5"]
    assert adapter_of_config({"model_type": "modernbert", "classifier_pooling": "mean"}, "m").reading == "mean"
    assert adapter_of_config({"model_type": "modernbert"}, "m").reading == "module"


def test_an_unknown_family_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        ExegesisError, match=r"'funnel' is not supported\. Supported families of classifiers: BERT, .*BART"
    ):
        adapter_of_config({"model_type": "funnel", "architectures": ["FunnelForSequenceClassification"]}, "m")


def test_the_refusal_of_another_type_lists_families_of_texts_and_of_pictures() -> None:
    with pytest.raises(ExegesisError, match=r"'swinv2' is not supported.* BERT.*image classifiers: ViT, DeiT.* Swin\."):
        adapter_of_config({"model_type": "swinv2", "architectures": ["Swinv2ForImageClassification"]}, "m")
