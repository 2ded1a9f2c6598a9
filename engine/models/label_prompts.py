"""Labels that a user chooses as the classes of a zero-shot model, and the prompts that the model reads for them.

Labels and template are part of a model's name, `FOLDER?labels=cat|dog&template=a photo of a {}`, so every command,
page, link, job and cache key that names a model includes them. Imports no torch.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, unquote

from engine.errors import UsageError, excerpt, not_allowed

MARK = "?labels="
"""Start of the labels in a model's name."""
TEMPLATE_FIELD, BETWEEN, QUOTE = "template", "|", '"'
PLACE = "{}"
"""Placeholder of the label in a template."""
MOST_CHARACTERS = 300
READABLE = " '()/:{}.!?"
"""Characters that are not percent-encoded in a name. The comma is encoded, as commas separate names of models."""


@dataclass(frozen=True)
class LabelRules:
    """Rules of a kind of zero-shot model: its default template, and the minimum and maximum number of labels."""

    template: str
    least: int
    most: int

    def check(self, prompts: LabelPrompts) -> None:
        """Refuse too few or too many labels."""
        if not self.least <= len(prompts.labels) <= self.most:
            allowed = f"{self.least:,} to {self.most:,} labels, such as 'a cat, a dog'"
            raise not_allowed("labels", allowed, format_labels(prompts.labels))


PICTURE_LABELS = LabelRules(PLACE, 2, 1_000)
"""Rules of models that match pictures with texts."""
PAIR_LABELS = LabelRules(f"This example is {PLACE}.", 1, 50)
"""Rules of models that classify pairs of texts (NLI), which read the text once per label."""


@dataclass(frozen=True)
class LabelPrompts:
    """The labels in a model's name. `template`: the text around each label, None for the default of the kind of model.

    Errors: no label; a repeated, empty or too long label; a template that is too long or has not one placeholder.
    """

    labels: tuple[str, ...]
    template: str | None = None

    def __post_init__(self) -> None:
        if not self.labels:
            raise not_allowed("labels", "labels between commas, such as 'a cat, a dog'", "none")
        repeated = [label for at, label in enumerate(self.labels) if label in self.labels[:at]]
        if repeated:
            raise UsageError(f"labels: {excerpt(repeated[0])} is there twice. Give each class one label.")
        if any(not label.strip() for label in self.labels):
            raise UsageError("labels: one of them is empty. Leave it out, or write its name.")
        template = PLACE if self.template is None else self.template
        if any(len(text) > MOST_CHARACTERS for text in (*self.labels, template)):
            raise UsageError(f"labels: must have at most {MOST_CHARACTERS} characters each, and so must the template.")
        if template.count(PLACE) != 1:
            allowed = f"a text with {PLACE} once, where the label stands, such as 'a photo of a {PLACE}'"
            raise not_allowed(TEMPLATE_FIELD, allowed, template)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes: the labels, or a single label and its opposite."""
        return self.labels if len(self.labels) > 1 else (*self.labels, f"not {self.labels[0]}")

    def texts(self, rules: LabelRules) -> tuple[str, ...]:
        """Return the prompts that the model reads, one per label."""
        template = rules.template if self.template is None else self.template
        return tuple(template.replace(PLACE, label) for label in self.labels)


def parse_labels(text: str) -> tuple[str, ...]:
    """Parse labels that are separated by commas; a label that contains a comma is in double quotes."""
    try:
        [parts] = csv.reader([" ".join(text.splitlines())], skipinitialspace=True)
    except csv.Error as error:
        raise not_allowed("labels", f"labels between commas ({error})", text) from None
    return tuple(part.strip() for part in parts if part.strip())


def format_labels(labels: Iterable[str]) -> str:
    """Format labels as `parse_labels` reads them."""
    quoted = (f'"{label.replace(QUOTE, QUOTE * 2)}"' if set(label) & {",", QUOTE} else label for label in labels)
    return ", ".join(quoted)


def base_name(model: str) -> str:
    """Return the name of a model without its labels."""
    return model.partition(MARK)[0]


def split_prompts(model: str) -> tuple[str, LabelPrompts | None]:
    """Split a model's name into the base name and its labels, None if it has none. Errors: those of `LabelPrompts`."""
    base, mark, rest = model.partition(MARK)
    if not mark:
        return model, None
    labels, *fields = rest.split("&")
    template = next((unquote(field.partition("=")[2]) for field in fields), None)
    if [field.partition("=")[0] for field in fields] not in ([], [TEMPLATE_FIELD]):
        raise UsageError(f"model: after its labels only {TEMPLATE_FIELD}=... may follow, got {excerpt(rest)}.")
    return base, LabelPrompts(tuple(unquote(label) for label in labels.split(BETWEEN)), template)


def with_prompts(model: str, labels: str, template: str | None = None) -> str:
    """Return the name of a model with these labels, separated by commas. Errors: those of `LabelPrompts`."""
    prompts = LabelPrompts(parse_labels(labels), (template or "").strip() or None)
    own = BETWEEN.join(quote(label, safe=READABLE) for label in prompts.labels)
    rest = "" if prompts.template is None else f"&{TEMPLATE_FIELD}={quote(prompts.template, safe=READABLE)}"
    return f"{base_name(model)}{MARK}{own}{rest}"


def label_prompt(model: str, label: int) -> str:
    """Return the prompt that a picture-text model reads for a label, by index. Errors: its name has no labels."""
    prompts = split_prompts(model)[1]
    if prompts is None:
        raise UsageError(f"labels: {excerpt(model)} has no labels in its name, so no prompts. Give it labels.")
    return prompts.texts(PICTURE_LABELS)[label]
