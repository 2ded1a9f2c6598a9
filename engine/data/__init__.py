"""Data sets of texts and of pictures: embedded, generated, from files and from the hub. Nothing here imports torch."""

from __future__ import annotations

from engine.data.datasets import dataset_names, load
from engine.data.examples import Dataset, ImageDataset, ImageExample, LabeledExample
from engine.data.image_datasets import image_names, load_images
from engine.data.sources import ExampleSource, SourceExample, list_datasets, load_source

__all__ = [
    "Dataset",
    "ExampleSource",
    "ImageDataset",
    "ImageExample",
    "LabeledExample",
    "SourceExample",
    "dataset_names",
    "image_names",
    "list_datasets",
    "load",
    "load_images",
    "load_source",
]
