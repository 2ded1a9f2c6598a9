"""Read a command's input (a text, a picture or an example of a data set), methods, parameters and scaled heads."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.cli.options import read_names, read_pairs, read_text, read_whole
from engine.cli.root import note
from engine.data import datasets, image_datasets
from engine.data.picture_files import read_picture
from engine.data.slices import whole_name
from engine.errors import UsageError, excerpt, not_allowed, unknown
from engine.input_kinds import kind_of_model
from engine.models import catalog
from engine.models.label_prompts import base_name, label_prompt, with_prompts
from engine.params import Plain, from_mapping
from engine.registry import Explainer, all_explainers, explainer
from engine.request import DTYPES, Example, HeadScales, Input, Picture, PicturePrompt, Prompt
from engine.result import Prediction
from engine.vision.picture import read_view

REQUIRED_BY = {
    "--text-pair": "--text", "--index": "--dataset", "--split": "--dataset", "--column": "--dataset",
    "--contrast": "--prompt", "--chat": "--prompt",
}  # fmt: skip
ALL = "all"


@dataclass(frozen=True)
class InputOptions:
    """Options of a command that describe its input. None: the option was not given.

    `target`: the class to explain or, for a prompt, the token, which is part of the input.
    """

    command: str
    model: str
    text: str | None = None
    text_pair: str | None = None
    image: str | None = None
    dataset: str | None = None
    index: str | None = None
    split: str | None = None
    column: list[str] | None = None
    prompt: str | None = None
    target: str | None = None
    contrast: str | None = None
    chat: bool = False


@dataclass(frozen=True)
class CommandInput:
    """An input, with `lines` of text that describe it. `target`: class to explain, unless it is part of the input."""

    example: Input
    lines: tuple[str, ...]
    target: str | None = None


def read_input(options: InputOptions) -> CommandInput:
    """Read the input that the options specify. Errors: no input, several, or an option that does not fit it."""
    sources: Mapping[str, tuple[str | None, Callable[[InputOptions], CommandInput]]] = {
        "--text": (options.text, _read_text), "--image": (options.image, _read_image),
        "--dataset": (options.dataset, _read_example), "--prompt": (options.prompt, _read_prompt),
    }  # fmt: skip
    named = [option for option, (value, _) in sources.items() if value is not None]
    if len(named) != 1:
        got = " and ".join(named) or "none"
        raise UsageError(
            f"{options.command}: needs one of --text, --image, or --dataset with --index, got {got}. "
            "Example: --text 'Not bad.'"
        )
    others = {
        "--text-pair": options.text_pair, "--index": options.index, "--split": options.split,
        "--column": options.column, "--contrast": options.contrast, "--chat": options.chat,
    }  # fmt: skip
    for option, value in others.items():
        if value and REQUIRED_BY[option] != named[0]:
            raise UsageError(f"{option}: requires {REQUIRED_BY[option]}, got {named[0]}. Remove one of them.")
    source = sources[named[0]][1](options)
    return source if options.prompt is not None else dataclasses.replace(source, target=options.target)


def _read_text(options: InputOptions) -> CommandInput:
    pair = None if options.text_pair is None else read_text("--text-pair", options.text_pair)
    return _text_input(Example(read_text("--text", str(options.text)), pair))


def _read_prompt(options: InputOptions) -> CommandInput:
    if not catalog.is_causal(options.model):
        raise UsageError(f"--prompt: {options.model} is a classifier, which continues no text. Use --text.")
    prompt = read_text("--prompt", str(options.prompt))
    return _text_input(Prompt(prompt, target=options.target, contrast=options.contrast, chat=options.chat))


def _read_image(options: InputOptions) -> CommandInput:
    file = Path(str(options.image)).expanduser()
    return _picture_input(read_picture(file, "--image"), file.name)


def _read_example(options: InputOptions) -> CommandInput:
    if options.index is None:
        raise UsageError("--index: is missing; --dataset requires it. Example: --index 0 for the first example.")
    name, number = str(options.dataset), read_whole("--index", options.index)
    columns = read_pairs("--column", options.column or [], "text=review") or None
    if not _names_pictures(options):
        example = datasets.load(name, split=options.split, columns=columns)[number].example
        return _text_input(example)
    data = image_datasets.load_images(name, split=options.split, columns=columns)
    picture = data[number]
    label = "" if picture.label is None else f", labeled {data.label_names[picture.label]}"
    return _picture_input(picture.pixels, f"picture {number} of {data.id}{label}")


def _names_pictures(options: InputOptions) -> bool:
    """Whether the example is a picture, according to the data set.

    If the data set does not exist, the model decides, so that the error lists data sets that fit the model.
    """
    name = str(options.dataset)
    exists = datasets.registered_name(name) is not None or Path(whole_name(name)).exists()
    return image_datasets.is_images(name) or (not exists and kind_of_model(options.model) == "image")


def _text_input(example: Example) -> CommandInput:
    lines = [" ".join(part.split())[:1000] for part in (example.text, example.text_pair) if part is not None]
    if isinstance(example, Prompt):
        answer = " of the answer, in the chat template" if example.chat else ""
        compared = "" if example.contrast is None else f", compared with {example.contrast!r}"
        lines.append(f"explained: the next token{answer}{compared}")
    return CommandInput(example, tuple(lines))


def _picture_input(pixels: np.ndarray, name: str) -> CommandInput:
    height, width, _ = pixels.shape
    return CommandInput(Picture(pixels), (f"{name}, {width} x {height} pixels",))


def name_labels(model: str, labels: str | None, template: str | None) -> str:
    """Return the name of a zero-shot model with labels. Errors: a template without labels, or labels given twice."""
    if labels is None:
        if template is not None:
            raise UsageError(
                "--template: requires --labels. Example: --labels 'cat, dog' --template 'a photo of a {}'."
            )
        return model
    if base_name(model) != model:
        raise UsageError(f"--labels: {excerpt(model)} names its labels already. Remove them, or --labels.")
    return with_prompts(model, labels, template)


def label_input(model: str, source: CommandInput, prediction: Prediction) -> CommandInput:
    """Return the input that explains the prompt of a label for a picture. `prediction`: prediction for the picture."""
    if not isinstance(source.example, Picture):
        raise UsageError("--side: prompt requires a picture. Give one: --image F, or --dataset with --index.")
    label = prediction.index if source.target is None else find_label(prediction, source.target)
    text = label_prompt(model, label)
    lines = (*source.lines, f"explained: the prompt {text!r} of the label {prediction.labels[label]}")
    return CommandInput(PicturePrompt(text, picture=source.example), lines)


def find_label(prediction: Prediction, target: str) -> int:
    """Return the index of a class from its label or index."""
    if target in prediction.labels:
        return prediction.labels.index(target)
    if target in map(str, range(len(prediction.labels))):
        return int(target)
    raise unknown("--target", target, prediction.labels)


def check_dtype(dtype: str) -> None:
    """Raise an error unless the precision is supported."""
    if dtype not in DTYPES:
        raise unknown("--dtype", dtype, DTYPES)


def check_model(model: str, kind: str) -> None:
    """Refuse a model that does not exist or does not read this kind of input, before heavy libraries are loaded."""
    source = catalog.locate(model)
    if kind == "image":
        read_view(model)
    else:
        catalog.check_text_model(source.id, catalog.config(source))


def read_heads(typed: list[str] | None) -> HeadScales:
    """Parse scales by layer and head, both counted from 0 as in the parameters of methods."""
    scales = {}
    for name, value in read_pairs("--head", typed or [], "3.7=0").items():
        layer, _, head = name.partition(".")
        try:
            scales[int(layer), int(head)] = float(value)
        except ValueError:
            allowed = "a layer and a head from 0 and a scale from 0 (off) to 2"
            raise not_allowed("--head", allowed, f"{name}={value}", "Example: --head 3.7=0.") from None
    return HeadScales.from_mapping(scales)


def read_methods(option: str, typed: str, kind: str, models: Sequence[str] = ()) -> tuple[list[Explainer], bool]:
    """Read the methods of an option. Also returns whether the option is "all".

    In this case, methods that one of `models` does not support are omitted, with a note.
    """
    methods = all_explainers(kind)
    if not typed.strip():
        known = ", ".join(methods)
        raise UsageError(f"{option}: is missing. Give one or more, separated by commas, or {ALL}. Known: {known}.")
    names = read_names(option, typed)
    if names == [ALL]:
        return [method for method in methods.values() if _is_supported(method, models)], True
    return [explainer(name, kind) for name in names], False


def _is_supported(method: Explainer, models: Sequence[str]) -> bool:
    reason = next(filter(None, map(method.why_not, models)), "")
    if reason:
        note(f"{method.id} is left out: {reason}")
    return not reason


def read_params(typed: list[str] | None, methods: Sequence[Explainer]) -> dict[str, dict[str, str]]:
    """Read each method's parameters as strings. `name` sets it for every method that has it, `method.name` for one."""
    pairs = read_pairs("--param", typed or [], "n_steps=50")
    own = {method.id: [f.name for f in dataclasses.fields(method.params)] for method in methods}
    params: dict[str, dict[str, str]] = {name: {} for name in own}
    # Parameters of a single method come last, so that they override general ones.
    for key, value in sorted(pairs.items(), key=lambda item: "." in item[0]):
        method, dot, parameter = key.rpartition(".")
        if dot and method not in own:
            raise unknown("--param: method", method, own)
        takers = [method] if dot else [name for name in own if parameter in own[name]]
        known = own[method] if dot else {p for parameters in own.values() for p in parameters}
        if parameter not in known:
            raise unknown(f"--param: parameter of {method or ', '.join(own)}", parameter, known)
        for name in takers:
            params[name][parameter] = value
    return params


def read_typed_params(typed: list[str] | None, methods: Sequence[Explainer]) -> dict[str, dict[str, Plain]]:
    """Read each method's parameters as values of their types, so that equal requests have equal cache keys."""
    texts = read_params(typed, methods)
    params: dict[str, dict[str, Plain]] = {}
    for method in methods:
        if own := texts[method.id]:
            values = from_mapping(method.params, own, method.id)
            params[method.id] = {name: getattr(values, name) for name in own}
    return params
