"""`exegesis models` and `exegesis datasets`: what there is, and what one of them is."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import values

if TYPE_CHECKING:
    from engine.data.examples import Dataset, ImageDataset

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def models(
    name: Annotated[str | None, typer.Argument(metavar="[MODEL]", help="Embedded model, folder or hub id.")] = None,
    as_json: Json = False,
) -> None:
    """List the embedded models, or load one and check it."""
    from engine.cli.output import facts, only_ours, print_json

    if name is None:
        return _list_models(as_json)
    with only_ours():
        from engine.models import catalog

        # Whether there is such a model is known at once; only then is it worth loading the libraries.
        catalog.locate(name)
        from engine.models.inspection import inspect_model

        found = inspect_model(name)
    if as_json:
        return print_json(found)
    checks, measured = found.pop("checks"), _accuracy(found)
    told = {key: value for key, value in found.items() if key not in ("metric", "scores")}
    print(facts({**told, "measured": measured}))
    for check in checks:
        print(f"{'ok' if check['ok'] else 'broken'}  {check['name']}: {check['detail']}")
    if not all(check["ok"] for check in checks):
        raise typer.Exit(1)
    return None


def _list_models(as_json: bool) -> None:
    from engine.cli.output import console, print_json, shown, table
    from engine.format import size_text
    from engine.models import catalog

    keys = ("title", "kind", "labels", "metric", "scores", "bytes", "licence", "command")
    names = [*catalog.embedded_models(), *catalog.embedded_image_models()]
    rows: list[dict[str, Any]] = [{"name": n, **{key: catalog.card(n).get(key) for key in keys}} for n in names]
    if as_json:
        return print_json(rows)
    made = table(["model", "kind", "labels", "measured", "size", "licence"], right=["size"])
    for row in rows:
        cells = (
            row["kind"] or "",
            row["labels"] or [],
            _accuracy(row),
            size_text(row["bytes"]),
            row["licence"] or "",
        )
        made.add_row(row["name"], *map(shown, cells))
    if rows:
        console().print(made)
    print(f"{len(rows)} embedded. Any folder or hub id of a supported family works too: exegesis models FOLDER.")
    return None


def _accuracy(card: dict[str, Any]) -> str:
    """The measured scores, by split."""
    from engine.models.catalog import fair_scores

    told = [f"{split} {score['value']:.3f}" for split, score in fair_scores(card).items()]
    return f"{card.get('metric') or 'score'}: {', '.join(told)}" if told else ""


def datasets(
    name: Annotated[
        str | None, typer.Argument(metavar="[DATASET]", help="Name, file, folder, zip of pictures or hub:owner/name.")
    ] = None,
    split: Annotated[str | None, typer.Option(metavar="S", help="Which part of it.")] = None,
    column: Annotated[list[str] | None, typer.Option(metavar="ROLE=NAME", help="Columns, as text=review.")] = None,
    as_json: Json = False,
) -> None:
    """List the data sets, or read one and describe it."""
    from engine.cli.output import facts, only_ours, print_json

    if name is None:
        return _list_datasets(as_json)
    mapping = values.pairs("--column", column or [], "text=review")
    with only_ours():
        found = _read(name, split, mapping or None)
    if as_json:
        return print_json(found)
    card = found.pop("card")
    print(facts({**found, "labels": [f"{k}: {v:,}" for k, v in found["labels"].items()], **card}))
    return None


def _list_datasets(as_json: bool) -> None:
    from dataclasses import asdict

    from engine.cli.output import console, print_json, table
    from engine.data.datasets import dataset_card, dataset_names
    from engine.data.image_datasets import image_card, image_names

    cards = {name: asdict(dataset_card(name)) for name in dataset_names()}
    cards |= {name: asdict(image_card(name)) for name in image_names()}
    if as_json:
        return print_json([{"name": name, **card} for name, card in cards.items()])
    made = table(["data set", "title", "size", "licence"])
    for name, card in cards.items():
        made.add_row(name, card["title"], *(card[key].partition(". ")[0].rstrip(".") for key in ("size", "licence")))
    console().print(made)
    return None


def _read(name: str, split: str | None, columns: dict[str, str] | None) -> dict[str, Any]:
    """The facts of a data set, of pictures or of texts."""
    from engine.data.image_datasets import is_images, load_images

    if is_images(name):
        return _described_pictures(load_images(name, split=split, columns=columns))
    from engine.data.datasets import load

    return _described(load(name, split=split, columns=columns))


def _described_pictures(data: ImageDataset) -> dict[str, Any]:
    from dataclasses import asdict

    counts = Counter(data.labels)
    first = data[0]
    return {
        "name": data.id,
        "split": data.split,
        "task": "classification of pictures",
        "examples": len(data),
        "labels": {label: counts[i] for i, label in enumerate(data.label_names)},
        "unlabelled": counts[None],
        "first_picture": f"{first.pixels.shape[1]} x {first.pixels.shape[0]} pixels",
        "revision": data.revision,
        "notes": list(data.notes),
        "card": asdict(data.card),
    }


def _described(data: Dataset) -> dict[str, Any]:
    from dataclasses import asdict

    counts = Counter(example.label for example in data.examples)
    names = data.label_names
    labels = {label: counts[i] for i, label in enumerate(names)} if data.task == "classification" else {}
    return {
        "name": data.id,
        "split": data.split,
        "task": data.task,
        "pairs": data.pairs,
        "examples": len(data),
        "labels": labels,
        "unlabelled": counts[None],
        "with_rationale": sum(bool(e.rationale or e.rationale_pair) for e in data.examples),
        "revision": data.revision,
        "notes": list(data.notes),
        "card": asdict(data.card),
    }
