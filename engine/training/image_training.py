"""Training of vision transformers, from new weights or from a checkpoint."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import torch
import transformers
from jaxtyping import Float
from torch import Tensor, nn

from engine.data.examples import ImageDataset
from engine.errors import ExegesisError, not_allowed
from engine.models import catalog, checkpoint_files
from engine.models.checkpoint_files import weights_sha256
from engine.models.loading import label_names, silence_libraries
from engine.progress import CancelToken, Report, silent
from engine.training.config import NEW_VIT, ImageTrainConfig
from engine.training.image_data import (
    ImageCorpus,
    Normalization,
    PixelSet,
    augment,
    drop_patches,
    image_source,
    labeled_places,
    load_further_images,
    measure_normalization,
    read_image_corpus,
    read_pixels,
    split_held_out_images,
)
from engine.training.loop import SplitScore, Tensors, TrainingLoop, evaluate, warmup_cosine
from engine.training.recipe import TrainingRecipe, TrainResult, describe_training, prepare_output_folder

BILINEAR = 2
"""Pillow's number for bilinear resampling, as used in preprocessor files."""
NOISE_QK, IDENTITY_QK = 0.7, 0.7
NOISE_VO, IDENTITY_VO = 0.4, 0.4
"""Factors of noise and identity in the initial products of attention weights: query-key, and value-output."""


def train_images(config: ImageTrainConfig, report: Report = silent, cancel: CancelToken | None = None) -> TrainResult:
    """Train, store the best epoch by the score on held-out training images, and evaluate the stored model."""
    return ImageTraining(config, report, cancel).run()


class ImageTrainingLoop(TrainingLoop):
    """Training loop with augmentation and a cosine learning rate.

    Augmentation uses torch's generator, whose state is part of the checkpoint.
    """

    def _rate(self) -> float:
        return warmup_cosine(self.state.step, self.total, self.config.warmup)

    def _inputs(self, indices: list[int]) -> Tensors:
        data, config = cast(PixelSet, self.data), cast(ImageTrainConfig, self.config)
        pixels = augment(data.unit(indices, self.device), config)
        return {"pixel_values": data.normalization.apply(pixels)}


class ImageTraining(TrainingRecipe[ImageTrainConfig]):
    """Training of a vision transformer."""

    kind = "Vision transformer"
    normalization: Normalization

    def __init__(self, config: ImageTrainConfig, report: Report, cancel: CancelToken | None) -> None:
        super().__init__(config, report, cancel)
        self.corpus: ImageCorpus = read_image_corpus(config.dataset)
        self.labels = self.corpus.labels
        self.further = load_further_images(config.measure, self.corpus)
        self.base = None if config.base == NEW_VIT else read_vit_base(config.base)
        self.size = config.size if self.base is None else self.base.size
        self.out = prepare_output_folder(Path(config.out), None if self.base is None else self.base.folder)
        self.train_places, self.held_places = split_held_out_images(self.corpus, config)

    def new_loop(self) -> TrainingLoop:
        identity: dict[str, Any] = self.config.identity() | {"data set's content": self.corpus.train.revision}
        if self.base is None:
            module = new_vit(self.config, self.labels)
        else:
            module = load_vit(self.base.folder, self.labels)
            identity |= {"base's weights": self.base.sha256}
        module = module.to(self.device)
        pixels = self._read(self.corpus.train, self.train_places)
        self.normalization = measure_normalization(pixels) if self.base is None else self.base.normalization
        train = PixelSet(pixels, _labels(self.corpus.train, self.train_places), self.normalization)
        return ImageTrainingLoop(module, train, self._held_out, self.config, False, identity)

    def training_mode(self, module: Any) -> contextlib.AbstractContextManager[None]:
        share = self.config.drop_patches
        return drop_patches(module.vit.embeddings, share) if share else contextlib.nullcontext()

    def store(self, module: Any) -> None:
        store_vit(module, self.out, self.size, self.normalization, self.config.half)

    def measure(self, loop: TrainingLoop) -> dict[str, SplitScore]:
        stored = load_vit(self.out, self.labels).to(self.device)
        scores = {"held-out": evaluate(stored, self._held_out, False)}
        for name, data in (self.corpus.others | self.further).items():
            scores[name] = evaluate(stored, self._pixel_set(data, labeled_places(data)), False)
        return scores

    def facts(self, module: Any) -> dict[str, Any]:
        facts = describe_training(self.config.base, self.config.dataset, image_source(self.config.dataset))
        if self.base is not None:
            name = self.config.base
            license = "see the base's own card"
            facts["base"] = {"name": name, "source": name, "licence": license, "sha256": self.base.sha256}
        config = module.config
        grid = config.image_size // config.patch_size
        shape = (
            f"{config.num_hidden_layers} blocks x {config.hidden_size}, {config.num_attention_heads} heads; "
            f"images of {config.image_size} x {config.image_size} pixels in {grid} x {grid} patches"
        )
        return facts | {"shape": shape}

    def sizes(self) -> dict[str, int]:
        return {"train": len(self.train_places), "held_out": len(self.held_places), "dropped": 0}

    @cached_property
    def _held_out(self) -> PixelSet:
        return self._pixel_set(self.corpus.train, self.held_places)

    def _pixel_set(self, data: ImageDataset, places: Sequence[int]) -> PixelSet:
        return PixelSet(self._read(data, places), _labels(data, places), self.normalization)

    def _read(self, data: ImageDataset, places: Sequence[int]) -> torch.Tensor:
        return read_pixels(data, places, self.size, self.report, self.cancel)


def _labels(data: ImageDataset, places: Sequence[int]) -> list[float]:
    return [float(data.labels[place] or 0) for place in places]


@dataclass(frozen=True)
class VitBase:
    """A ViT checkpoint to fine-tune: its folder, image size, normalization and hash of weights."""

    folder: Path
    size: int
    normalization: Normalization
    sha256: str


def read_vit_base(base: str) -> VitBase:
    """Read a ViT checkpoint, given its embedded name, folder or hub ID."""
    embedded = base in catalog.embedded_image_models()
    folder = catalog.locate(base).folder if embedded else catalog.locate_base(base)
    config = checkpoint_files.read_base_config(folder)
    if config.get("model_type") != "vit":
        raise ExegesisError(
            f"base: must be a ViT, or vit for a new one, got {base} of type {config.get('model_type')!r}."
        )
    size = config.get("image_size", 224)
    if not isinstance(size, int):
        raise ExegesisError(f"base: must read square images, got {base} with the size {size}. Choose another base.")
    file = folder / checkpoint_files.PROCESSOR
    if not file.is_file():
        raise ExegesisError(
            f"base: {folder.name} has no {checkpoint_files.PROCESSOR}, which defines how it reads images. Add it."
        )
    processor = json.loads(file.read_text(encoding="utf-8"))
    mean, std = (tuple(processor.get(name, (0.5,) * 3)) for name in ("image_mean", "image_std"))
    return VitBase(folder, size, Normalization(mean, std), weights_sha256(folder))


def load_vit(folder: Path, labels: tuple[str, ...]) -> nn.Module:
    """Load the checkpoint in float32 with one logit per label; a head of another size is replaced by a new one."""
    with silence_libraries():
        return transformers.ViTForImageClassification.from_pretrained(
            str(folder),
            num_labels=len(labels),
            use_safetensors=True,
            trust_remote_code=False,
            ignore_mismatched_sizes=True,
            dtype=torch.float32,
            **label_names(labels),
        ).float()


def store_vit(module: Any, out: Path, size: int, normalization: Normalization, half: bool) -> None:
    """Write weights, config and preprocessing in the format of transformers."""
    with silence_libraries():
        (module.half() if half else module).save_pretrained(str(out))
    processor = {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": {"height": size, "width": size},
        "resample": BILINEAR,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": list(normalization.mean),
        "image_std": list(normalization.std),
    }
    (out / checkpoint_files.PROCESSOR).write_text(json.dumps(processor, indent=2) + "\n", encoding="utf-8")


def new_vit(config: ImageTrainConfig, labels: tuple[str, ...]) -> nn.Module:
    """Create a `ViTForImageClassification` with random weights; its MLPs are four times as wide."""
    if config.size % config.patch:
        raise not_allowed("patch", f"a divisor of size, {config.size}", config.patch)
    if config.width % 4 or config.width % config.heads:
        raise not_allowed("width", f"a multiple of 4 and of the {config.heads} heads", config.width)
    settings: Any = transformers.ViTConfig(
        image_size=config.size,
        patch_size=config.patch,
        num_hidden_layers=config.layers,
        hidden_size=config.width,
        num_attention_heads=config.heads,
        intermediate_size=4 * config.width,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        **label_names(labels),
    )
    module = transformers.ViTForImageClassification(settings)
    if config.mimetic:
        _initialize_mimetic(module, config)
    return module


@torch.no_grad()
def _initialize_mimetic(module: Any, config: ImageTrainConfig) -> None:
    """Initialize positions as sinusoids and attention like trained attention, so that little data suffices."""
    side, width = config.size // config.patch, config.width
    head_size = width // config.heads
    module.vit.embeddings.position_embeddings[0, 1:] = sincos_positions(side, width)
    for block in module.vit.layers:
        attention = block.attention
        for head in range(config.heads):
            left, right = _factorize(near_identity(width, NOISE_QK, IDENTITY_QK))
            rows = slice(head * head_size, (head + 1) * head_size)
            attention.q_proj.weight[rows] = left[:, :head_size].T
            attention.k_proj.weight[rows] = right[:, :head_size].T
        left, right = _factorize(near_identity(width, NOISE_VO, -IDENTITY_VO))
        attention.v_proj.weight.copy_(left.T)
        attention.o_proj.weight.copy_(right)


def near_identity(width: int, noise: float, identity: float) -> Float[Tensor, "width width"]:
    """Return noise of variance `noise² / width` plus `identity` times the identity, like trained attention products.

    Source: Trockman and Kolter (2023), Mimetic Initialization of Self-Attention Layers, section 4.
    """
    return noise * torch.randn(width, width) / math.sqrt(width) + identity * torch.eye(width)


def _factorize(product: Float[Tensor, "width width"]) -> tuple[Tensor, Tensor]:
    """Factorize `product = L R^T` into (L, R), with columns by decreasing singular value."""
    left, values, right = torch.linalg.svd(product)
    root = values.sqrt()
    return left * root, right.T * root


def sincos_positions(side: int, width: int) -> Float[Tensor, "patch width"]:
    """Return sinusoidal 2-D position embeddings (after Vaswani et al., 2017): sines and cosines of row and column."""
    quarter = width // 4
    rates = 10_000.0 ** -(torch.arange(quarter) / quarter)
    row, column = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    angles = [place.flatten()[:, None] * rates for place in (row, column)]
    return torch.cat([wave(angle) for angle in angles for wave in (torch.sin, torch.cos)], dim=1)
